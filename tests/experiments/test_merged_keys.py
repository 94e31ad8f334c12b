"""The experiment `merging`: tuned temperatures, errors by plain loops and by NumPy alone, gates."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.merging import heads, simulate, tuning
from experiments.merging.problems import Problem
from sims.montecarlo.draws import PILOT, Draw
from sims.problem.law import Law
from sims.study.running import Run
from sims.study.study import Fields

LAW = Run.load("merging").spec.law
TUNED = (0.7, 1.9)


def drawn(number=0, **changes):
    """A problem of few keys, at temperatures that nothing has chosen."""
    law = LAW | {"keys": 24, "query_count": 2} | changes
    return Problem(Law(law).draw(3, number), tuned=TUNED)


def target_by_hand(problem, points):
    series = problem.target
    phases = points @ np.array(series.frequency).T + np.array(series.phase)
    return np.cos(phases) @ np.array(series.amplitude)


def by_loops(problem, keys, gates, bandwidth, stride):
    """Estimates and noise (…, Q) of sequences (…, n, d), for slots of one gate a key."""
    values = target_by_hand(problem, keys)
    estimates, squares = [], []
    for x in problem.queries:
        weights = np.zeros(keys.shape[:-1])
        for frame in problem.frames:
            scores = []
            for first in range(0, keys.shape[-2], stride):
                inside = range(first, first + stride)
                k = sum(gates[..., i, None] * keys[..., i, :] for i in inside) @ frame
                q = x @ frame
                softmax = problem.drawn["kernel"] == "softmax"
                scores.append((k @ q if softmax else -((q - k) ** 2).sum(-1) / 2) / bandwidth**2)
            parts = np.exp(np.stack(scores, -1) - np.max(scores, axis=0)[..., None])
            share = parts / parts.sum(-1, keepdims=True)
            weights += np.repeat(share, stride, axis=-1) * gates / 2
        estimates.append((weights * values).sum(-1))
        squares.append((weights**2).sum(-1))
    return np.stack(estimates, -1), np.stack(squares, -1)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("gates", ["fixed", "normalised"])
def test_errors_by_plain_loops_are_at_the_tuned_temperatures(kernel, gates):
    """A batch that chose its temperatures itself would have other errors."""
    problem = drawn(kernel=kernel, gates=gates, stride=3, noise_sd=0.7)
    draw = Draw.from_seed(1, (), 3).draw(2)
    result = simulate.errors(draw, 3, problem)
    random = heads.jax.random.split(draw.key, 3)
    sequences = np.asarray(heads.draw_sequences(problem.design, random, 24))
    truth = target_by_hand(problem, problem.queries)
    cases = [(1, TUNED[0]), (3, TUNED[1]), (3, TUNED[0]), (3, problem.bandwidth)]
    for place, (stride, bandwidth) in enumerate(cases):
        gates_of_keys = heads.draw_gates(problem, sequences) if stride > 1 else np.ones((3, 24))
        centre, squares = by_loops(problem, sequences, gates_of_keys, bandwidth, stride)
        noise = 0.49 * squares
        expected = ((centre - truth) ** 2 + noise).mean()
        assert result["mse"][place] == pytest.approx(expected, rel=1e-9)
        spread = (centre.var(0, ddof=1) + noise.mean(0)).mean()
        assert result["variance"][place] == pytest.approx(spread, rel=1e-9)


def test_temperatures_are_tuned_by_draws_that_do_not_judge():
    """The least error of the pilot's 48 sequences, at every bandwidth of the grid."""
    found = 0
    for number in range(6):
        fields = Fields(Law(LAW | {"keys": 24, "stride": 4}).draw(5, number), 5, number)
        problem = tuning.draw_problem(fields)
        plain = Problem(fields)
        tried = plain.bandwidth * tuning.GRID
        draw = Draw.from_seed(fields["pilot"], (), 48)
        best = []
        for over in ([tried, [1.0]], [[1.0], tried]):
            errors = heads.errors_of(plain, draw.draw(PILOT).key, 48, *over)["mse"]
            errors = errors[:-1] if len(over[0]) > 1 else errors[1:]
            best.append(tried[errors.argmin()])
        if problem is None:
            assert {min(best), max(best)} & {tried[0], tried[-1]}
            continue
        found += 1
        np.testing.assert_allclose(problem.tuned, best)
        judged = simulate.errors(draw.draw(0), 8, problem)
        other = replace(problem, drawn=fields | {"pilot": fields["pilot"] + 1})
        np.testing.assert_array_equal(simulate.errors(draw.draw(0), 8, other)["mse"], judged["mse"])
    assert found >= 2


