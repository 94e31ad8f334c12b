"""The effects of `temperature_transfer` on errors and attended keys that are made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.theory.neighbours.context import score_attended
from tests.experiments.runs import small

effects, predict, problems, roads, simulate = (
    load_experiment("temperature_transfer").module(name)
    for name in ("effects", "predict", "problems", "roads", "simulate")
)
WIDTH, BATCHES, BEND = 2, 6, 0.05
SIZES = np.array([256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0])
LOGS = np.linspace(-8, 8, 129)
FLOOR = dict(zip(problems.WEIGHED, (1.0, 1.3, 0.8, 0.7, 0.9), strict=True))
DRIFT = dict(zip(problems.WEIGHED, (-0.5, -0.3, 0.2, 0.1, -0.1), strict=True))
"""Of a rule: its least error, and by how much its best temperature moves with log n."""


def moved(rule):
    """Logarithms of the best temperature at every size, less that at the first."""
    return DRIFT[rule] * np.log(SIZES / SIZES[0])


@pytest.fixture
def road(monkeypatch):
    """Valleys of known floors, of every rule that has a temperature; the same in every batch."""
    curves = np.stack(
        [FLOOR[r] * np.exp(BEND * (LOGS[:, None] - moved(r)) ** 2) for r in problems.WEIGHED], -1
    )
    wobble = np.exp(0.01 * np.random.default_rng(0).normal(size=(BATCHES, 1, 1, 1, 1)))
    mse = wobble * np.broadcast_to(curves, (BATCHES, 3, *curves.shape))
    # Each group has a share of its own; keys grow by the law of d_k = 2, whatever the temperature.
    shape = (BATCHES, len(LOGS), len(SIZES), len(problems.WEIGHED))
    share = np.linspace(0.1, 0.6, BATCHES)[:, None, None, None]
    powers = [problems.ENTMAX.get(rule, np.nan) for rule in problems.WEIGHED]
    counts = SIZES[:, None] ** (2 * np.array(powers) / (2 * np.array(powers) + WIDTH))
    keys = np.stack([np.broadcast_to(share, shape), np.broadcast_to(counts, shape)])
    data = xr.Dataset(
        {
            "mse": (("batch", "smoothness", "step", "size", "weighed"), mse),
            "keys": (("of", "batch", "step", "size", "weighed"), keys),
        },
        {
            "smoothness": list(problems.SMOOTHNESS),
            "weighed": list(problems.WEIGHED),
            "of": list(predict.KEYS),
            "size": SIZES,
        },
    )
    made = roads.Road(
        "theory",
        {WIDTH: "d_k=2"},
        {WIDTH: data},
        SIZES,
        {WIDTH: dict.fromkeys(problems.TUNED, LOGS)},
    )
    own = [case for case in roads.cases(made) if case.rule in problems.WEIGHED]
    monkeypatch.setattr(effects, "cases", lambda _: iter(own))
    return made


def test_a_kept_rule_is_held_against_a_kept_one_and_a_tuned_against_a_tuned(road):
    """Kept, a rule's last error is its floor times exp(bend·drift²); tuned, the floor alone."""

    def last(rule):
        return FLOOR[rule] * np.exp(BEND * moved(rule)[-1] ** 2)

    found = {e.at["rule"]: e.value for e in effects.against(road)}
    assert set(found) == set(problems.WEIGHED) - {"1.5-entmax"}
    for rule, value in found.items():
        assert value == pytest.approx(last(rule) / last("1.5-entmax") - 1, rel=2e-3)
    for effect in effects.retuned(road, "softmax", ("relu gap", "sparsemax")):
        assert effect.value == pytest.approx(FLOOR[effect.at["rule"]] - 1, rel=2e-3)
    for effect in effects.gap_to_softmax(road):
        assert effect.value == pytest.approx(1 - last("relu gap") / last("softmax"), rel=2e-3)


def test_effective_keys_are_a_harmonic_mean_over_problems(road):
    case = roads.Case(WIDTH, "β = 1", "softmax")
    keys = effects.effective(road, case)
    np.testing.assert_allclose(keys, 1 / np.linspace(0.1, 0.6, BATCHES).mean())


def test_on_the_sphere_a_dimension_is_lost():
    """Keys that grow like n^(2ν/(2ν + d_k − 1)) leave no gap."""
    sizes = np.array([256, 1024, 4096])
    powers = np.array(list(problems.ENTMAX.values()))
    settings = {"sphere": {3: [1.0]}}
    counts = sizes ** (2 * powers / (2 * powers + 2))[:, None]
    wobble = np.exp(0.01 * np.random.default_rng(1).normal(size=(BATCHES, 1, 1)))
    data = xr.Dataset(
        {"attended_on_sphere": (("batch", "entmax", "size"), wobble * counts)},
        {"entmax": list(problems.ENTMAX), "size": sizes},
        {"replicates": 9},
    )

    results = SimpleNamespace(estimates={"sphere d_k=3": data}, settings=settings)
    for effect in effects.sphere(results):
        assert effect.value == pytest.approx(0, abs=1e-9)


def test_groups_of_unequal_norms_are_neighbours():
    """Problems 0 and 1 make the first batch, on both roads; queries of other norms the second."""
    whole = small("temperature_transfer").settings
    width, sizes = whole["unequal"], whole["sizes"][:1]
    few = {rule: {"dot": [0.5, 1.0, 2]} for rule in problems.TUNED} | {"top-k": {"dot": [8, 9, 2]}}
    settings = {**whole, "sizes": sizes, "problems_per_batch": 2, "norms": 100}
    settings["parameters"] = {width: few}
    found = predict.unequal(settings, 2)["unequal"].sel(entmax="sparsemax")
    norms = np.linalg.norm(problems.drawn(settings, width, 4)[0].queries, axis=1)
    s = problems.parameters(settings, "dot", width)["sparsemax"][0]
    each = np.array([score_attended(sizes[0], norm / s, 1.0) for norm in norms])
    expected = each.reshape(2, 2).mean(1)
    assert abs(expected[0] / expected[1] - 1) > 0.02
    np.testing.assert_allclose(found.isel(step=0, near=0), expected, rtol=2e-3)


def test_dot_products_have_temperatures_of_their_own():
    settings = small("temperature_transfer").settings
    width = settings["unequal"]
    grids = problems.parameters(settings, "dot", width)
    found = simulate.population(settings, width, 2, "dot").temperatures
    np.testing.assert_array_equal(found, np.stack([grids[rule] for rule in problems.WEIGHED]))
    other = simulate.population(settings, width, 2, "distance").temperatures
    assert not np.allclose(found, other)


def test_attended_keys_of_both_roads(road):
    """A simulation that attends to a tenth more than theory says."""
    data = road.data[WIDTH]
    more = 1.1 * data["keys"].sel(of="attended", drop=True)
    made = road._replace(name="simulation", data={WIDTH: data.assign(attended=more)})
    found = effects.attended(made, road)
    assert len(found) == 3 * len(problems.ENTMAX) * len(SIZES)
    for effect in found:
        assert effect.value == pytest.approx(0.1, rel=1e-6)
        assert effect.at["n_eff"] == pytest.approx(1 / np.linspace(0.1, 0.6, BATCHES).mean())
