"""The experiment `weighting`: law of estimation cost, cross-fitting, verdicts that can fail."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.estimates import mean_and_error
from sims.montecarlo import run
from sims.problem import TARGETS
from sims.simulation import draw
from sims.study.experiment import load_experiment
from sims.weighting import optimal, risk
from tests.experiments.runs import both_roads, small

simulate, predict, effects = (
    load_experiment("weighting").module(name) for name in ("simulate", "predict", "effects")
)


@pytest.fixture(scope="module")
def experiment():
    return small("weighting", batches=64, replicates_per_batch=2)


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment)


@pytest.mark.theory
def test_estimation_cost_by_brute_force():
    """Normal residuals in plain NumPy: 4 standard errors (false alarm 2·10⁻⁴ for the three m)."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix, noise = root.T @ root, 1.3
    best = float(risk(optimal(matrix), matrix))
    for m in (8, 12, 40):
        e = rng.normal(size=(2000, m, 4)) @ root + noise * rng.normal(size=(2000, m, 1))
        excess = [float(risk(optimal(r.T @ r / m), matrix)) - best for r in e]
        error = np.std(excess, ddof=1) / np.sqrt(len(excess))
        law = (noise**2 + best) * predict.estimation_cost(m, 4)
        assert abs(np.mean(excess) - law) < 4 * error
    assert predict.estimation_cost(4, 4) == np.inf


@pytest.mark.theory
def test_cross_fitting_does_not_flatter():
    """Equal heads, noisy matrices: in-sample weights show a gain, cross-fitted ones none."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(12, 40, 5))
    batches = np.einsum("bih,big->bhg", root, root) / 40
    zero = np.zeros_like(batches)
    dims = ("batch", "head", "head2")
    data = xr.Dataset(
        {
            "integrated_bias_product": (dims, batches),
            "integrated_signal_covariance": (dims, zero),
            "integrated_noise_covariance": (dims, zero),
        }
    )
    gain, error = mean_and_error(effects.gains(data, "optimal"))
    mean = batches.mean(0)
    in_sample = 1 - float(risk(optimal(mean), mean)) / float(risk(np.full(5, 0.2), mean))
    assert in_sample > 0
    assert gain < 2 * error


def test_every_training_set_has_a_target_of_its_own(experiment):
    """As many targets as training sets, and all different."""
    seen = []

    def family(seed):
        seen.append(seed)
        return TARGETS["constant"](16)

    unit = simulate.units(experiment)["cost"]
    task, _, *rest = unit.sampler.constants
    sampler = replace(unit.sampler, constants=(task, family, *rest))
    run(sampler, 1, replicates_per_batch=2, batches=3)
    assert len(set(seen)) == len(seen) == 6


def test_fewer_pairs_cost_more(results):
    """As the law has it, by the ratio of m − H, within a factor of 2 at so few training sets."""
    data, law = results.estimates["cost"], results.predictions["cost"]["inflation"].values
    beyond = (data["error"] - data["oracle"]).sel(rule="optimal").mean("batch").values
    assert law[0] > 4 * law[-1]
    assert 0.5 < beyond[0] / beyond[-1] / (law[0] / law[-1]) < 2


def test_deviations_are_those_of_heads(experiment):
    """One training set by plain NumPy."""
    task, heads, n, _ = experiment.points[1].spec.build()
    key = jax.random.key(5)
    found = np.asarray(simulate.deviations(task, heads, key, n, 3, 0.4))
    x, unit = (np.asarray(a) for a in draw(task, key, n))
    queries = 0.4 * np.asarray(
        jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (3, x.shape[1]), float)
    )
    labels = np.asarray(task.target(x)) + 0.5 * unit
    for row, query in zip(found, queries, strict=True):
        for h, (frame, b) in enumerate(zip(heads.frames, heads.bandwidth, strict=True)):
            w = np.exp(-(((x - query) @ np.asarray(frame)) ** 2).sum(1) / (2 * b**2))
            expected = w @ labels / w.sum() - float(task.target(query))
            assert row[h] == pytest.approx(expected, rel=1e-9)


def test_gain_bound_by_perturbation(results):
    """Entries moved anywhere within their bounds move the gain by no more than is said."""
    rng = np.random.default_rng(0)
    for name in effects.regimes(results).values():
        theory = results.prediction(name, "exact").copy(deep=True)
        part = "integrated_noise_covariance"
        error = 1e-4 * np.abs(theory[part].values)
        for other in ("integrated_bias_product", "integrated_signal_covariance"):
            theory[f"{other}_error"] = 0.0 * theory[f"{other}_error"]
        theory[f"{part}_error"] = (theory[part].dims, error)
        bound, gain = effects.gain_bound(theory), effects.predicted_gain(theory, "optimal")
        for _ in range(20):
            sign = rng.choice([-1.0, 1.0], error.shape)
            moved = theory[part] + error * np.triu(sign) + error * np.triu(sign, 1).T
            changed = effects.predicted_gain(theory.assign({part: moved}), "optimal") - gain
            assert abs(changed) <= bound * (1 + 1e-2) + 1e-9


def test_least_error_of_a_training_set_is_below_that_of_their_average(experiment):
    """By how much a law with the average's would be too large, for six targets; docs/theory.md."""
    experiment = load_experiment("weighting")
    own = experiment.settings["cost"]
    spec = experiment.points[experiment.settings["regimes"].index(own["regime"])].spec
    task, heads, n, _ = spec.build()
    excess = []
    for seed in range(1, 7):
        drawn = replace(task, target=spec.family()(seed=seed))
        matrices = []
        for k in range(12):
            gaps = np.asarray(
                simulate.deviations(
                    drawn, heads, jax.random.key(k), n, own["queries"], own["scale"]
                )
            )
            matrices.append(gaps.T @ gaps / len(gaps))
        least = [float(risk(optimal(m), m)) for m in (*matrices, np.mean(matrices, 0))]
        excess.append((0.25 + least[-1]) / (0.25 + np.mean(least[:-1])) - 1)
    assert min(excess) > 0.01
    assert 0.15 < max(excess) < 0.27
    assert np.median(excess) == pytest.approx(0.03, abs=0.01)
