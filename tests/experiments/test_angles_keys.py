"""The experiment `angles` on keys that are not isotropic: law, effects by hand, verdicts."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.theory import noise_correlation_law
from tests.experiments.by_hand import drawn, families, is_mean_of, pseudovalues
from tests.experiments.test_angles import BATCHES
from tests.experiments.test_angles import experiment as experiment
from tests.experiments.test_angles import results as results

MAJOR, MINOR = 1.9, 0.1
"""Variances along the axes of two coordinates of variance 1 and correlation 0.9."""


def pairs(fidelity):
    """Points of keys N(0, Σ)."""
    points = load_experiment("angles", fidelity).points
    return [p for p in points if p.coordinates["queries"] == "like keys"]


@pytest.mark.parametrize("point", pairs("standard"), ids=lambda point: point.name)
def test_the_law_of_a_pair_is_that_of_its_place_about_an_axis(point):
    """Variance and covariance of two heads at ± θ/2 about an axis, by hand; the same in R⁴."""
    experiment = load_experiment("angles", "standard")
    heads = point.spec.heads
    first, second = heads.frames.angles
    along, across = (MAJOR, MINOR) if first + second == 90 else (MINOR, MAJOR)
    if (first, second) != (0, 90):
        assert first + second == pytest.approx(90 if along == MAJOR else 270)
    half = np.deg2rad(second - first) / 2
    parts = along * np.cos(half) ** 2, across * np.sin(half) ** 2
    unit, cosine = np.sqrt(sum(parts)), abs(parts[0] - parts[1]) / sum(parts)
    found = experiment.module("predict").canonical(point)
    assert found["principal_angle"] == pytest.approx(second - first)
    assert found["canonical_correlation"] == pytest.approx(cosine, abs=1e-7)
    wanted = {"gaussian": 0.5, "softmax": 1.3}[heads.kernel]
    assert heads.bandwidth / unit == pytest.approx(wanted, rel=1e-7)
    law = noise_correlation_law([cosine] * heads.width, wanted, 0.5, heads.kernel)
    assert found["law"] == pytest.approx(float(law), rel=1e-6)


def test_heads_that_differ_in_more_than_correlation_are_refused():
    """Along one coordinate and along an axis: 1 and 1.9; no bandwidth is in units of both."""
    predict = load_experiment("angles", "standard").module("predict")
    point = pairs("standard")[0]
    frames = point.spec.heads.frames.model_copy(update={"angles": [0.0, 45.0]})
    heads = point.spec.heads.model_copy(update={"frames": frames})
    uneven = replace(point, spec=point.spec.model_copy(update={"heads": heads}))
    with pytest.raises(ValueError, match="more than correlation"):
        predict.canonical(uneven)


def test_effects_by_hand():
    """Pairs at one angle over one another; rises from the widest and the least canonical pair."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=BATCHES)
    # principal angle, canonical correlation, noise correlation
    made = {
        "wide": (90.0, 0.9, 0.8),
        "minor": (30.0, 0.1, 0.5),
        "major": (30.0, 0.99, 0.95),
        "other": (60.0, 0.4, 0.6),
    }
    estimates, predictions = {}, {}
    for index, (name, (angle, canonical, correlation)) in enumerate(made.items()):
        batches = shared[: BATCHES - index]
        sizes = {"cross_noise_covariance": 2 * correlation, "noise_variance": 2.0}
        sizes |= {"variance": 2.0, "ensemble_variance": 1.0}
        data = {k: ("batch", drawn(rng, batches, size)) for k, size in sizes.items()}
        estimates[name] = xr.Dataset(data)
        noise = rng.uniform(1, 2, (5, 1, 1)) * (0.5 + 0.5 * np.eye(2))
        predictions[name] = xr.Dataset(
            {
                "noise_covariance": (("query", "head", "head2"), noise),
                "law": correlation,
                "principal_angle": angle,
                "canonical_correlation": canonical,
            }
        )
    at = {name: {"heads.frames.angle": None} for name in made}
    found = families("angles", estimates, predictions, at)
    assert found["gap to the law"] == []

    def columns(name, count):
        names = ("cross_noise_covariance", "noise_variance")
        return [estimates[name][part].values[:count] for part in names]

    (alike,) = found["difference at one principal angle"]
    count = BATCHES - 2
    both = (*columns("minor", count), *columns("major", count))
    paired = pseudovalues(lambda a, b, c, d: (a / b) / (c / d), *both)
    is_mean_of(alike, paired - 1)
    assert alike.value == pytest.approx(0.5 / 0.95 - 1, abs=0.05)
    assert (alike.points, alike.at["angle"]) == (("minor", "major"), 30.0)

    def rise(name, start, count):
        each = (pseudovalues(lambda a, b: a / b, *columns(k, None)) for k in (name, start))
        first, second = each
        return first[:count] - second[:count]

    (orthogonal,) = found["rise from the orthogonal pair"]
    is_mean_of(orthogonal, rise("minor", "wide", BATCHES - 1))
    rises = {effect.points[0]: effect for effect in found["rise from the Σ-orthogonal pair"]}
    assert set(rises) == {"wide", "major", "other"}
    for name, count in {"wide": BATCHES - 1, "major": BATCHES - 2, "other": BATCHES - 3}.items():
        is_mean_of(rises[name], rise(name, "minor", count))
    gaps = {effect.label: effect for effect in found["gap to the law, canonical"]}
    assert set(gaps) == set(made)
    assert gaps["wide"].value == pytest.approx(0.0, abs=0.05)


def test_exact_theory_is_asked_of_the_populations_with_few_keys(monkeypatch):
    experiment = load_experiment("angles", "smoke")
    predict, asked = experiment.module("predict"), {}

    def noted(point, theory, _):
        asked[point.name] = theory.order
        return xr.Dataset()

    monkeypatch.setattr(predict, "predict_point", noted)
    monkeypatch.setattr(predict, "predict_terms", lambda *_: xr.Dataset())
    for name, empty in (("_laws", xr.Dataset()), ("_with_law", xr.Dataset()), ("canonical", {})):
        monkeypatch.setattr(predict, name, lambda *_, empty=empty: empty)
    predict.predict(experiment)
    most = experiment.settings["exact_keys"]
    drawn = [point for point in experiment.points if point.name in asked]
    orders = {True: experiment.theory.order, False: "first"}
    assert asked == {point.name: orders[point.spec.n <= most] for point in drawn}
    assert len(set(asked.values())) == 2
