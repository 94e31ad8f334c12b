"""The experiment `learned_temperature`: learning, held-out errors, and verdicts either way."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.normals import normal
from sims.study.experiment import load_experiment
from sims.study.units import units_of
from tests.experiments.helpers import results_of
from tests.experiments.runs import both_roads

BATCHES = 64
THEORY = ("softmax", "sparsemax", "1.5-entmax", "4/3-entmax")
KEPT = {
    "smooth": {
        "1.5-entmax": 1.0,
        "sparsemax": 1.2,
        "4/3-entmax": 1.4,
        "softmax": 6.0,
        "relu gap": 5.0,
        "top-k softmax": 10.0,
    },
    "rough": {
        "sparsemax": 1.0,
        "1.5-entmax": 1.3,
        "4/3-entmax": 1.9,
        "softmax": 6.0,
        "relu gap": 5.0,
        "top-k softmax": 10.0,
    },
}
"""Made-up errors at the longest context over the best there is, for which all claims hold."""


@pytest.fixture(scope="module")
def experiment():
    whole = load_experiment("learned_temperature", "smoke")
    settings = dict(whole.spec.at("smoke").settings) | {
        "learning": {"steps": 60, "tasks": 2, "queries": 16, "rate": 0.2, "spread": 0.3},
        "lengths": [1, 2],
        "best": {
            "smooth": {
                rule: [places[0], places[1]]
                for rule, places in whole.settings["best"]["smooth"].items()
            }
        },
    }
    smoke = whole.spec.at("smoke").model_copy(
        update={
            "settings": settings,
            "simulation": {"batches": 2, "replicates_per_batch": 2},
        }
    )
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def drawn(experiment):
    return both_roads(experiment, lambda point: point.split(", ")[1] in THEORY)


def made_up(kept=None):
    """Results at standard in which every error is what :data:`KEPT` says, or what is given."""
    whole = load_experiment("learned_temperature")
    rng, kept = np.random.default_rng(2), kept or KEPT
    estimates, predictions, lengths = {}, {}, np.array(whole.settings["lengths"])
    for stream, rules in kept.items():
        for rule, last in rules.items():
            growth = last ** (np.log(lengths) / np.log(lengths[-1]))
            noise, other, third = 1 + 1e-3 * rng.standard_normal((3, BATCHES, 1))
            tuned = np.tile(other[:, :, None], (1, len(lengths), 5)) * [1.3, 1.1, 1.0, 1.1, 1.3]
            name = f"{stream}, {rule}"
            estimates[name] = xr.Dataset(
                {
                    "kept": (("batch", "length"), noise * growth),
                    "tuned": (("batch", "length", "place"), tuned),
                    "log_temperature": ("batch", rng.standard_normal(BATCHES)),
                },
                {"length": lengths},
                attrs={"replicates": 2},
            )
            if rule in THEORY:
                mse = third[:, 0] * last
                predictions[name] = xr.Dataset(
                    {
                        "each_mse": ("seed", mse),
                        "each_squared_bias": ("seed", 0.25 * mse[::-1] ** 2),
                    }
                )
    return whole, results_of(whole, estimates, predictions)


def test_the_best_is_the_least_error_at_every_length():
    whole, results = made_up()
    found = whole.module("effects").best(results, "smooth")
    np.testing.assert_allclose(found.mean(0), 1.0, rtol=1e-3)


def test_gaps_carry_the_share_of_variance():
    """One less the squared bias over the error, by theory: means over seeds, not of ratios."""
    whole, results = made_up()
    for effect in whole.module("effects").effects(results)["gap to theory"]:
        theory = results.predictions[effect.label]
        mse, squared_bias = (theory[f"each_{term}"].values for term in ("mse", "squared_bias"))
        share = 1 - sum(squared_bias) / sum(mse)
        assert effect.at["variance_share"] == pytest.approx(share, rel=1e-12)


def test_a_temperature_is_learned(experiment):
    """From starts about 1 to the best, which is known to one step of 0.5 in log s.

    The mean of the 16 seeds that learn together is held to it, with four of its standard errors:
    a false alarm in 10⁴ per rule.
    """
    learning, seed = experiment.module("learning"), experiment.simulation.seed
    for rule, (best, _) in experiment.settings["best"]["smooth"].items():
        course = learning.Course.of(experiment.settings, "smooth", rule)
        log_s = np.array([learning.learned(course, seed, batch) for batch in range(16)])
        assert abs(log_s.mean() - best) < 0.5 + 4 * log_s.std(ddof=1) / 4
        keys = learning.keys_of(seed, range(16))[:, 0]
        start = [float(learning.lessons(course.stream(), key, course).start) for key in keys]
        nearer = np.abs(np.subtract(start, best)) - np.abs(log_s - best)
        assert nearer.mean() > 10 * nearer.std(ddof=1) / 4


@pytest.mark.parametrize(("square", "direction"), [(3.0, 1), (5.0, -1)])
def test_what_is_learned_is_the_logarithm_of_the_squared_bandwidth(experiment, square, direction):
    """A query on the first of two keys, labelled as by a head of bandwidth 2: a step goes there."""
    learning = experiment.module("learning")
    course = learning.Course.of(experiment.settings, "smooth", "softmax")
    course = replace(course, n=2, queries=1, tasks=1, steps=1)
    label = 1 / (1 + np.exp(-(2.0**2) / (2 * 2.0**2)))
    x, y = (np.array([[points]], np.float32) for points in ([0, 2, 0], [1, 0, label]))
    start = np.float32(np.log(square))
    found = learning.learn(learning.Lessons(start, x, y), course)
    assert np.sign(float(found) - start) == direction


def test_both_roads_have_one_temperature_and_one_set_of_tasks(drawn):
    """Within a factor at 128 keys and few tasks: another task would be off by far more."""
    for name, theory in drawn.predictions.items():
        simulated = drawn.estimates[name]["kept"].values[:, -1]
        np.testing.assert_allclose(np.log(simulated / theory["each_mse"].values), 0, atol=1.0)


@pytest.mark.parametrize("rule", ["softmax", "sparsemax", "top-k softmax"])
def test_held_out_error_by_plain_loops(experiment, rule):
    units_of(experiment)
    simulate = experiment.module("simulate")
    course = simulate.Course.of(experiment.settings, "smooth", rule)
    key, log_s, n = jax.random.key(3), np.float32(-1.5), 24
    found = simulate.held_out(
        course.stream(),
        np.array([log_s]),
        key,
        0.5,
        0.5,
        rule=rule,
        k=4,
        n=n,
        tasks=2,
        queries=3,
        designs=2,
    )
    total = []
    for index in range(4):
        target, at = simulate.held_out_task(course.stream(), key, index // 2, 3, 0.5)
        of_keys = jax.random.fold_in(key, 2**32 - 1 - index)
        x = np.asarray(normal(of_keys, (n,), "float32"))
        values, truth = (np.asarray(target(np.asarray(p, float)[:, None])) for p in (x, at))
        for q, m in zip(np.asarray(at), truth, strict=True):
            scores = -((q - x) ** 2) / (2 * np.exp(log_s))
            if rule == "sparsemax":
                order = np.sort(scores)[::-1]
                count = np.arange(1, n + 1)
                k = count[1 + count * order > np.cumsum(order)].max()
                w = np.maximum(scores - (order[:k].sum() - 1) / k, 0)
            else:
                kept = scores >= np.sort(scores)[-(4 if rule == "top-k softmax" else n)]
                w = np.exp(scores - scores.max()) * kept
                w /= w.sum()
            total.append((w @ values - m) ** 2 + 0.25 * (w**2).sum())
    assert float(found[0]) == pytest.approx(np.mean(total), rel=1e-4)


def test_rough_targets_are_the_suites_lacunary_series(experiment):
    """β = 1: amplitudes and frequencies of ``holder`` on the line."""
    from sims.problem import TARGETS

    units_of(experiment)
    stream = (
        experiment.module("simulate")
        .Course.of(experiment.settings | {"waves": 5}, "rough", "softmax")
        .stream()
    )
    mine, theirs = stream.target(jax.random.key(0)), TARGETS["holder"](1, beta=1.0, levels=4)
    np.testing.assert_allclose(mine.amplitude, theirs.amplitude)
    np.testing.assert_allclose(mine.frequency, np.abs(theirs.frequency))
