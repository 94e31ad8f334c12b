"""Merging keys: which numbers its rows are of, by data of which no two are alike."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims.montecarlo.draws import Draw
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import drawn, is_mean_of, pseudovalues

EXPERIMENT = load_experiment("temporal_merging")
effects, predict, simulate = (
    EXPERIMENT.module(name) for name in ("effects", "predict", "simulate")
)
BATCHES = 24
MERGED = [
    "softmax, iid, s = 2, b = 1.4",
    "softmax, φ = 0.6, s = 2, b = 1.4",
    "softmax, φ = 0.9, s = 2, b = 1.4",
    "softmax, smooth, s = 2, b = 1.4",
    "softmax, smooth, s = 4, b = 1.4",
    "softmax, smooth, s = 8, b = 1.4",
    "gaussian, iid, s = 2, b = 0.6",
    "gaussian, φ = 0.9, s = 2, b = 0.6",
    "gaussian, smooth, s = 2, b = 0.6",
]
"""Drawn heads over slots that have unmerged ones beside them, at one temperature."""
DOUBLED = {"1.4": "1.98", "0.99": "1.4", "1.2": "1.7", "1.7": "2.4"}
"""Bandwidths of iid pairs of keys, to those of unmerged heads at twice the temperature."""


@pytest.fixture(scope="module")
def made():
    """One head over iid keys and one over iid pairs, of one limit; and all drawn heads."""
    rng = np.random.default_rng(3)
    bandwidths, strides = {"one": 1.4, "two": 1.4 * 0.5**0.5}, {"one": 1, "two": 2}
    estimates, predictions, problems = {}, {}, {}
    for place, name in enumerate(bandwidths):
        sizes = dict(zip(effects.TERMS, rng.uniform(0.5, 2, len(effects.TERMS)), strict=True))
        shared = rng.normal(size=BATCHES)
        data = {term: ("batch", drawn(rng, shared, size)) for term, size in sizes.items()}
        estimates[name] = xr.Dataset(data)
        effective = np.array([[80.0, 60.0], [40.0, 90.0], [70.0, 50.0]]) + place
        own = {"n_third": (("query", "head"), effective), "limit": (("query", "head"), effective)}
        predictions[name] = xr.Dataset(sizes | own | {"retuned": 1.7 * sizes["noise_variance"]})
        rule = {"scores": "dot", "stride": strides[name]}
        problems[name] = {
            "heads": {"kernel": rule, "bandwidth": bandwidths[name]},
            "design": {"kind": "autoregressive", "persistence": 0.0},
        }
    names = [case.name for case in effects.cases(EXPERIMENT.settings["drawn"], 1.4)]
    shape = (BATCHES, len(names))
    values = {
        f"drawn_{kind}": (("batch", "case"), rng.uniform(0.5, 2, len(names)) * noise)
        for kind in ("mse", "variance")
        for noise in [1 + 0.01 * rng.normal(size=shape)]
    }
    estimates["drawn problems"] = xr.Dataset(values, {"case": names})
    return Results(
        "temporal_merging",
        "standard",
        estimates,
        predictions,
        EXPERIMENT.settings,
        {name: {"design": "iid"} for name in problems},
        problems,
        {},
    )


def is_drawn_ratio(made, effect, variable, one, other):
    """Whether it is the ratio of a variable's means at two cases, less 1."""
    both = (made.estimates["drawn problems"][variable].sel(case=case) for case in (one, other))
    values = pseudovalues(lambda a, b: a / b, *(data.values for data in both))
    assert effect.label == f"{one} over {other}"
    is_mean_of(effect, values - 1)


def test_merging_at_one_temperature_raises_the_squared_error(made):
    """Of every law of keys, kernel and stride; held against one key a slot."""
    found = effects.of_errors(made)["rise of the error"]
    assert len(found) == len(MERGED)
    for effect, one in zip(found, MERGED, strict=True):
        kernel, design, stride, bandwidth = one.split(", ")
        other = ", ".join([kernel, design, "s = 1", bandwidth])
        is_drawn_ratio(made, effect, "drawn_mse", one, other)
        where = {"kernel": kernel, "design": design, "stride": int(stride[4:])}
        assert effect.at == where | {"bandwidth": float(bandwidth[4:])}


def test_merged_pairs_are_held_against_the_variance_at_twice_the_temperature(made):
    """τ = b², so b against √2 b, at each of four temperatures."""
    found = effects.of_errors(made)["variance over that at twice the temperature"]
    assert len(found) == len(DOUBLED)
    for effect, (b, warm) in zip(found, DOUBLED.items(), strict=True):
        pair = f"softmax, iid, s = 2, b = {b}", f"softmax, iid, s = 1, b = {warm}"
        is_drawn_ratio(made, effect, "drawn_variance", *pair)


