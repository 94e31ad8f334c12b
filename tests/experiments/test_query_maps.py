"""The experiment `query_maps`: rows that can fail, by hand, its law, figure and caption."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims import terms
from sims.study.experiment import load_experiment
from tests.experiments.helpers import results_of

BATCHES = 64


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("query_maps", "smoke")


def made(correlations, by_law=None):
    """Results whose points have these noise correlations, by place; the law's, if it is another."""
    experiment = load_experiment("query_maps", "smoke")
    own = experiment.module("effects")
    bare = results_of(experiment, {p.name: xr.Dataset() for p in experiment.points}, {})
    at = {name: own.place(bare, name) for name in bare.points}
    data, predicted = {}, {}
    for name, (_, maps, angle) in at.items():
        rng = np.random.default_rng(int(name))
        variance, pair = 2 * (1 + 1e-4 * rng.normal(size=(2, BATCHES)))
        if (maps, angle) in own.IDENTICAL:
            pair = variance
        batch = {
            "noise_variance": ("batch", variance),
            "cross_noise_covariance": ("batch", correlations[maps, angle] * pair),
        }
        data[name] = terms.add_mcse(xr.Dataset(batch)).assign_attrs(replicates=99)
        law = (by_law or correlations)[maps, angle]
        overlaps = {"pair_overlap": law * np.ones(BATCHES), "own_overlap": np.ones(BATCHES)}
        predicted[name] = xr.Dataset({k: ("problem", v) for k, v in overlaps.items()})
    return results_of(experiment, data, predicted)


NUMBERS = {
    ("equal", 0.0): 1.0,
    ("equal", 90.0): 0.7,
    ("opposite", 0.0): 0.5,
    ("opposite", 90.0): 0.7,
    ("random", 0.0): 0.75,
    ("random", 90.0): 0.7,
    ("of the keys", 0.0): 1.0,
    ("of the keys", 90.0): 0.7,
}


def test_effects_are_these_numbers(experiment):
    own = experiment.module("effects").effects(made(NUMBERS))
    values = {
        family: sorted(round(effect.value, 3) for effect in found) for family, found in own.items()
    }
    assert values == {
        "gap to the law of the maps": [0.0] * 6,
        "correlation less 1, one key subspace": [-0.5, -0.25],
        "rise from orthogonal key subspaces": [-0.2],
    }


def test_the_law_is_one_of_sums_over_problems(experiment):
    """A ratio of means: two problems of overlaps 1 and 3 in pairs, 2 and 4 alone, have 2/3."""
    results = made(NUMBERS)
    name = results.points[0]
    pairs = {"pair_overlap": [1.0, 3.0], "own_overlap": [2.0, 4.0]}
    own = xr.Dataset({k: ("problem", v) for k, v in pairs.items()})
    changed = replace(results, predictions={**results.predictions, name: own})
    assert experiment.module("effects").law(changed, name) == pytest.approx(2 / 3)


def test_predictions_are_those_of_the_problems_that_are_simulated(experiment):
    """At the maps of every problem: determinants by hand from its frames."""
    from sims.study.population import members

    found = experiment.module("predict").predict(experiment)
    for point in experiment.points:
        maps = str(point.coordinates["heads.frames"])
        if maps not in ("random", "of the keys at 90°"):
            continue
        for problem, pair, own in zip(
            members(point, experiment.simulation.seed),
            found[point.name]["pair_overlap"].values,
            found[point.name]["own_overlap"].values,
            strict=True,
        ):
            heads = problem.heads
            one, two = (
                np.asarray(v) @ np.asarray(u).T / 1.69
                for u, v in zip(heads.frames, heads.of_keys, strict=True)
            )
            for first, second, value in ((one, two, pair), (one, one, own), (two, two, own)):
                form = first.T @ second
                inverse = np.linalg.det(np.eye(8) - 0.25 * (form + form.T))
                assert value == pytest.approx(inverse**-0.5)
