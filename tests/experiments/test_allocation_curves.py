"""Allocation, its curves of theory and pools of heads, on small settings and errors by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import BarycentricInterpolator
from scipy.optimize import minimize_scalar

from sims.study.experiment import load_experiment
from sims.theory import block_terms

EXPERIMENT = load_experiment("allocation", "standard")
curves, effects, predict, regimes = (
    EXPERIMENT.module(name) for name in ("curves", "effects", "predict", "regimes")
)
BANDS = {"low": 0.3, "high": 2.0, "count": 16}


@pytest.fixture(scope="module")
def small():
    """Settings of both geometries with few widths, budgets, bandwidths and sizes."""
    few = {
        "widest": 8,
        "budgets": [8, 16, 32],
        "bandwidths": BANDS,
        "decades": {"low": 3, "high": 5, "per_decade": 1},
    }
    grid = {"budgets": [8, 16], "widths": [1, 2, 4], "n": [100, 400], "heads": 4}
    settings = regimes.checked(EXPERIMENT.settings)
    return {name: settings[name] | few | {"simulated": grid} for name in ("views", "blocks")}


def test_a_single_head_of_blocks_is_that_of_its_own_budget():
    """Blocks of other budgets have targets of their own: D = 4 is not read off that of 8."""
    widths, groups = [1, 2, 4], [4, 8]
    axes = {"group": groups, "width": widths}
    own = xr.DataArray([[10.0, 20.0, 40.0], [100.0, 200.0, 400.0]], axes, tuple(axes))
    splits = SimpleNamespace(
        theory=xr.Dataset(coords={"budget": groups}), settings={"simulated": {"heads": 8}}
    )
    whole = effects.Splits._whole(splits, own, own)
    # Of equal squares of a head and of its pool every number of heads has that square.
    assert whole.sel(budget=4).values.tolist() == [10.0, 20.0, 40.0]
    assert whole.sel(budget=8).values.tolist() == [100.0, 200.0, 400.0]


def test_growth_at_the_fixed_bandwidth_is_held_against_that_of_the_same_budget():
    """d_k* = 2 (n/100)^p with a power p that every temperature and budget has for itself."""
    sizes, budgets, widths = [100, 1000], [16, 64], np.arange(1, 17)
    power = {"fixed": (0.30, 0.40), "transformer": (0.10, 0.35), "tuned": (0.05, 0.15)}

    def best(temperature, n, budget):
        return 2.0 * (n / 100) ** power[temperature][budgets.index(budget)]

    def candidates(case, temperature):
        _, n, budget = case
        errors = np.exp((np.log(widths) - np.log(best(temperature, n, budget))) ** 2)
        return widths, np.tile(errors, (8, 1)), errors

    splits = SimpleNamespace(
        theory=xr.Dataset(coords={"n": sizes, "budget": budgets, "family": ["smooth"]}),
        settings={"geometry": "views"},
        point="views",
        candidates=candidates,
    )
    found = {effect.label: effect.value for effect in effects.movements(splits)["slower"]}
    grown = {
        (name, budget): best(name, 1000, budget) - best(name, 100, budget)
        for name in power
        for budget in budgets
    }
    assert found == {
        f"{name}, smooth, {budget}": pytest.approx(grown["fixed", budget] - grown[name, budget])
        for name in ("transformer", "tuned")
        for budget in budgets
    }


def test_late_growth_is_that_at_the_transformers_temperature():
    sizes = np.logspace(2, 8, 7)
    powers = {"fixed": 0.5, "transformer": 0.25, "tuned": 0.1}
    axes = {"family": ["smooth", "rough"], "dense_budget": [16, curves.BUDGET]}
    axes |= {"temperature": list(powers), "dense_n": sizes}
    values = np.ones([len(v) for v in axes.values()])
    values[0, 1] = [sizes**power for power in powers.values()]
    optimum = xr.DataArray(values, axes, tuple(axes))
    early, late = curves.LATE
    error = xr.where(optimum["dense_n"] == late, 0.1, 0.0) * optimum
    found = curves.late_growth(xr.Dataset({"optimum": optimum, "optimum_error": error}))
    assert found.value == pytest.approx((late / early) ** 0.25 - 1)
    # A tenth too wide: the true one is narrower by a tenth, or wider by less than a ninth.
    assert found.bound == pytest.approx((late / early) ** 0.25 / 9)


def test_readings_of_a_target_have_best_widths_of_their_own(monkeypatch):
    """d_k* ∝ D^0.3 by the one reading makes H* ∝ D^0.7, d_k* ∝ D^−0.2 by the other D^1.2."""
    others = (
        "late_growth",
        "depths",
        "whole_depths",
        "splittings",
        "steps",
        "curve",
        "regimes",
        "quickenings",
        "noise_steps",
        "noise_rates",
    )
    for name in others:
        monkeypatch.setattr(curves, name, lambda *_: [])
    powers, predictions = xr.DataArray([0.3, -0.2], {"reading": ["coordinate", "one target"]}), {}
    for point, own in regimes.checked(EXPERIMENT.settings).items():
        axes = {"family": list(own["families"]), "temperature": list(curves.TEMPERATURES)}
        axes |= {"dense_budget": own["budgets"], "dense_n": regimes.sizes(own)}
        even = xr.DataArray(1.0, axes, tuple(axes))
        best = even.isel(temperature=0, drop=True) * even["dense_budget"] ** powers
        predictions[point] = xr.Dataset(
            {
                "optimum": even,
                "surface": even,
                "optimum_error": 0 * even,
                "reading_optimum": best,
                "reading_optimum_error": 0.01 * best,
            }
        )
    results = SimpleNamespace(settings=EXPERIMENT.settings, prediction=predictions.get)
    found = curves.families_of_theory(results)
    for kernel in ("", "softmax "):
        for reading, gap in (("coordinate", -0.3), ("one target", 0.2)):
            values = [effect.value for effect in found[f"{kernel}slope, blocks, {reading}"]]
            assert values == pytest.approx([gap] * len(values))
            # Logarithms of widths that are off by a hundredth, the narrow up and the wide down.
            own = regimes.checked(EXPERIMENT.settings)[f"{kernel}blocks"]
            least = curves.SLOPES[f"{kernel}blocks"][0]
            size = np.log([d for d in own["budgets"] if d >= least])
            pull = np.abs(size - size.mean()).sum() / np.sum((size - size.mean()) ** 2)
            bounds = [e.bound for e in found[f"{kernel}slope, blocks, {reading}"]]
            assert bounds == pytest.approx([-pull * np.log(0.99)] * len(values))


def test_depths_are_over_the_least_error_between_the_ends():
    axes = {"family": ["smooth"], "dense_n": [1e3], "dense_budget": [8, 16]}
    axes |= {"dense_width": [1, 2, 3, 4, 5]}
    errors = np.array([[6.0, 4.0, 2.0, 3.0, 5.0], [6.0, 2.0, np.nan, np.nan, np.nan]])
    found = curves.depths(xr.DataArray(errors[None, None], axes, tuple(axes)))
    assert [effect.value for effect in found[:2]] == [2.0, 1.5]
    # Two widths have nothing between them.
    assert np.isnan([effect.value for effect in found[2:]]).all()


def test_every_cell_of_the_map_has_labels_of_its_own_noise(small):
    """Cells that differ in the noise of labels alone share terms, and not their best widths."""
    cell = {"alpha": 0.8, "nu": None, "noise": 0.4}
    cells = [cell | {"noise_sd": noise_sd} for noise_sd in (0.5, 4.0)]
    found = predict.regimes(small["views"], cells)["map_optimum"].sel(temperature="fixed")
    for own, noise_sd in zip(found.values, (0.5, 4.0), strict=True):
        alone = predict.regimes(small["views"], [cell | {"noise_sd": noise_sd}])
        np.testing.assert_array_equal(own, alone["map_optimum"].sel(temperature="fixed")[0])
    smooth = small["views"] | {
        "noise_sd": 0.5,
        "families": {"smooth": {"alpha": 0.8, "lengthscale": 2.0, "nu": None}},
        "budgets": [24],
    }
    own = predict.dense(smooth)["optimum"].sel(temperature="fixed", dense_budget=24)
    np.testing.assert_allclose(found.values[0], own.values[0])
    # More noise asks for more heads, so for narrower ones.
    assert (found.values[1] < found.values[0] - 1).any()


def test_the_noise_of_labels_is_variance_and_no_bias(small):
    """What is left of the error without its variance is the same for labels of any noise."""
    bias = []
    for noise_sd in (0.5, 4.0):
        for name in ("views", "blocks"):
            data = predict.points(small[name] | {"noise_sd": noise_sd})
            bias.append((data["mse"] - data["variance"]).values)
            extra = data["variance"] - noise_sd**2 * data["noise"]
            bias.append(extra.values)
    np.testing.assert_allclose(bias[:4], bias[4:], rtol=1e-9, atol=1e-12)
    assert all((part[np.isfinite(part)] > 0).all() for part in bias)


def test_scaled_blocks_have_the_factor_that_is_best_at_their_own_size(small):
    """Errors ``E m² − 2cF + c² E f̂²`` of factors c tried one by one, with F at every n."""
    settings, widths = small["blocks"], np.array([1, 2, 4])
    family = settings["families"]["smooth"]
    bandwidths = predict.bands(settings, widths)
    own = predict.terms(settings, family, 8, widths, bandwidths)
    for n in (30.0, 1000.0):
        number = predict.number(8, widths)
        found = predict.curves(settings | {"least_n_eff": 0}, own, number, np.array([n]))
        error = found["surface"][0, 0, 1]
        fit = float((own.limit_fit + own.ratio_fit / n)[1, 0])
        square = error + 2 * fit - 1
        factor = np.linspace(0, 2, 20_001) * fit / square
        tried = (1 - 2 * factor * fit + factor**2 * square).min()
        assert found["scaled_surface"][0, 0, 1] == pytest.approx(tried, rel=1e-7)
    assert abs(float(own.ratio_fit[1, 0]) / 30) > 0.002 * abs(float(own.limit_fit[1, 0]))


def test_a_width_whose_bandwidth_is_the_last_of_the_grid_is_no_optimum():
    """Errors that are least at width 3; those of tuned bandwidths fall to the grid's end or not."""
    bandwidths = np.geomspace(BANDS["low"], BANDS["high"], BANDS["count"])
    width = np.exp(0.1 * (np.arange(1, 6) - 3.0) ** 2)[:, None]
    inside = np.exp(0.1 * np.log(bandwidths / bandwidths[5]) ** 2)
    for tuned, known in ((inside, True), (1 / bandwidths, False)):
        errors = width * np.concatenate([[1.0, 1.0], tuned])
        every = np.ones((1, *errors.shape), bool)
        found = predict.minima(errors[None], every, {"bandwidths": BANDS})[1][:, 0]
        np.testing.assert_allclose(found, [3, 3, 3 if known else np.nan])


