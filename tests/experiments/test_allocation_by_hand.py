"""Allocation's effects on errors made by hand, whose best widths are known beforehand."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("allocation", "standard")
SIZES, BUDGETS = [100, 1000], [16, 64]
WIDTHS = np.array([1, 2, 3, 4, 6, 8])
PER_ROAD = {"simulated": {100: 2.0, 1000: 3.5}, "theory": {100: 2.2, 1000: 3.2}}
"""Best widths of either road at D = 16; at D = 64 a quarter more."""


def best(road, n, budget):
    return PER_ROAD[road][n] * (1.25 if budget == 64 else 1.0)


class Splits:
    """Errors ``exp((log d_k − log d_k*)²)`` of both roads, with other best widths each."""

    point, settings = "blocks", {"geometry": "blocks"}
    theory = xr.Dataset(coords={"n": SIZES, "budget": BUDGETS, "family": ["smooth"]})

    def candidates(self, case, temperature):
        _, n, budget = case
        assert temperature == "fixed"
        simulated, theory = (
            np.exp((np.log(WIDTHS) - np.log(best(road, n, budget))) ** 2)
            for road in ("simulated", "theory")
        )
        return WIDTHS, np.tile(simulated, (8, 1)), theory


def test_growth_of_the_simulated_width_beside_theorys():
    families = EXPERIMENT.module("effects").movements(Splits())
    for effect, budget in zip(families["growth"], BUDGETS, strict=True):
        grown = {road: best(road, 1000, budget) - best(road, 100, budget) for road in PER_ROAD}
        assert effect.value == pytest.approx(grown["simulated"] - grown["theory"], rel=1e-9)
    for effect, budget in zip(families["growth, fixed"], BUDGETS, strict=True):
        grown = best("simulated", 1000, budget) - best("simulated", 100, budget)
        assert effect.value == pytest.approx(grown / np.log(10), rel=1e-9)
    for effect, (n, budget) in zip(families["counts, fixed"], product(SIZES, BUDGETS), strict=True):
        assert (effect.x, effect.at["n"]) == (budget, n)
        assert effect.value == pytest.approx(budget / best("simulated", n, budget), rel=1e-9)
    # d_k* ∝ D^p with p = log 1.25/log 4 makes H* = D/d_k* ∝ D^(1 − p).
    for effect in families["heads, fixed"]:
        assert effect.value == pytest.approx(-np.log(1.25) / np.log(4), rel=1e-9)


def test_theorys_slope_of_heads_is_fitted_to_all_budgets():
    """Widths that bend on log axes tell a fit to all budgets from one to the largest."""
    curves = EXPERIMENT.module("curves")
    least, sizes = curves.SLOPES["blocks"]
    budgets = np.array([least // 2, least, 2 * least, 4 * least, 16 * least])
    widths = 1 + np.log(budgets) ** 2
    optimum = xr.DataArray(
        np.broadcast_to(widths, (1, 1, len(sizes), len(budgets))),
        {
            "family": ["smooth"],
            "temperature": ["fixed"],
            "dense_n": list(sizes),
            "dense_budget": budgets,
        },
        ("family", "temperature", "dense_n", "dense_budget"),
    )
    fitted = np.polyfit(np.log(budgets[1:]), np.log(budgets[1:] / widths[1:]), 1)[0]
    best = xr.Dataset({"optimum": optimum, "optimum_error": 0 * optimum})
    effects = curves.slopes(best, "blocks", "fixed")
    assert [effect.value for effect in effects] == pytest.approx([fitted - 1] * len(sizes))


def test_the_transformers_bandwidth_squared_grows_like_the_root_of_the_width():
    predict = EXPERIMENT.module("predict")
    settings = {"bandwidth": 0.7, "ladder": [0.5, 0.7, 1.0]}
    ladder = predict.rungs(settings, np.array([1, 4, 16]))
    assert ladder[:, :-1].tolist() == [[0.5, 0.7, 1.0]] * 3
    assert ladder[:, -1] ** 2 == pytest.approx(0.49 * np.array([1.0, 2.0, 4.0]))


def test_only_splits_with_room_are_compared():
    """Of blocks, one head of the whole budget, or two and more: D = 6 has no room for two of 4."""
    effects = EXPERIMENT.module("effects")
    sizes = {"family": ["smooth"], "n": [100], "budget": [6], "width": [1, 3, 4, 6], "rung": [0]}
    dims = ("family", "n", "budget", "width", "rung")
    ones = xr.DataArray(np.ones([len(sizes[d]) for d in dims]), sizes, dims)
    splits = SimpleNamespace(
        theory=xr.Dataset({"mse": ones, "variance": ones, "n_eff": ones.isel(family=0, budget=0)}),
        batches=xr.Dataset({"mse": ones.expand_dims(batch=8)}),
        settings={"geometry": "blocks"},
        point="blocks",
        widths=lambda budget: effects.Splits.widths(splits, budget),
    )
    compared = [effect.label for effect in effects.agreement(splits, "mse")]
    assert [label.split("width ")[1] for label in compared] == ["1", "3", "6"]


def test_valley_of_a_parabola():
    predict = EXPERIMENT.module("predict")
    x = np.arange(6.0)
    shapes = np.exp(0.3 * (x - np.array([[2.3], [0.1], [4.4]])) ** 2)
    shapes[2, 5] = np.nan
    least, place, inside = predict.valley(shapes, x)
    assert (least[0], place[0]) == (pytest.approx(1.0), pytest.approx(2.3))
    assert inside.tolist() == [True, False, False]
    assert (place[1], least[1]) == (0.0, shapes[1, 0])
    assert place[2] == 4.0
    gone = predict.valley(np.full((1, 4), np.nan), x[:4])
    assert np.isnan(gone[0][0]) and not gone[2][0]  # noqa: PT018


def test_valley_between_whole_widths_is_that_of_the_curve():
    """Of a curve that is no parabola: nine points find its place, and its least, ten times nearer.

    The windows of the first and the last curve are cut off at the ends, or at a missing value.
    """
    predict, x, places = EXPERIMENT.module("predict"), np.arange(1.0, 13.0), [1.7, 5.3, 8.6]

    def curve(x, place):
        return 0.2 * np.exp(-0.5 * (x - place)) + 0.1 * (x - place) + 1

    shapes = np.stack([curve(x, place) for place in places])
    shapes[2, 10:] = np.nan
    least, place, inside = predict.valley(shapes, x)
    coarse = predict.valley(shapes, x, points=3)
    assert inside.all()
    np.testing.assert_allclose(place, places, atol=6e-3)
    np.testing.assert_allclose(least, 1.2, atol=5e-5)
    for good, bad, truth in ((place, coarse[1], places), (least, coarse[0], 1.2)):
        assert (10 * np.abs(good - truth) < np.abs(bad - truth)).all()
    # Of a polynomial of the sixth degree, seven points are as good as nine.
    smooth = np.exp(2e-4 * (x - 6.2) ** 6 + 0.1 * (x - 6.2) ** 2)[None]
    for points in (7, 9):
        assert predict.valley(smooth, x, points=points)[1] == pytest.approx(6.2, abs=1e-9)


def test_a_coarser_polynomial_goes_through_fewer_points_than_the_best():
    """Through seven for nine, three for five and four; of three points none is coarser."""
    predict, x, place = EXPERIMENT.module("predict"), np.arange(1.0, 13.0), 6.4
    curve = 0.2 * np.exp(-0.5 * (x - place)) + 0.1 * (x - place) + 1
    window = {3: (4, 7), 4: (3, 7), 5: (3, 8), 8: (2, 10), 12: (0, 12)}
    shapes = np.full((5, 12), np.nan)
    for row, (first, last) in zip(shapes, window.values(), strict=True):
        row[first:last] = curve[first:last]
    _, full, inside = predict.valley(shapes, x)
    _, coarse, told = predict.valley(shapes, x, coarser=True)
    assert inside.all()
    assert told.tolist() == [False, True, True, True, True]
    # Both places by a fit of one's own, to the points that are named.
    for row, used, found in [
        (0, (4, 7), full),
        (1, (3, 7), full),
        (2, (3, 8), full),
        (3, (2, 10), full),
        (4, (1, 10), full),
        (1, (4, 7), coarse),
        (2, (4, 7), coarse),
        (3, (2, 8), coarse),
        (4, (2, 9), coarse),
    ]:
        of, at = x[slice(*used)], np.linspace(5.5, 6.9, 140001)
        law = np.polynomial.Polynomial.fit(of, np.log(curve[slice(*used)]), len(of) - 1)
        assert found[row] == pytest.approx(at[np.argmin(law(at))], abs=2e-5), (row, used)
    # What is stated is a difference and no bound: of twelve points both places are good to 1e-4.
    off, said = np.abs(full - place)[1:], np.abs(full - coarse)[1:]
    assert (off[:3] < said[:3]).all()
    assert max(off[3], said[3]) < 1e-4


def test_a_polynomial_goes_through_values_that_are_not_known():
    """The least is among the known ones, with known ones to both sides; the rest tells its place.

    Values that are not positive have no logarithm: the polynomial ends before them.
    """
    predict, x, place = EXPERIMENT.module("predict"), np.arange(1.0, 13.0), 6.4
    curve = 0.2 * np.exp(-0.5 * (x - place)) + 0.1 * (x - place) + 1
    known = np.stack([np.isin(x, (5, 6, 7)), np.isin(x, (6, 7, 8)), np.isin(x, (8, 9, 10))])
    least, found, inside = predict.valley(np.tile(curve, (3, 1)), x, known)
    assert inside.tolist() == [True, False, False]
    whole = predict.valley(curve[None], x)
    assert (found[0], least[0]) == (whole[1][0], whole[0][0])
    assert found[1:].tolist() == [6, 8]
    assert least[1:].tolist() == [curve[5], curve[7]]
    cut = np.tile(curve, (2, 1))
    cut[0, 9:], cut[1, 9:] = np.nan, -1.0
    ends = predict.valley(cut, x, np.isin(x, (5, 6, 7))[None] & np.ones((2, 1), bool))[1]
    assert ends[0] == ends[1] != whole[1][0]


BANDS = {"bandwidths": {"low": 0.5, "high": 2, "count": 9}}


@pytest.fixture
def valleys():
    """Errors by width and bandwidth, (1, 12, 11), least at width 6.4 at all temperatures.

    The best bandwidth is near the fifth of nine; all are known.
    """
    widths, logs = np.arange(1.0, 13.0)[:, None], np.linspace(-1, 1, 9)
    error = 0.02 * np.exp(-0.5 * (widths - 6.4)) + 0.01 * widths + 0.3 * (logs - 0.1) ** 2
    value = np.exp(np.hstack([error[:, :1], error[:, :1], error]))[None]
    return value, np.ones(value.shape, bool)


def test_widths_whose_bandwidth_is_cut_off_bend_no_polynomial(valleys):
    """From width 9 on the best bandwidth is not admissible, and the least error jumps."""
    predict, (value, known) = EXPERIMENT.module("predict"), valleys
    known[0, 8:, 2:8] = False
    surface, best = predict.minima(value, known, BANDS)
    jumps = np.diff(np.log(surface[2, 0]))
    assert jumps[7] > 5 * np.abs(jumps[[6, 8]]).max()
    np.testing.assert_allclose(best[2], best[0], atol=1e-6)
    # Nor does one next to the best, and the polynomials end where the formula has no value.
    known[0, 6, 2:6] = False
    np.testing.assert_allclose(predict.minima(value, known, BANDS)[1][2], best[0], atol=1e-6)
    gone = np.where(known, value, np.nan)
    gone[0, 8:, :2] = np.nan
    short = predict.minima(gone, known, BANDS)[1]
    assert 1e-4 < abs(short[0, 0] - best[0, 0]) < 1e-2
    assert np.isnan(short[2, 0])
    # Where the best width itself is cut off it is not known.
    known[0, 5, 2:8] = False
    assert np.isnan(predict.minima(value, known, BANDS)[1][2, 0])


def test_a_least_value_below_the_best_is_no_continuation(valleys):
    """Where a width is cut off the formula may turn again, far below: nothing goes through that."""
    predict, (value, known) = EXPERIMENT.module("predict"), valleys
    known[0, 8:, 2:8] = False
    best = predict.minima(value, known, BANDS)[1]
    value[0, 9, 4] = 0.5 * value[0, 5].min()
    found = predict.minima(value, known, BANDS)[1]
    assert 0 < abs(found[2, 0] - best[2, 0]) < 5e-3
    np.testing.assert_array_equal(found[:2], best[:2])


def test_the_error_of_a_best_width_has_that_of_bandwidths(valleys):
    """It is not known where the best bandwidth is told by three values of the formula alone."""
    predict, (value, known) = EXPERIMENT.module("predict"), valleys
    fine, whole = (
        predict.minima(value, known, BANDS, coarser=coarser)[1] for coarser in (False, True)
    )
    assert 1e-5 < abs(whole[2, 0] - fine[2, 0]) < 1e-2
    three = value.copy()
    three[0, 5, [2, 3, 4, 8, 9, 10]] = np.nan
    assert np.isfinite(predict.minima(three, known, BANDS)[1][2, 0])
    coarse = predict.minima(three, known, BANDS, coarser=True)[1]
    assert np.isnan(coarse[2, 0])
    np.testing.assert_array_equal(coarse[:2], whole[:2])
    # A bandwidth's own error moves the width: here its valley is no parabola at width 7.
    skew = value.copy()
    skew[0, 6, 2:] *= np.exp(0.1 * np.linspace(-1, 1, 9) ** 7)
    moved = (
        predict.minima(skew, known, BANDS, coarser=True)[1] - predict.minima(skew, known, BANDS)[1]
    )
    assert abs(moved[2, 0]) > 2 * abs(whole[2, 0] - fine[2, 0])


def test_slope_of_heads_is_that_of_a_power():
    effects = EXPERIMENT.module("effects")
    budgets = [16, 24, 48]
    rng = np.random.default_rng(0)
    widths = 2 * np.array(budgets) ** 0.3 * (1 + 1e-3 * rng.normal(size=(64, 3)))
    assert effects.heads_slope(widths, budgets).mean() == pytest.approx(0.7, abs=2e-3)


def test_the_best_split_into_many_heads_is_what_few_are_held_against():
    """Errors that rise by a tenth with every coordinate of a head: one of width 1 is best."""
    widths, budgets = np.arange(1, 13), [8, 16, 48]
    axes = {"family": ["smooth"], "dense_n": [1e3, 1e4], "dense_budget": budgets}
    axes |= {"dense_width": widths, "temperature": ["fixed", "tuned"]}
    shape = [len(values) for values in axes.values()]
    rising = np.broadcast_to(1 + 0.1 * widths[:, None], shape)
    surface = xr.DataArray(rising, axes, tuple(axes))
    curves = EXPERIMENT.module("curves")
    found = curves.splittings(xr.Dataset({"surface": surface}), "surface", "tuned")
    # Half of 48 is more than any width.
    assert [effect.at["budget"] for effect in found] == [8, 16] * 2
    for effect in found:
        assert effect.value == pytest.approx((1 + 0.05 * effect.at["budget"]) / 1.1 - 1)


def test_a_curve_is_held_against_laws_from_its_first_n_to_its_last():
    n = np.logspace(2, 8, 61)
    widths = xr.DataArray(n**0.1, {"dense_n": n}, ("dense_n",))
    errors = xr.where(n > 9e7, np.nan, 0.01 * widths)
    sampled = EXPERIMENT.module("curves").curve(
        xr.Dataset({"optimum": widths, "optimum_error": errors})
    )
    assert [effect.bound for effect in sampled[:12]] == pytest.approx(
        0.01 * np.logspace(0.2, 0.75, 12)
    )
    assert sampled[12].bound == 0.0
    assert [effect.x for effect in sampled] == pytest.approx(np.logspace(2, 8, 13))
    assert [effect.value for effect in sampled] == pytest.approx(np.logspace(0.2, 0.8, 13))


def test_both_ends_are_held_against_the_best_split_between():
    widths = np.array([1, 2, 4, 8])
    predicted = np.array([6.0, 3.0, 2.0, 5.0])
    splits = SimpleNamespace(
        point="views",
        cases=lambda: [("smooth", 100, 8)],
        candidates=lambda case, temperature: (widths, np.tile(predicted, (8, 1)), predicted),
    )
    ends = EXPERIMENT.module("effects").simulated_depths(splits, "fixed")
    found = {effect.at["end"]: effect.value for effect in ends}
    assert found == {"narrowest": pytest.approx(2.0), "widest": pytest.approx(1.5)}


def test_any_number_of_heads_is_told_from_a_head_and_a_pool():
    """A head of error 3 and pairs of 0.5: H heads have 0.5 + 2.5/H, whatever the pool's size."""
    effects, regimes = EXPERIMENT.module("effects"), EXPERIMENT.module("regimes")
    axes = {"group": [24], "width": [1, 3, 8]}
    pools = [[0.5 + 2.5 / regimes.pooled_heads(24, width, 4) for width in axes["width"]]]
    head = xr.DataArray(np.full((1, 3), 3.0), axes, tuple(axes))
    splits = SimpleNamespace(
        theory=xr.Dataset(coords={"budget": [24]}), settings={"simulated": {"heads": 4}}
    )
    whole = effects.Splits._whole(splits, head, xr.DataArray(pools, axes, tuple(axes)))
    assert whole.values[0] == pytest.approx([0.5 + 2.5 * width / 24 for width in (1, 3, 8)])


def test_the_total_relevance_of_blocks_is_given_and_spread_over_their_budget(monkeypatch):
    """That of an additive target is each coordinate's own."""
    predict, seen = EXPERIMENT.module("predict"), []
    monkeypatch.setattr(
        predict,
        "block_terms",
        lambda *_, relevance, dimension, **__: seen.append((dimension, relevance)),
    )
    settings = {"geometry": "blocks", "queries": {"scale": 0.6}, "kernel": "gaussian"}
    for interactions, budget in product(("all", "none"), (8, 32)):
        family = {"interactions": interactions, "relevance": 2.0, "nu": None}
        predict.terms(settings, family, budget, np.array([1, 2]), np.ones((2, 1)))
    assert seen == [(8, 0.25), (32, 0.0625), (8, 2.0), (32, 2.0)]
