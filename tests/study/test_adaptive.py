"""Sampling until claims are decided: who gets batches, when it stops, and that it is repeatable."""

import numpy as np
import pytest
import xarray as xr

from sims.estimates import skewness
from sims.judgement.intervals import sequence_half_width, skewed_half_width
from sims.papers import MAIN
from sims.study.adaptive import sample_until_decided
from sims.study.experiment import Experiment
from sims.study.results import Results
from sims.study.schema import ExperimentSpec
from sims.terms import add_mcse
from sims.validation import parse

MEANS, MARGIN = {"easy": 0.0, "hard": 0.85, "outside": 3.0, "at the margin": 1.0}, 1.0
MOST = 16384


def batches(name, count):
    """The first batches of a point: the same numbers however many are asked for."""
    rng = np.random.default_rng(list(MEANS).index(name))
    data = xr.Dataset({"mse": ("batch", rng.normal(MEANS[name], 2.0, MOST)[:count])})
    return add_mcse(data).assign_attrs(batches=count, replicates=count, replicates_per_batch=1)


EXPERIMENT = {
    "title": "t",
    "aim": "a",
    "data_generating_process": "d",
    "estimands": "e",
    "methods": "m",
    "performance_measures": "p",
    "fidelities": {"standard": {}},
    "claims": [
        {
            "id": "c",
            "statement": "s",
            "test": "equivalence",
            "effects": "means",
            "sequential": True,
            "margin": MARGIN,
            "formula": "f",
            "kind": "simulation",
            "over": ["seeds"],
        }
    ],
}
EFFECTS = """
from sims.effects import of_batches


def effects(results):
    values = {p: d["mse"].values for p, d in results.estimates.items()}
    return {"means": [of_batches(p, v, p) for p, v in values.items()]}
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "effects.py").write_text(EFFECTS)

    def go(names, limit=MOST, held=None, claims=1):
        settings = {"batches": 64, "max_batches": limit, "decide": "adaptive"}
        spec = parse(ExperimentSpec, EXPERIMENT | {"simulation": settings}, "file")
        experiment = Experiment(tmp_path, spec, allow_code=True)
        grown = []

        def extend(name, data, count):
            assert data.sizes["batch"] < count
            grown.append(name)
            return batches(name, count)

        start = {name: batches(name, 64) for name in names}
        results = Results("e", "standard", start, {}, {}, {})
        estimates = sample_until_decided(experiment, results, held or start, {MAIN: claims}, extend)
        return {n: d.sizes["batch"] for n, d in estimates.items()}, grown, estimates

    return go


def test_only_open_points_grow(run):
    sizes, grown, _ = run(["easy", "hard"])
    assert sizes["easy"] < 256 < sizes["hard"]
    assert grown.count("hard") > grown.count("easy")


def test_one_point_outside_settles_the_claim(run):
    assert run(["easy", "hard", "outside"])[0] == dict.fromkeys(["easy", "hard", "outside"], 64)


def test_more_claims_take_more_batches(run):
    assert run(["hard"], claims=100)[0]["hard"] > run(["hard"])[0]["hard"]


def test_it_stops_at_the_limit(run):
    assert run(["hard"], limit=304)[0] == {"hard": 304}


def test_a_claim_out_of_reach_is_let_be(run):
    """Its interval cannot leave the margin with what may be spent: nothing more is spent on it."""
    sizes, _, _ = run(["easy", "at the margin"])
    assert sizes["easy"] <= 128
    assert 400 < sizes["at the margin"] < MOST


def test_no_great_overshoot(run):
    """Little more than the first multiple of 8 at which the point would have been settled."""
    spent = run(["hard"])[0]["hard"]

    def settled(count):
        data = batches("hard", count)["mse"].values
        mean, error = data.mean(), data.std(ddof=1) / np.sqrt(count)
        half = sequence_half_width(error, count, 0.05)
        return mean + skewed_half_width(half, error, skewness(data)) <= MARGIN

    first = next(b for b in range(64, MOST, 8) if settled(b))
    assert first <= spent <= 1.5 * first + 8


def test_batches_drawn_before_change_nothing(run):
    fresh, _, data = run(["easy", "hard"])
    longer = {name: batches(name, MOST) for name in fresh}
    again, grown, repeated = run(["easy", "hard"], held=longer)
    assert (again, grown) == (fresh, [])
    for name in fresh:
        xr.testing.assert_identical(data[name], repeated[name])