def test_whole_heads_are_held_against_one_head_of_the_budget():
    """Widths that do not divide D are no splits; without one head there is nothing to compare."""
    axes = {"family": ["smooth"], "dense_n": [1e2, 1e3], "dense_budget": [4, 6]}
    axes |= {"dense_width": [1, 2, 3, 4, 5, 6]}
    errors = np.full((1, 2, 2, 6), np.nan)
    errors[0, :, 0, :4] = [6.0, 3.0, 0.1, 2.4]
    errors[0, 1, 1] = [6.0, 4.0, 2.0, 0.1, 0.1, 5.0]
    errors[0, 0, 1, :5] = [6.0, 4.0, 2.0, 0.1, 0.1]
    found = curves.whole_depths(xr.DataArray(errors, axes, tuple(axes)))
    of_four = [("narrowest", 1.0), ("one head", -0.2)]
    of_six = [("narrowest", 2.0), ("one head", 1.5)]
    assert [(e.at["n"], e.at["budget"], e.label.split(", ")[-1]) for e in found] == [
        (n, budget, end)
        for n, budget, ends in ((1e2, 4, of_four), (1e3, 4, of_four), (1e3, 6, of_six))
        for end, _ in ends
    ]
    values = [value for ends in (of_four, of_four, of_six) for _, value in ends]
    assert [e.value for e in found] == pytest.approx(values)