def sequences_by_hand(rng, problem, replicates, count):
    """Stationary autoregressions of order 2, from far before their first keys."""
    root = problem.drawn["persistence"] if problem.drawn["correlated"] else 0.0
    second = root if problem.drawn["smooth"] else 0.0
    keys = rng.normal(size=(count + 400, replicates, 4))
    for t in range(2, len(keys)):
        keys[t] += (root + second) * keys[t - 1] - root * second * keys[t - 2]
    near = (root + second) / (1 + root * second)
    return keys[400:].swapaxes(0, 1) * np.sqrt((1 - near**2) * (1 - (root * second) ** 2))


def gates_by_hand(problem, keys, stride):
    drawn_gates, count = problem.drawn["gates"], keys.shape[1]
    if drawn_gates == "mean":
        return np.full(count, 1 / stride)
    logits = problem.drawn["spread"] * problem.raw_gates
    if drawn_gates == "fixed":
        raw = np.exp(np.tile(logits, count // stride))
    else:
        raw = 1 / (1 + np.exp(-keys @ logits))
    if drawn_gates == "printed":
        return raw * 2 / stride
    slots = raw.reshape(*raw.shape[:-1], -1, stride)
    return raw / np.repeat(slots.sum(-1), stride, axis=-1)


def test_errors_are_those_by_numpy_alone():
    """40 problems, within 5 joint standard errors of 80 numbers: a false alarm in 20,000 runs."""
    worst = []
    for number in range(40):
        problem = drawn(number, correlated=bool(number % 2))
        stride, rng = problem.drawn["stride"], np.random.default_rng([9, number])
        truth = target_by_hand(problem, problem.queries)
        draws = Draw.from_seed(2, (number,), 4)
        simulated = np.array([simulate.errors(draws.draw(b), 4, problem)["mse"] for b in range(24)])
        keys = sequences_by_hand(rng, problem, 96, 24)
        by_hand = []
        for gates, bandwidth, slot in (
            (np.ones(24), TUNED[0], 1),
            (gates_by_hand(problem, keys, stride), TUNED[1], stride),
        ):
            estimates, squares = by_loops(problem, keys, gates, bandwidth, slot)
            noise = problem.drawn["noise_sd"] ** 2 * squares
            by_hand.append(((estimates - truth) ** 2 + noise).mean(1))
        gap = simulated[:, :2].mean(0) - np.mean(by_hand, axis=1)
        joint = simulated[:, :2].var(0, ddof=1) / 24 + np.var(by_hand, axis=1, ddof=1) / 96
        worst.append(np.abs(gap) / np.sqrt(joint))
    assert np.max(worst) < 5


def test_gates_are_what_their_names_say():
    """Normalised ones sum to 1 in every slot, printed ones on average; a larger projection has a
    larger gate."""
    keys = np.random.default_rng(0).normal(size=(400, 24, 4))
    sums = {
        kind: heads.draw_gates(drawn(gates=kind, stride=4), keys).reshape(400, 6, 4).sum(-1)
        for kind in ("mean", "fixed", "normalised", "printed")
    }
    for kind in ("mean", "fixed", "normalised"):
        np.testing.assert_allclose(sums[kind], 1, rtol=1e-12)
    assert sums["printed"].mean() == pytest.approx(1, abs=0.02)
    assert sums["printed"].std() > 0.01
    problem = drawn(gates="printed", stride=4)
    order = np.argsort(keys[0] @ problem.raw_gates)
    assert (np.diff(heads.draw_gates(problem, keys)[0][order]) > 0).all()


@pytest.mark.parametrize(("kernel", "unit"), [("gaussian", 2.0), ("softmax", 1.0)])
def test_bandwidths_are_drawn_in_units_of_the_width_for_gaussian_heads(kernel, unit):
    problem = drawn(kernel=kernel, width=4)
    assert problem.bandwidth == pytest.approx(unit * problem.drawn["bandwidth"])
