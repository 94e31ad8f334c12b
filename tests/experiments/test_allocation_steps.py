"""What moves d_k*: decay and smoothness, on widths known by construction, and laws of docs."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.judgement.curves import deviation
from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("allocation", "standard")
curves, effects, predict, regimes = (
    EXPERIMENT.module(name) for name in ("curves", "effects", "predict", "regimes")
)
SIZES, BUDGETS, WIDTHS = [100, 1000, 10_000], [16, 64], np.array([1, 2, 3, 4, 6, 8])
FAMILIES = {"smooth": 2.0, "rough": 2.4, "slow": 3.2}
POWERS = {"smooth": 0.05, "rough": 0.09, "slow": 0.12}
PAIRS = {"decay": "slow", "smoothness": "rough"}
TEMPERATURES = {"fixed": 1.0, "transformer": 0.97, "tuned": 0.94}


def best(family, n, budget, temperature="fixed"):
    """A best width that every family, n, D and temperature has for itself, or beyond the grid."""
    if (family, n, budget, temperature) in EDGES:
        return EDGES[family, n, budget, temperature]
    width = FAMILIES[family] * (n / 100) ** POWERS[family] * (1.05 if budget == 64 else 1.0)
    return width * TEMPERATURES[temperature] ** FAMILIES[family]


EDGES = {
    ("rough", 100, 64, "fixed"): 0.6, ("rough", 1000, 16, "tuned"): 0.6,
    ("slow", 10_000, 64, "fixed"): 11.0, ("slow", 1000, 64, "transformer"): 11.0,
}  # fmt: skip
"""Cases whose best width is beyond the narrowest or the widest of the grid."""


def candidates(case, temperature, simulated=1.0):
    """Both roads' errors; the simulated best width is theory's times a factor."""
    theory, own = (
        np.exp((np.log(WIDTHS) - np.log(factor * best(*case, temperature))) ** 2)
        for factor in (1.0, simulated)
    )
    return WIDTHS, np.tile(own, (8, 1)), theory


def made(factors):
    """Splits whose simulated best widths are theory's times a factor by family."""
    return SimpleNamespace(
        theory=xr.Dataset(coords={"n": SIZES, "budget": BUDGETS, "family": list(FAMILIES)}),
        settings={"geometry": "views"}, point="views",
        candidates=lambda case, name: candidates(case, name, factors[case[0]]),
    )  # fmt: skip


@pytest.mark.parametrize("what", curves.STEPS)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_simulated_steps_are_over_the_smooth_target_at_the_same_n(what, temperature):
    """Of the simulation and not of theory, at all n and D with inner minima of both families."""
    factors, first = {"smooth": 1.02, "rough": 0.97, "slow": 1.05}, PAIRS[what]
    found = effects.steps(made(factors), what, temperature)
    cases = [(n, d) for n in SIZES for d in BUDGETS if (first, n, d, temperature) not in EDGES]
    assert [(e.at["n"], e.at["budget"]) for e in found] == cases
    for effect, (n, budget) in zip(found, cases, strict=True):
        widths = [factors[k] * best(k, n, budget, temperature) for k in (first, "smooth")]
        assert effect.value == pytest.approx(np.log(widths[0] / widths[1]), rel=1e-9)
        assert effect.points == ("views",)


def test_the_step_is_of_mean_widths_and_paired():
    """Batches that move both widths alike leave no error, and pseudo-values are no logarithms."""
    rng = np.random.default_rng(0)
    common = 1 + 0.2 * rng.normal(size=64)
    paired = effects.log_ratio(3.0 * common, 2.0 * common)
    np.testing.assert_allclose(paired, np.log(1.5), rtol=1e-9)
    own = effects.log_ratio(3.0 + 0.3 * rng.normal(size=64), 2.0 * common)
    assert own.std() > 0.1
    assert np.isnan(effects.log_ratio(-3.0 * common, 2.0 * common)).all()


@pytest.mark.parametrize("what", curves.STEPS)
def test_theorys_steps_are_over_the_smooth_target_at_the_same_n_and_budget(what):
    """Where theory has no inner minimum of either (NaN) there is no step."""
    first = PAIRS[what]
    values = [[[best(k, n, d) for n in SIZES] for d in BUDGETS] for k in FAMILIES]
    axes = {"family": list(FAMILIES), "dense_budget": BUDGETS, "dense_n": SIZES}
    optimum = xr.DataArray(values, axes, tuple(axes))
    gone = [("rough", 16, 1000), ("smooth", 64, 100), ("slow", 64, 10_000)]
    for family, budget, n in gone:
        optimum.loc[{"family": family, "dense_budget": budget, "dense_n": n}] = np.nan
    errors = 0.01 * optimum**2
    found = curves.steps(xr.Dataset({"optimum": optimum, "optimum_error": errors}), what)
    without = {(n, d) for family, d, n in gone if family in (first, "smooth")}
    cases = {(n, d) for n in SIZES for d in BUDGETS} - without
    assert {(e.at["n"], e.at["budget"]) for e in found} == cases
    for effect in found:
        n, budget = effect.at["n"], effect.at["budget"]
        expected = np.log(best(first, n, budget) / best("smooth", n, budget))
        assert effect.value == pytest.approx(expected, rel=1e-12)
        off = sum(-np.log(1 - 0.01 * best(k, n, budget)) for k in (first, "smooth"))
        assert effect.bound == pytest.approx(off)