def test_few_and_many_blocks_are_whole():
    axes = {"family": ["smooth"], "dense_n": [1e3], "dense_budget": [6], "temperature": ["fixed"]}
    axes |= {"dense_width": [1, 2, 3, 4, 5, 6]}
    errors = np.array([4.0, 2.0, 3.0, 0.1, 0.1, 5.0]).reshape(1, 1, 1, 1, 6)
    surface = xr.Dataset({"surface": (tuple(axes), errors)}, axes)
    (found,) = curves.splittings(surface, "surface", "fixed")
    assert found.value == pytest.approx(3 / 2 - 1)


def test_simulated_splits_that_are_compared_are_whole():
    """At D = 6 widths 4 and 5, the best by either road, are neither the choice nor an end."""
    widths = np.array([1, 2, 3, 4, 5, 6])
    predicted = np.array([6.0, 4.0, 3.0, 0.1, 0.2, 5.0])
    simulated = np.tile([6.0, 2.0, 3.0, 0.1, 0.1, 4.5], (8, 1))
    splits = SimpleNamespace(
        point="views",
        cases=lambda: [("smooth", 100, 6)],
        candidates=lambda case, temperature: (widths, simulated, predicted),
    )
    (choice,) = effects.choices(splits, "fixed")
    assert choice.best == 2
    np.testing.assert_array_equal(choice.values, simulated[:, [0, 1, 2, 5]])
    ends = effects.simulated_depths(splits, "fixed")
    assert [(e.at["end"], e.value) for e in ends] == [
        ("narrowest", pytest.approx(6 / 3 - 1)),
        ("widest", pytest.approx(4.5 / 3 - 1)),
    ]


