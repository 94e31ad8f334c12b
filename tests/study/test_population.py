"""Populations: a problem a batch, the same problems on both roads, and none held fixed."""

from dataclasses import replace

import numpy as np
import pytest

from sims import terms
from sims.errors import InputError
from sims.simulation import estimate
from sims.study.experiment import Point
from sims.study.population import estimate_population, members, predict_point
from sims.study.schema import PopulationSpec, SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec
from sims.theory import predict
from sims.validation import parse

SPEC = {
    "dimension": 4,
    "design": {"kind": "decaying_spectrum", "power": 1.0, "rotation_seed": 3},
    "target": {"kind": "rbf", "lengthscale": 2.0, "features": 4, "seed": 3},
    "noise_sd": 0.5,
    "heads": {
        "count": 2,
        "width": 1,
        "frames": {"kind": "haar", "seed": 3},
        "kernel": "softmax",
        "bandwidth": 1.2,
    },
    "n": 16,
    "queries": {"kind": "gaussian", "count": 2, "scale": 0.5, "seed": 3},
}
SETTINGS = SimulationSpec(seed=5, raw_labels=False, precision="float64")


@pytest.fixture(scope="module")
def point():
    spec = parse(ProblemSpec, SPEC, "problem")
    return Point("0000", {}, spec, PopulationSpec(problems=4, replicates=64))


def test_every_part_of_a_problem_is_drawn_anew(point):
    problems = members(point, 5)
    for part in (
        lambda p: p.task.design.covariance,
        lambda p: p.task.target.frequency,
        lambda p: p.heads.frames,
        lambda p: p.queries,
    ):
        every = np.stack([np.asarray(part(problem)).ravel() for problem in problems])
        assert len(np.unique(every.round(9), axis=0)) == len(problems)
    later = members(point, 6)
    np.testing.assert_array_equal(later[0].queries, problems[1].queries)


def test_a_part_without_a_seed_stays(point):
    heads = SPEC["heads"] | {"frames": {"kind": "equiangular", "cosine": 0.5, "seed": None}}
    spec = parse(ProblemSpec, SPEC | {"heads": heads}, "problem")
    one, other = (p.heads.frames for p in members(replace(point, spec=spec), 5)[:2])
    np.testing.assert_array_equal(one, other)


def test_key_frames_are_drawn_apart_from_frames_of_the_same_seed(point):
    """W_Q and W_K: of one kind and one seed, in a file and in a population, yet other draws."""
    heads = SPEC["heads"] | {"key_frames": SPEC["heads"]["frames"]}
    spec = parse(ProblemSpec, SPEC | {"heads": heads}, "problem")
    own = spec.build().heads
    frames = parse(ProblemSpec, SPEC, "problem").build().heads.frames
    np.testing.assert_array_equal(own.frames, frames)
    every = [own, *(problem.heads for problem in members(replace(point, spec=spec), 5))]
    both = np.stack([np.ravel(part) for h in every for part in (h.frames, h.key_frames)])
    assert len(np.unique(both.round(9), axis=0)) == 10
    overlap = np.einsum("hdk,hdk->", own.frames, own.key_frames)
    assert abs(overlap) < 1.9  # of 2 where they are one


def test_both_roads_are_those_of_every_problem(point):
    simulated = estimate_population(point, SETTINGS)
    predicted = predict_point(point, TheorySpec(order="both"), 5)
    for place, problem in enumerate(members(point, 5)):
        own = estimate(
            *problem,
            5,
            stream=(place,),
            batches=2,
            replicates_per_batch=32,
            raw_labels=False,
            precision="float64",
            keep_queries=False,
        )
        first, exact = predict(*problem), predict(*problem, order="exact")
        for term in terms.SCALARS:
            np.testing.assert_allclose(simulated[term][place], own[term].mean(), rtol=1e-12)
            each = predicted[f"each_{term}"].isel(problem=place)
            np.testing.assert_allclose(each, [first[term], exact[term]], rtol=1e-12)
    np.testing.assert_allclose(predicted["mse"], predicted["each_mse"].mean("problem"))
    assert simulated.attrs["replicates"] == 4 * 64
    assert simulated.sizes["batch"] == simulated.attrs["batches"] == 4


def test_effective_keys_are_a_harmonic_mean(point):
    found = predict_point(point, TheorySpec(order="first"), 5)["n_eff"].values[0]
    each = [predict(*problem)["n_eff"].values for problem in members(point, 5)]
    np.testing.assert_allclose(found, 4 / sum(1 / keys for keys in each), rtol=1e-12)
    assert (found < 0.999 * np.mean(each, axis=0)).all()


def test_what_is_said_of_problems_names_the_first(monkeypatch, point):
    """A phrase about several problems is said once, of the first; problems count from 0."""
    from sims.study import population

    def estimate_terms(*arguments, stream, **options):
        data = estimate(*arguments[0], 5, batches=2, replicates_per_batch=4, precision="float64")
        phrases = {0: ["both"], 1: ["both", "late"]}
        return data.assign_attrs(cautions=phrases.get(stream[0], []))

    monkeypatch.setattr(population, "estimate_terms", estimate_terms)
    said = estimate_population(point, SETTINGS).attrs["cautions"]
    assert said == ["problem 0: both", "problem 1: late"]


def test_the_roads_agree_over_the_population(point):
    """Standardised differences of 128 problems: the false-alarm rate is about 1e-4 a term."""
    drawn = replace(point, population=PopulationSpec(problems=128, replicates=32))
    simulated = estimate_population(drawn, SETTINGS)
    predicted = predict_point(drawn, TheorySpec(order="both"), 5).sel(order="exact")
    for term in ("squared_bias", "signal_variance", "noise_variance", "cross_noise_covariance"):
        gap = simulated[term].values - predicted[f"each_{term}"].values
        assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap)), term


@pytest.mark.parametrize(
    "given", [{"problems": 1, "replicates": 8}, {"problems": 8, "replicates": 5}]
)
def test_impossible_populations_are_refused(given):
    with pytest.raises(InputError):
        parse(PopulationSpec, given, "population")