def test_an_inner_minimum_has_known_widths_to_both_sides():
    """Widths of infinite error by theory are none, so that the last known one is an end."""
    predicted = np.array([5.0, 3.0, 2.0, 4.0])
    for errors, inner in (
        (predicted, True), (predicted[::-1], True), (np.sort(predicted), False),
        (-np.sort(-predicted), False), ([5.0, 3.0, 2.0, np.inf], False), ([np.inf] * 4, False),
    ):  # fmt: skip
        splits = SimpleNamespace(
            candidates=lambda case, name, e=errors: (WIDTHS[:4], None, np.asarray(e))
        )
        assert effects.inside(splits, ("smooth", 100, 16), "fixed") is inner


def test_a_square_root_is_not_told_from_its_neighbours():
    """Powers of log n from 0.27 to 0.73 are within 2 % of a + p √log n, as docs/theory.md says."""
    n = np.logspace(2, 8, 13)
    off = {q: deviation(n, np.log(n) ** q, 0.5) for q in (0.25, 0.27, 0.73, 0.75)}
    assert [off[q] < 0.02 for q in off] == [False, True, True, False]


@pytest.mark.theory
def test_exponents_that_fit_the_re_tuned_width():
    """Of a + p (log n)^q: 0.30 to 0.62 (gaussian, smooth target); softmax is bent upwards."""
    for point, within, beyond in (
        ("views", (0.30, 0.62), (0.26, 0.66)), ("softmax views", (1.06, 1.51), (1.03, 1.54))
    ):  # fmt: skip
        own = regimes.checked(EXPERIMENT.settings)[point]
        own = own | {"budgets": [curves.BUDGET], "families": {"smooth": own["families"]["smooth"]}}
        best = regimes.labelled(predict.dense(own), own)
        found = curves.curve(best.sel(temperature="tuned", family="smooth").isel(dense_budget=0))
        x, y = ([getattr(e, k) for e in found] for k in ("x", "value"))
        assert max(deviation(x, y, q) for q in within) < 0.02
        assert min(deviation(x, y, q) for q in beyond) > 0.02
        # As near to a logarithm itself as docs/theory.md says, softmax from 10³ keys on, too.
        if point == "softmax views":
            assert deviation(x, y) == pytest.approx(0.0244, abs=5e-4)
            assert x[2] == 1e3
            assert deviation(x[2:], y[2:]) == pytest.approx(0.0125, abs=5e-4)