def test_readings_of_a_targets_relevance(small):
    """At one budget each they are the reading with a given total; elsewhere by their definition."""
    own = small["blocks"] | {"budgets": [16, predict.SAME_TARGET, 64], "widest": 16}
    found = predict.readings(own)["reading_optimum"]
    given = predict.dense(own)["optimum"].sel(temperature="fixed")
    known = np.isfinite(given.values)
    for place, reading in ((1, "coordinate"), (2, "one target")):
        here = found.sel(reading=reading).values[:, place]
        both = known[:, place]
        np.testing.assert_allclose(here[both], given.values[:, place][both], rtol=1e-9)
        assert both.any()
    widths = np.arange(1, 17)
    for reading, size, relevance in (
        ("coordinate", 16, 2 / predict.SAME_TARGET),
        ("one target", 64, 2 / 64),
    ):
        terms = block_terms(widths, 0.7, dimension=size, relevance=relevance, query_scale=0.6)
        expected = []
        for count in regimes.sizes(own):
            enough = count / np.asarray(terms.noise_variance) >= own["least_n_eff"]
            errors = np.log(np.where(enough, terms.error(count, 16 / widths, own["noise_sd"]), 1e9))
            errors[np.isnan(errors)] = np.inf  # no two blocks of such a width fit
            at = int(np.argmin(errors))
            if 0 < at < 15 and errors[at - 1 : at + 2].max() < np.log(1e9):
                # Nine, or all that theory knows: the first are known, then none.
                count = int(np.argmax(errors >= np.log(1e9))) or 16
                points = min(9, count)
                first = min(max(at - points // 2, 0), count - points)
                near = slice(first, first + points)
                curve = BarycentricInterpolator(widths[near], errors[near])
                sides = widths[at] - 1, widths[at] + 1
                expected.append(
                    minimize_scalar(
                        curve, bounds=sides, method="bounded", options={"xatol": 1e-9}
                    ).x
                )
            else:
                expected.append(widths[at] if widths[at] in (1, 16) else np.nan)
        here = found.sel(reading=reading).values[0, 0]
        np.testing.assert_allclose(here, expected, rtol=1e-6)
        assert np.isfinite(expected).any()


@pytest.mark.theory
def test_exponent_of_heads_with_one_given_target(small):
    """``1 − 1/(1 + d_k* log ρ)`` of docs/theory.md, beside the minima of first-order theory."""
    own = small["blocks"] | {"budgets": [64, 128, 256, 512], "widest": 24}
    found = regimes.labelled(predict.readings(own), own)["reading_optimum"]
    width = found.sel(reading="one target", family="smooth").sel(dense_n=1e4, method="nearest")
    width = width.values
    terms = block_terms(np.array([3, 4]), 0.7, dimension=512, relevance=2 / 512, query_scale=0.6)
    log_rho = float(np.log(terms.noise_variance[1] / terms.noise_variance[0]))
    slope = 1 - np.diff(np.log(width)) / np.log(2)
    between = np.sqrt(width[1:] * width[:-1])
    np.testing.assert_allclose(slope, 1 - 1 / (1 + between * log_rho), atol=0.03)
    assert np.all(slope < 0.8)


@pytest.mark.theory
def test_square_root_far_out(small):
    """With b re-tuned d_k(d_k + 2) ~ (2/α) log n, but only far beyond 10^8."""
    band = {"low": 1e-4, "high": 3.0, "count": 150}
    wide = small["views"] | {"latent": 40, "bandwidths": band, "least_n_eff": 10}
    widths, n = np.arange(1, 41), np.array([1e2, 1e8, 1e16, 1e32, 1e64])
    own = predict.terms(wide, wide["families"]["smooth"], 0, widths, predict.bands(wide, widths))
    best = predict.curves(wide, own, np.maximum(24 / widths, 1)[:, None], n)["optimum"][2]
    power = np.diff(np.log(best)) / np.diff(np.log(np.log(n)))
    assert power[0] > 0.65
    assert power[2:] == pytest.approx(0.5, abs=0.03)
    assert best[-1] * (best[-1] + 2) / np.log(n[-1]) == pytest.approx(2 / 0.8, rel=0.15)