def test_a_point_has_the_effective_slots_of_its_worst_query_and_head(made):
    found = effects.of_errors(made)
    for term in effects.TERMS:
        for effect, (name, least) in zip(
            found[f"gap of {term}"], {"one": 40.0, "two": 41.0}.items(), strict=True
        ):
            theory = float(made.predictions[name][term])
            is_mean_of(effect, made.estimates[name][term].values / theory - 1)
            assert effect.at["n_third"] == least
    (inflation,) = found["inflation of noise"]
    both = (made.estimates[name]["noise_variance"].values for name in ("two", "one"))
    is_mean_of(inflation, pseudovalues(lambda a, b: a / b, *both) / 1.7 - 1)
    assert inflation.at["n_third"] == 41.0


@pytest.mark.theory
@pytest.mark.parametrize(("persistence", "variance"), [(0.0, 0.5), (0.6, 0.8)])
def test_retuned_noise_is_that_of_merged_heads_of_the_same_limit(persistence, variance):
    """By first-order theory of slots themselves, for iid pairs and for φ = 0.6."""
    design = {"label": "own", "kind": "autoregressive", "persistence": persistence}
    rules = [{"label": str(s), "kind": "merged", "stride": s, "scores": "dot"} for s in (1, 2)]
    grid = [
        {"design": design, "heads.kernel": rule, "heads.bandwidth": bandwidth}
        for rule, bandwidth in zip(rules, (1.3 / variance**0.5, 1.3), strict=True)
    ]
    spec = EXPERIMENT.spec
    smoke = spec.at("smoke").model_copy(update={"grid": grid})
    spec = spec.model_copy(update={"fidelities": spec.fidelities | {"smoke": smoke}})
    small = replace(EXPERIMENT, spec=spec, fidelity="smoke")
    theory = predict.predict(small)
    one, two = (theory[point.name].squeeze("order") for point in small.points)
    np.testing.assert_allclose(one["limit"], two["limit"], rtol=1e-9)
    assert float(one["retuned"]) == pytest.approx(float(two["noise_variance"]), rel=1e-9)
    assert float(one["retuned"]) > 1.005 * float(one["noise_variance"])


@pytest.mark.parametrize("wrong", [0, 2, 5])
def test_passes_that_are_wrong_at_one_length_alone_are_found(monkeypatch, wrong):
    """The shortest, one between, the longest: by a tenth of the largest output."""
    settings = EXPERIMENT.settings
    length, own = settings["lengths"][wrong], simulate.cache.parallel

    def parallel(layer, x):
        found = own(layer, x)
        off = 0.1 * np.abs(found.output).max() if len(x) == length else 0.0
        return found._replace(output=found.output + off)

    draw = Draw.of(0, (), 2).draw(0, 0)
    before = simulate.passes(settings, 2, draw, None, None)
    monkeypatch.setattr(simulate.cache, "parallel", parallel)
    after = simulate.passes(settings, 2, draw, None, None)
    for gates in ("printed", "normalised"):
        name = f"parallel {gates}"
        assert before[name] < 64
        assert after[name] > 1e12


def test_squared_biases_at_one_limit_are_held_against_each_other(made):
    """Pairs of keys at τ and single keys at 2τ; most points are at the bandwidth of the pairs."""
    names = {"merged": (2, 1.4), "warm": (1, 1.4 * 2**0.5), "cold": (1, 1.4)}
    problems = {
        name: {
            "heads": {"kernel": {"scores": "dot", "stride": stride}, "bandwidth": bandwidth},
            "design": {"kind": "autoregressive", "persistence": 0.0},
        }
        for name, (stride, bandwidth) in names.items()
    }
    rng, like = np.random.default_rng(4), dict(zip(names, ("one", "two", "one"), strict=True))
    estimates = {
        name: made.estimates[key] * rng.uniform(0.9, 1.1, BATCHES) for name, key in like.items()
    }
    estimates["drawn problems"] = made.estimates["drawn problems"]
    results = replace(
        made,
        problems=problems,
        estimates=estimates,
        predictions={name: made.predictions[key] for name, key in like.items()},
        coordinates={name: {"design": "iid"} for name in names},
    )
    found = effects.of_errors(results)["squared bias at the equivalent temperature"]
    (effect,) = found
    assert effect.points == ("merged", "warm")
    both = (estimates[name]["squared_bias"].values for name in ("merged", "warm"))
    is_mean_of(effect, pseudovalues(lambda a, b: a / b, *both) - 1)
