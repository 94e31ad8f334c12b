"""The experiment `lottery_tickets`: effects by hand, what it draws, what turns a verdict."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads

WITHOUT_THEORY = ("width", "lengths")


@pytest.fixture(scope="module")
def experiment():
    """At smaller sizes, with batches enough for verdicts."""
    whole = load_experiment("lottery_tickets", "smoke")
    smoke = whole.spec.at("smoke")
    curves = whole.spec.settings["curves"] | {"d": [1, 2], "sources": [2, 2], "blocks": [1, 2]}
    smoke = smoke.model_copy(
        update={
            "settings": smoke.settings | {"curves": curves},
            "simulation": {"batches": 64},
        }
    )
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def results(experiment):
    found = both_roads(experiment, lambda point: not point.startswith(WITHOUT_THEORY))
    return found


def changed(results, point, **values):
    data = results.estimates[point]
    data = data.assign({name: change(data[name]) for name, change in values.items()})
    return replace(results, estimates=results.estimates | {point: data})


def test_rates_are_held_to_ln2_over_d(results, experiment):
    """Exact exponentials with a little noise; ln 2 an item for d = 2 is twice too steep."""
    rng = np.random.default_rng(1)
    points = {f"curve d={d} within B=1": d for d in (1, 2)}

    def with_rate(rate):
        made = results
        for point, d in points.items():
            items = made.estimates[point]["per_entry"].values
            noise = 1e-3 * rng.standard_normal((64, len(items)))
            values = np.exp(-rate(d) * d * items + noise)
            made = changed(made, point, median_output=lambda v, own=values: 0 * v + own)
        return verdicts(experiment, made)["slt-rate", "targets within the assumption"]

    assert with_rate(lambda d: 1.03 * np.log(2) / d) == "supported"
    assert with_rate(lambda d: np.log(2)) == "refuted"


def test_needed_items_by_hand(experiment):
    """Curves −n′ ln 2 + ln N need log₂ N + 11 items at a tolerance of 2^−11."""
    effects = experiment.module("effects")
    items, counts = np.array([8.0, 12.0, 16.0, 20.0]), np.array([2.0, 8.0, 32.0])
    log = -items[:, None] * np.log(2) + np.log(counts)
    found = effects.by_entries(log, items)
    np.testing.assert_allclose(found, np.log2(counts) + 11)
    assert effects.slope(found, np.log2(counts)) == pytest.approx(1)
    found = effects.by_tolerance(log, items, 2)
    np.testing.assert_allclose(found[:3], 5 + np.arange(9.0, 12.0))


def test_fit_by_hand(results, experiment):
    effects, point = experiment.module("effects"), "curve d=2 products B=1"
    items = results.estimates[point]["per_entry"].values
    made = changed(results, point, mean_output=lambda v: 0 * v + 0.5 * np.exp(-0.1 * 2 * items))
    size, rate = effects.fitted(made, point)
    np.testing.assert_allclose(size, 0.5, rtol=1e-9)
    np.testing.assert_allclose(rate, 0.1, rtol=1e-9)


def test_what_is_above_the_bound_is_its_excess(experiment):
    """Ratios to the bound below 1 exceed it by nothing, one of 1.3 by 0.3."""
    over = np.tile([0.2, 0.9], (64, 1))
    over[3, 1] = 1.3
    data = xr.Dataset(
        {"over_bound": (("batch", "length"), over), "error_by_length": (("batch", "length"), over)}
    ).assign_attrs(replicates=99)
    made = Results(
        "lottery_tickets",
        "smoke",
        {"lengths": data},
        {},
        {},
        {"lengths": {"part": "lengths"}},
        {},
        {},
    )
    (effect,) = experiment.module("effects").others(made)["bound by tanh"]
    assert effect.values.max() == pytest.approx(0.3)
    assert np.count_nonzero(effect.values) == 1


def test_targets_are_what_they_are_called(experiment):
    simulate, rng = experiment.module("simulate"), np.random.default_rng(2)
    for name, most in (("within", 1.0), ("edge", 1.0), ("tiny", 0.01)):
        drawn = simulate.targets(rng, name, (200, 2, 3, 3))
        norms = np.linalg.norm(drawn, 2, axis=(-2, -1)) * [3**0.5, 1]
        assert norms.max() <= most * (1 + 1e-12)
        assert (norms.min() > most * (1 - 1e-9)) == (name != "within")
    spread = simulate.targets(rng, "products", (4000, 2, 2, 2)).std()
    assert spread == pytest.approx((8 / 9) ** 0.5, rel=0.03)


def test_items_share_u_down_a_column(experiment):
    items = experiment.module("simulate").products(np.random.default_rng(0), (5, 3, 2), 4)
    assert items.shape == (5, 3, 2, 4)
    assert abs(items).max() <= 1
    many = experiment.module("simulate").products(np.random.default_rng(0), (20000, 2, 2), 1)[
        ..., 0
    ]
    squares = many**2
    own, other = (
        np.corrcoef(squares[:, 0, 0], squares[:, i, j])[0, 1] for i, j in ((1, 0), (0, 1))
    )
    assert own > 0.2 > 0.03 > abs(other)


def test_blocks_add_to_what_they_are_given(experiment):
    simulate, rng = experiment.module("simulate"), np.random.default_rng(3)
    tokens, matrices = rng.standard_normal((2, 3, 4, 2)), rng.standard_normal((2, 2, 2, 2, 2))
    found = simulate.passed(tokens, matrices)
    x = tokens[1, 2]
    for block in range(2):
        scores = x @ matrices[1, block, 0] @ x.T
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        x = x + weights @ x @ matrices[1, block, 1]
    np.testing.assert_allclose(found[1, 2], x, atol=1e-12)


@pytest.mark.parametrize("name", ["within", "edge", "products", "tiny"])
def test_predicted_entries_are_those_that_are_drawn(experiment, name):
    """Mean squares of both roads' own draws, within 5 % (standard errors below 1 %)."""
    rng = np.random.default_rng(4)
    drawn = experiment.module("simulate").targets(rng, name, (30000, 2, 3, 3))
    said = experiment.module("predict").entries(rng, name, 3, 200000)
    assert (said**2).mean() == pytest.approx((drawn**2).mean(), rel=0.05)


def test_many_items_are_searched_in_part(experiment):
    """Never better than the exact solver, exact for few items, and near for many."""
    simulate, rng = experiment.module("simulate"), np.random.default_rng(6)
    items, goal = rng.uniform(-1, 1, (60, 16)), rng.uniform(-1, 1, 60)
    exact = abs(simulate.closest(items, goal) - goal)
    few = abs(simulate.nearly_closest(items, goal, 16) - goal)
    np.testing.assert_allclose(few, exact, atol=1e-12)
    part = abs(simulate.nearly_closest(items, goal, 10) - goal)
    assert np.all(part >= exact - 1e-12)
    assert np.median(part) < 2.0**-8