@pytest.mark.parametrize("third", [None, 4.0])
def test_softmax_is_trusted_where_the_third_moment_has_enough_keys(third):
    """Of two widths with 100 effective keys one has n_third = 4, below 10, which is asked for."""
    splits = object.__new__(effects.Splits)
    axes = {"family": ["smooth"], "n": [100], "budget": [8], "width": [1, 2], "rung": [0, 1]}
    at = ("n", "width", "rung")
    theory = {
        "mse": (tuple(axes), np.full((1, 1, 1, 2, 2), 0.5)),
        "n_eff": (at, np.full((1, 2, 2), 100.0)),
    }
    if third:
        theory["n_third"] = (at, np.array([[[50.0, 50.0], [third, third]]]))
    splits.theory = xr.Dataset(theory, axes, {"fixed": 0, "least_n_eff": 10.0})
    errors = np.ones((6, 1, 1, 1, 2, 2))
    splits.batches = xr.Dataset({"mse": (("batch", *axes), errors)}, axes)
    splits.settings, splits._candidates = {"geometry": "views"}, {}
    widths, simulated, predicted = splits.candidates(("smooth", 100, 8), "fixed")
    assert (widths.tolist(), simulated.shape) == ([1, 2], (6, 2))
    assert predicted.tolist() == [0.5, np.inf if third else 0.5]


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_families_of_steps_are_of_the_temperature_and_the_kernel_in_their_names(
    monkeypatch, temperature
):
    """By theory, of widths that each temperature and kernel has for itself; no other family."""
    others = ("late_growth", "depths", "whole_depths", "splittings", "slopes", "curve", "regimes",
              "quickenings", "noise_steps", "noise_rates")  # fmt: skip
    for name in others:
        monkeypatch.setattr(curves, name, lambda *_: [])
    predictions = {}
    for point, own in regimes.checked(EXPERIMENT.settings).items():
        axes = {"family": list(own["families"]), "temperature": list(TEMPERATURES)}
        axes |= {"dense_budget": own["budgets"], "dense_n": regimes.sizes(own)}
        even = xr.DataArray(1.0, axes, tuple(axes))
        hot = xr.DataArray([0.1, 0.2, 0.3], {"temperature": list(TEMPERATURES)})
        tall = xr.DataArray(np.arange(3.0), {"family": list(own["families"])})
        optimum = even * np.exp(tall * hot * (2 if point.startswith("softmax") else 1))
        nothing = {"optimum_error": 0 * even, "surface": even, "scaled_surface": even}
        reading = {"reading": ["coordinate"]}
        first = even.isel(temperature=0, drop=True).expand_dims(reading)
        nothing |= {"reading_optimum": first, "reading_optimum_error": 0 * first}
        predictions[point] = xr.Dataset({"optimum": optimum, **nothing})
    results = SimpleNamespace(settings=EXPERIMENT.settings, prediction=predictions.get)
    found = curves.families_of_theory(results)
    # Of families in the order smooth, rough, slow: 1 and 2 times as much as the temperature's.
    power = {"fixed": 0.1, "transformer": 0.2, "tuned": 0.3}[temperature]
    for kernel, factor in (("", 1), ("softmax ", 2)):
        for what, times in (("smoothness", 1), ("decay", 2)):
            values = [effect.value for effect in found[f"{kernel}step of {what}, {temperature}"]]
            assert values == pytest.approx([times * factor * power] * len(values))
            assert len(values) > 400


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_families_of_simulated_steps_are_of_the_temperature_in_their_names(
    monkeypatch, temperature
):
    """Of redundant views of either kernel; blocks have none, as their heads share nothing."""
    for name in ("agreement", "simulated_depths", "choices"):
        monkeypatch.setattr(effects, name, lambda *_: [])
    monkeypatch.setattr(effects, "movements", lambda _: {})
    monkeypatch.setattr(effects, "families_of_theory", lambda _: {})
    factors = {"views": {"smooth": 1.02, "rough": 0.97, "slow": 1.05}}
    factors["softmax views"] = {"smooth": 0.96, "rough": 1.04, "slow": 0.99}
    points = [*factors, "blocks"]

    def splits(_, point):
        if point in factors:
            return made(factors[point])
        return SimpleNamespace(settings={"geometry": "blocks"})

    monkeypatch.setattr(effects, "Splits", splits)
    monkeypatch.setattr(effects, "checked", lambda _: dict.fromkeys(points))
    found = effects.effects(SimpleNamespace(settings={}))
    named = {name for name in found if name.startswith("simulated step")}
    every = [(what, point, name) for what in PAIRS for point in factors for name in TEMPERATURES]
    assert named == {f"simulated step of {what}, {point}, {name}" for what, point, name in every}
    for what, first in PAIRS.items():
        for point, own in factors.items():
            family = found[f"simulated step of {what}, {point}, {temperature}"]
            n, budget = (family[0].at[name] for name in ("n", "budget"))
            wide, narrow = (own[k] * best(k, n, budget, temperature) for k in (first, "smooth"))
            assert family[0].value == pytest.approx(np.log(wide / narrow), rel=1e-9)


@pytest.mark.parametrize("kernel", ["", "softmax "])
def test_the_transformers_rung_is_the_one_after_the_ladder(kernel):
    """Both roads have it last, b₁ d_k^¼; re-tuned heads take those of the ladder alone."""
    own = regimes.checked(EXPERIMENT.settings)[f"{kernel}views"]
    bandwidths = predict.rungs(own, np.array([1, 16]))
    splits = object.__new__(effects.Splits)
    fixed = own["ladder"].index(own["bandwidth"])
    splits.theory = xr.Dataset(coords={"rung": range(bandwidths.shape[1])}, attrs={"fixed": fixed})
    (hot,), (cold,) = splits.rungs("transformer"), splits.rungs("fixed")
    assert bandwidths[:, hot] == pytest.approx([own["bandwidth"], 2 * own["bandwidth"]])
    assert bandwidths[:, cold] == pytest.approx([own["bandwidth"]] * 2)
    assert bandwidths[0, splits.rungs("tuned")] == pytest.approx(own["ladder"])
