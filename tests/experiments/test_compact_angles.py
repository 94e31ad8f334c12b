"""The experiment `compact_angles`: what it draws, and verdicts that can come out either way."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from sims.study.units import units_of
from tests.experiments.runs import both_roads


@pytest.fixture(scope="module")
def experiment():
    whole = load_experiment("compact_angles", "smoke")
    smoke = whole.spec.at("smoke").model_copy(
        update={"simulation": {"batches": 2, "replicates_per_batch": 2}}
    )
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def drawn(experiment):
    return both_roads(experiment, lambda point: not point.startswith("few"))


@pytest.mark.parametrize("rule", ["biweight", "1.5-entmax", "softmax"])
def test_shared_noise_by_plain_loops(experiment, rule):
    units = units_of(experiment)
    name = next(name for name in units if f"{rule}, d_k=1" in name and "few" not in name)
    sampler, n = units[name].sampler, 6
    simulate = experiment.module("simulate")
    key = jax.random.key(4)
    found = simulate.shared_noise(key, sampler.constants, None, parts=("pair",), n=n, queries=2)
    heads, scale = sampler.constants
    for_keys, for_queries = jax.random.split(key)
    keys = np.asarray(jax.random.normal(for_keys, (n, 2), np.float64))
    queries = float(scale) * np.asarray(jax.random.normal(for_queries, (2, 2), np.float64))
    b = float(heads.bandwidth[0])

    def weights(frame, query):
        q, k = query @ frame, keys @ frame
        if rule == "softmax":
            parts = np.exp((k @ q) / b**2)
        else:
            square = ((q - k) ** 2).sum(1)
            h2 = b**2
            if rule == "1.5-entmax":
                low, high = 0.0, 1e3
                for _ in range(200):
                    h2 = (low + high) / 2
                    total = (np.maximum(h2 - square, 0) ** 2).sum()
                    low, high = (h2, high) if total < (4 * b**2) ** 2 else (low, h2)
            parts = np.maximum(h2 - square, 0) ** 2
        return parts / parts.sum() if parts.sum() > 0 else 0 * parts

    angles = np.deg2rad(experiment.settings["angles"])
    pair = np.zeros((2, len(angles)))
    for i, query in enumerate(queries):
        first = weights(np.array([[1.0], [0.0]]), query)
        for j, angle in enumerate(angles):
            pair[i, j] = first @ weights(np.array([[np.cos(angle)], [np.sin(angle)]]), query)
    np.testing.assert_allclose(found["pair"], pair.mean(0), rtol=1e-9, atol=1e-12)


def test_frames_have_their_angles(experiment):
    frames = experiment.module("simulate").frames_at([0, 30, 90], 2, 1)
    for angle, frame in zip((0, 30, 90), frames, strict=True):
        expected = np.diag([np.cos(np.deg2rad(angle)), 0.0])
        np.testing.assert_allclose(frame.T @ frame, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(frame[:2], expected, atol=1e-12)


@pytest.mark.parametrize("fidelity", ["smoke", "standard"])
def test_bandwidths_match(fidelity):
    """All rules of a group and width have one n_eff/n, to the digits given."""
    from sims.theory.first_order.angle_series import angle_series

    whole = load_experiment("compact_angles", fidelity)
    units_of(whole)
    rules = whole.module("predict")
    for point in rules.points(whole.settings):
        if point.group == "few" or (point.width == 2 and point.rule in ("sparsemax", "1.5-entmax")):
            continue
        share = {"many": 0.2, "flat": 0.6, "mild": 0.85}[point.group]
        found = angle_series(
            rules.rule_of(point.rule), point.bandwidth, 0.5, width=point.width, n=point.n, degree=2
        )
        assert found.aligned * share == pytest.approx(1, rel=2e-3)


def test_theory_says_that_the_gaussian_kernel_is_a_product(drawn):
    theory = drawn.prediction("many, gaussian, d_k=2")
    assert (abs(theory["product"]) <= theory["product_error"] + 1e-12).all()
    assert float(theory["product_error"].sel(angle=45)) < 0.01
    assert float(drawn.prediction("many, biweight, d_k=2")["product"].sel(angle=45)) < -1e-4


def test_few_keys_keep_the_radius():
    """c/n is that of many keys, so that the population's radius is: c = (2b²ν)^ν."""
    whole = load_experiment("compact_angles")
    units_of(whole)
    rules = whole.module("predict")
    found = {point.name: point for point in rules.points(whole.settings)}
    for rule, nu in (("sparsemax", 1.0), ("1.5-entmax", 2.0)):
        few, many = (found[f"{group}, {rule}, d_k=2"] for group in ("few", "many"))
        means = [(2 * p.bandwidth**2 * nu) ** nu / p.n for p in (few, many)]
        assert means[0] == pytest.approx(means[1], rel=1e-12)


def test_the_series_is_as_uncertain_as_it_says_relative_to_itself():
    """A law of 0.2 at 45°, known to 0.004, and of 0.05 at 90°, known to 0.003."""
    wobble = np.random.default_rng(5).normal(1, 0.05, (2, 12))
    pair, own = np.array([[0.2], [0.5]]) * wobble
    curve = np.stack([own, pair, 0.3 * pair], axis=1)
    estimates = {
        "p": xr.Dataset(
            {"pair": (("batch", "angle"), curve), "own": ("batch", own)},
            {"angle": [0.0, 45.0, 90.0]},
        )
    }
    law = xr.Dataset(
        {"law": ("angle", [1.0, 0.2, 0.05]), "law_error": ("angle", [0.0, 0.004, 0.003])}
    )
    at = {"rule": "biweight", "group": "mild", "width": 1, "n": 100}
    results = Results("compact_angles", "smoke", estimates, {"p": law}, {}, {"p": at}, {}, {})
    found = load_experiment("compact_angles").module("effects").gaps(results, "p")
    assert [effect.at["angle"] for effect in found] == [45.0, 90.0]
    assert [effect.bound for effect in found] == pytest.approx([0.02, 0.06])
