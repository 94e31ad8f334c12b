"""Advice from data: left-out predictions by brute force, known optima, noise, groups, sizes."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from sims import DESIGNS, Heads, Task, TrigonometricSeries, predict
from sims.advise import advise_data, prepared
from sims.advise.data import choose_frugal
from sims.advise.heads import predict_heads, temperature_grid
from sims.advise.parts import estimate_parts
from sims.advise.search import REPORTING, Search, Setting
from sims.advise.table import Row, standard_error
from sims.weights.entmax import Entmax


@pytest.mark.parametrize("size", [1, 4], ids=["rows", "groups"])
def test_left_out_predictions_are_those_of_loops(size):
    """Softmax by its formula, entmax by the suite's own rule, each without the query's group."""
    rng = np.random.default_rng(size)
    points, outputs = rng.normal(size=(2, 32, 2))
    group = np.arange(32) // size
    barred = group[:, None] == group
    grid = temperature_grid(points, points, barred)
    sparse = {"sparsemax": jax.jit(Entmax(1.0)), "1.5-entmax": jax.jit(Entmax(2.0))}
    made = predict_heads(points, points, outputs, barred, np.eye(2)[None], grid)
    for i in range(0, 32, 4):
        keys, values = points[group != group[i]], outputs[group != group[i]]
        distance = -0.5 * ((points[i] - keys) ** 2).sum(1)
        for rule, every in grid.items():
            scores = keys @ points[i] if rule.startswith("softmax") else distance
            for s, predicted in zip(every, made[rule][:, 0], strict=True):
                if rule in sparse:
                    weights = np.asarray(sparse[rule](scores / s))
                else:
                    weights = np.exp((scores - scores.max()) / s)
                expected = weights @ values / weights.sum()
                np.testing.assert_allclose(predicted[i], expected, rtol=1e-6, atol=1e-9)


def wave(seed):
    """One dimension, where exact theory is at hand: rows of cos 2x with noise, task, Var y."""
    rng, noise = np.random.default_rng(seed), 0.5
    x = rng.normal(size=600)
    x = (x - x.mean()) / x.std()
    y = np.cos(2 * x) + noise * rng.normal(size=600)
    task = Task(DESIGNS["isotropic"](1), TrigonometricSeries([1.0], [[2.0]], [0.0]), noise)
    return prepared(x[:, None], y), task, y.var()


def exact_error(task, bandwidth):
    """Mean squared error of predicting labels from 599 keys, over queries of the keys' law."""
    nodes, weights = hermegauss(12)
    keep = weights / weights.sum() > 1e-4
    heads = Heads(np.ones((1, 1, 1)), "gaussian", bandwidth)
    terms = predict(task, heads, 599, nodes[keep][:, None], order="exact", rtol=1e-3)
    variance = (terms["signal_covariance"] + terms["noise_covariance"]).values.ravel()
    error = terms["bias"].values[:, 0] ** 2 + variance
    return weights[keep] @ error / weights[keep].sum() + float(task.noise_sd) ** 2


def test_a_known_optimum_is_recovered():
    """The chosen bandwidth's error by exact theory is the least within the stated error."""
    data, task, unit = wave(5)
    search = Search(data)
    groups = data.groups[search.choosers]
    rows = []
    for setting, loss in search.try_all().items():
        if setting.rule == "gaussian":
            exact = exact_error(task, setting.temperature**0.5)
            rows.append((loss.mean() * unit, standard_error(loss, groups) * unit, exact))
    mean, stated, exact = np.array(rows).T
    best = mean.argmin()
    assert exact[best] <= exact.min() + 2 * stated[best]
    assert (abs(mean - exact) < 4 * stated).all()


def test_the_parts_are_those_of_exact_theory():
    """Mean over five data sets: the bootstrap's variance within a third."""
    frames, parts, theory = np.ones((1, 1, 1)), [], []
    for seed in range(5):
        data, task, unit = wave(seed)
        search = Search(data)
        row = Row("best", 0.5, 0.1, 0, 0, Setting("gaussian", 1, 1, 0.2**2))
        parts.append(estimate_parts(search, row, frames, (0, 1)).variance * unit)
        queries = data.features[search.reporters[:100]]
        terms = predict(
            task, Heads(frames, "gaussian", 0.2), 599, queries, order="exact", rtol=1e-3
        )
        theory.append(float(terms["ensemble_variance"]))
    assert np.mean(parts) == pytest.approx(np.mean(theory), rel=0.3)
    row = replace(row, setting=Setting("gaussian", 2, 1, 0.2**2))
    twice = estimate_parts(search, row, np.ones((2, 1, 1)), (0.1, 0.9))
    assert (twice.variance, twice.kept) == pytest.approx((parts[-1] / unit, 1.0))
    assert (twice.noise, twice.bias) == ((0.1, 0.5), (0, 0.5))  # no part exceeds the error
    assert not twice.dependent
    copied = Row("best", 1e-3, 1e-4, 0, 0, Setting("gaussian", 1, 1, 1e-4))
    assert estimate_parts(search, copied, frames, (0, 1)).dependent


def test_the_frugal_choice_is_within_one_standard_error_with_fresh_frames(monkeypatch):
    search = Search(prepared(*np.random.default_rng(0).normal(size=(2, 40, 1))))
    best = Setting("softmax", 4, 4, 1.0)
    of_best = np.tile([1.0, 3.0], 10)  # its standard error is 0.23
    one = {width: Setting("softmax", 1, width, 1.0) for width in (8, 4, 2, 1)}
    losses = {best: of_best, one[1]: of_best + 0.6}
    losses |= {one[width]: of_best + 0.1 / width for width in (8, 4, 2)}
    fresh = losses | {one[2]: of_best + 0.35}
    monkeypatch.setattr(search, "confirm", fresh.get)
    assert choose_frugal(search, losses, best, of_best) == one[4]


def test_pure_noise_is_said_to_be_within_noise():
    rng = np.random.default_rng(1)
    advice = advise_data(prepared(rng.normal(size=(200, 4)), rng.normal(size=200)))
    assert "Within noise" in " ".join(advice.sentences())
    part = advice.parts["best"]
    assert (part.noise[0], part.bias[0]) == (0, 0)
    assert part.noise[1] == part.error
    assert not advice.alarm


def test_diversity_pays_where_every_direction_matters_a_little():
    """A noisy linear target: two orthogonal heads of half the features beat one of them."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 12))
    advice = advise_data(prepared(x, x.sum(1) / 12**0.5 + rng.normal(size=300)))
    aligned = advice.diversity[-1]
    assert (aligned.setting.heads, aligned.setting.width) == (2, 6)
    assert aligned.difference > 2 * aligned.difference_error
    assert "more than orthogonal ones." in " ".join(advice.sentences())
    search = Search(prepared(x, x.sum(1)))
    draws = search.draws(2, 6, REPORTING)
    together = search.errors(aligned.setting, draws)
    apart = [search.errors(aligned.setting, [d[h : h + 1] for d in draws]) for h in (0, 1)]
    alone = search.errors(aligned.setting, draws, alone=True)
    np.testing.assert_allclose(alone, np.mean(apart, axis=0))
    assert (alone >= together).all()  # a mean of squares is at least the square of the mean


def test_rows_of_a_group_are_one_row_of_the_standard_error():
    once = np.random.default_rng(3).normal(size=20)  # 20 groups, not 200 rows
    many = standard_error(np.repeat(once, 10), np.repeat(np.arange(20), 10))
    assert many == pytest.approx(once.std(ddof=1) / 20**0.5)


def test_many_rows_are_drawn_and_outputs_are_averaged():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 1))
    data = prepared(x, np.hstack([x, rng.normal(size=(3000, 1))]))
    advice = advise_data(data)
    assert advice.size == (2000, 1, 2)
    assert "Of 3,000 rows 2,000 drawn at random are used" in advice.notes[0]
    assert {row.name: row for row in advice.rows}["ridge"].error == pytest.approx(0.5, abs=0.05)
