"""Allocation: growth of d_k* by decades, and what the views' noise moves, on widths by hand."""

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import BarycentricInterpolator
from scipy.optimize import minimize_scalar

from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("allocation", "standard")
curves = EXPERIMENT.module("curves")
SIZES = np.sort(np.append(np.logspace(2, 6, 9), 1024.0))
"""Powers of ten, their geometric means, and a size of the simulation between."""


def at_powers(values):
    """Widths at the powers of ten; elsewhere far off, as no growth by decades looks there."""
    widths = np.full(len(SIZES), 50.0)
    widths[[0, 2, 5, 7, 9]] = values
    np.testing.assert_allclose(SIZES[[0, 2, 5, 7, 9]], 10.0 ** np.arange(2, 7))
    return widths


@pytest.mark.parametrize(
    ("widths", "expected"),
    [
        # Growths 4, 3, 2, 1 of a largest width of 11: the least of the falls.
        ((1, 5, 8, 10, 11), -1 / 11),
        # 2, 1, 4, 3: from the second to the third decade.
        ((1, 3, 4, 8, 11), 3 / 11),
        # 1, 2, 3, 4: not between neighbours, from the first to the last.
        ((1, 2, 4, 7, 11), 3 / 11),
        ((1, 3, 5, 7, 9), 0.0),
        # 4, 0, none for a fall by 3, and 1, of 5: growth that comes back counts.
        ((1, 5, 5, 2, 3), 0.2),
        # A fall, and then nothing, is no growth that quickens.
        ((3.2, 3.1, 3.0, 3.0, 3.0), 0.0),
        # The first decade is not known: 3, 2, 3 of 11.
        ((np.nan, 3, 6, 8, 11), 1 / 11),
        # Two growths are too few; neither is one over two decades.
        ((1, 3, 6, np.nan, np.nan), np.nan),
        ((1, 3, 6, np.nan, 11), np.nan),
    ],
)
def test_growth_of_a_decade_is_held_against_every_earlier_one(widths, expected):
    found, _ = curves.quickened(SIZES, at_powers(widths), np.zeros(len(SIZES)))
    assert found == pytest.approx(expected, nan_ok=True)


def test_a_logarithm_does_not_quicken_and_a_power_does():
    log_n, exact = np.log(SIZES), np.zeros(len(SIZES))
    assert curves.quickened(SIZES, 2 + 0.8 * log_n, exact)[0] == pytest.approx(0, abs=1e-12)
    assert curves.quickened(SIZES, np.sqrt(log_n), exact)[0] < 0
    power = SIZES**0.1
    grown = np.diff(power[[0, 2, 5, 7, 9]])
    expected = (grown[-1] - grown[0]) / power[-1]
    assert curves.quickened(SIZES, power, exact)[0] == pytest.approx(expected)


def test_error_of_a_quickening_is_that_of_two_growths():
    """Of the four widths of two growths, or of three of neighbours, and of the largest width."""
    errors = np.full(len(SIZES), 9.0)
    errors[[0, 2, 5, 7, 9]] = 0.01, 0.03, 0.02, 0.05, 0.01
    # From 2 to 4, the growths of the first decade and the last: 0.01 + 0.03 + 0.05 + 0.01.
    value, off = curves.quickened(SIZES, at_powers((1, 3, 6, 9, 13)), errors)
    assert value == pytest.approx(2 / 13)
    assert off == pytest.approx((0.10 + 0.05 * 2 / 13) / (13 - 0.05))


def test_error_of_a_quickening_holds_what_errors_of_widths_can_do_to_it():
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(2000):
        errors = 0.1 * rng.uniform(0, 1, 5)
        widths = np.cumsum(rng.uniform(0, 2, 5))
        moved = widths + errors * rng.choice([-1, 1], 5)
        value, bound = curves.quickened(SIZES, at_powers(widths), at_powers(errors))
        other, _ = curves.quickened(SIZES, at_powers(moved), at_powers(errors))
        assert abs(other - value) <= bound + 1e-12
        largest = max(largest, abs(other - value) / bound)
    assert largest > 0.8


def test_quickening_of_every_family_is_at_the_budget_asked_for():
    axes = {"family": ["smooth", "rough"], "dense_budget": [24, 512], "dense_n": SIZES}
    values, errors = np.ones((2, 2, len(SIZES))), np.full((2, 2, len(SIZES)), 7.0)
    values[0, 1], values[1, 1] = at_powers((1, 2, 4, 7, 11)), at_powers((1, 5, 8, 10, 11))
    errors[0, 1], errors[1, 1] = 0.0, 0.11
    theory = xr.Dataset({"optimum": (tuple(axes), values), "optimum_error": (tuple(axes), errors)})
    found = curves.quickenings(theory.assign_coords(axes), 512)
    assert [(e.label, e.at["family"], e.value, e.bound) for e in found] == [
        ("smooth target", "smooth", pytest.approx(3 / 11), 0.0),
        ("rough target", "rough", pytest.approx(-1 / 11), pytest.approx(0.45 / 10.89)),
    ]


CELLS = [
    {"alpha": alpha, "nu": nu, "noise": noise, "noise_sd": noise_sd}
    for alpha in (0.4, 0.8)
    for nu in (np.inf, 0.5)
    for noise in (0.1, 0.4, 0.8)
    for noise_sd in (2.0, 8.0)
]


ERRORS = np.linspace(0.01, 0.1, len(SIZES))
"""How far off the widths of a cell may be, by n."""


def views(best):
    """The map's dataset with ``best(cell, temperature)``, (n,), in every cell."""
    widths = [[best(cell, name) for name in curves.TEMPERATURES] for cell in CELLS]
    dims = ("cell", "temperature", "dense_n")
    data = {"map_optimum": (dims, np.array(widths, float))}
    data["map_optimum_error"] = (dims, np.where(np.isnan(widths), np.nan, ERRORS))
    data |= {f"cell_{key}": ("cell", [cell[key] for cell in CELLS]) for key in CELLS[0]}
    return xr.Dataset(data, {"temperature": list(curves.TEMPERATURES), "dense_n": SIZES})


def grows(cell, temperature):
    """Linear in log n; the slope is of decay, view noise, label noise and temperature."""
    rate = cell["alpha"] * {0.1: 1.0, 0.4: 5.0, 0.8: 0.7}[cell["noise"]]
    rate *= {2.0: 1.0, 8.0: 1.3}[cell["noise_sd"]] if cell["noise"] == 0.8 else 1.0
    rate *= 1.0 if temperature == "fixed" or cell["noise"] < 0.8 else 2.0
    return (2.0 if cell["nu"] == 0.5 else 1.0) + rate * np.log(SIZES)


def test_view_noise_is_held_against_the_same_cell_with_the_least_of_it():
    """The most noise of the map over the least, at the same decay, smoothness and label noise."""
    for temperature, factor in (("fixed", 1.0), ("tuned", 2.0)):
        data = views(grows)
        found = curves.noise_rates(data, temperature)
        assert [(e.at["alpha"], e.at["nu"], e.at["noise_sd"]) for e in found] == [
            (a, nu, sd) for a in (0.4, 0.8) for nu in (np.inf, 0.5) for sd in (2.0, 8.0)
        ]
        for effect in found:
            ratio = factor * 0.7 * (1.3 if effect.at["noise_sd"] == 8.0 else 1.0)
            assert effect.value == pytest.approx(abs(np.log(ratio)))
            quiet = effect.at["alpha"] * np.log(SIZES[-1] / SIZES[0])
            ends = ERRORS[0] + ERRORS[-1]
            off = -np.log1p(-ends / quiet) - np.log1p(-ends / quiet / ratio)
            assert effect.bound == pytest.approx(off)
        steps = curves.noise_steps(data, temperature)
        assert len(steps) == 8 * len(SIZES)
        for effect in steps:
            start = 2.0 if effect.at["nu"] == 0.5 else 1.0
            ratio = factor * 0.7 * (1.3 if effect.at["noise_sd"] == 8.0 else 1.0)
            low = start + effect.at["alpha"] * np.log(effect.at["n"])
            high = start + ratio * effect.at["alpha"] * np.log(effect.at["n"])
            assert effect.value == pytest.approx(abs(np.log(high / low)))
            error = ERRORS[effect.at["n"] == SIZES][0]
            off = -np.log1p(-error / high) - np.log1p(-error / low)
            assert effect.bound == pytest.approx(off)


def test_view_noise_is_looked_at_where_both_best_widths_are_inner_ones():
    """Of a pair of cells the second n is unknown in one, the last in the other."""

    def some(cell, temperature):
        widths = grows(cell, temperature)
        if cell["alpha"] == 0.4 and cell["noise"] == 0.1:
            widths[1] = np.nan
        if cell["alpha"] == 0.4 and cell["noise"] == 0.8:
            widths[-1] = np.nan
        if cell["alpha"] == 0.8 and cell["noise"] == 0.1:
            widths[4:] = np.nan
        return widths

    data = views(some)
    steps = [e for e in curves.noise_steps(data, "fixed") if e.at["alpha"] == 0.4]
    assert sorted({e.at["n"] for e in steps}) == SIZES[[0, *range(2, 9)]].tolist()
    # Of the other decay fewer than three decades are left.
    rates = curves.noise_rates(data, "fixed")
    assert {e.at["alpha"] for e in rates} == {0.4}
    assert {e.at["span"] for e in rates} == {SIZES[-2] / SIZES[0]}


def test_one_view_noise_is_held_against_none():
    data = views(grows)
    assert not curves.noise_steps(data.isel(cell=data["cell_noise"] == 0.4), "fixed")


@pytest.mark.theory
@pytest.mark.parametrize("low", [2, 3])
def test_errors_of_best_widths_are_differences_of_two_polynomials(low, monkeypatch):
    """Each is what coarser polynomials change, and is far above rounding at some n at least.

    At n = 100 theory knows five widths. The polynomials go through more, and how far off they may
    be holds what goes on with fewer and fewer keys.
    """
    predict, settings = (
        EXPERIMENT.module("predict"),
        EXPERIMENT.module("regimes").checked(EXPERIMENT.settings)["views"],
    )
    own = settings | {"budgets": [24], "decades": {"low": low, "high": 5, "per_decade": 1}}
    own |= {"families": {"smooth": settings["families"]["smooth"]}}

    def fixed():
        found = predict.dense(own).isel(family=0, dense_budget=0)
        return found.sel(temperature="fixed")

    found = fixed()
    n = found["dense_n"].values
    widths = np.arange(1, own["widest"] + 1)
    every = predict.terms(
        own, own["families"]["smooth"], 24, widths, np.full((len(widths), 1), 0.7)
    )
    error = np.asarray(every.error(n[:, None, None], 24 / widths[:, None], own["noise_sd"]))[..., 0]
    enough = n[:, None] / np.asarray(every.noise_variance)[:, 0] / own["least_n_eff"]
    for size, at, off, row, share in zip(
        n, found["optimum"].values, found["optimum_error"].values, error, enough, strict=True
    ):
        reached = int(np.sum(share >= 0.25))
        best = int(np.argmin(np.where(share >= 1, row, np.inf)))
        places = []
        for count in (min(9, reached), min(9, reached) - 2):
            first = np.clip(best - count // 2, 0, reached - count)
            near = slice(first, first + count)
            law = BarycentricInterpolator(widths[near] - best, np.log(row[near]))
            turn = minimize_scalar(law, bounds=(0, 2), method="bounded", options={"xatol": 1e-9})
            places.append(best + turn.x)
        assert at == pytest.approx(places[0], abs=1e-5), size
        assert off == pytest.approx(abs(places[0] - places[1]), abs=2e-5), size
    assert 1e-4 < found["optimum_error"].max() < 0.01
    assert (int(np.sum(enough[0] >= 1)) == 5) == (low == 2)
    np.testing.assert_array_equal(np.isfinite(found["surface"].values), enough >= 1)
    monkeypatch.setattr(predict, "NEARLY", 1e-4)
    beyond = np.abs(fixed()["optimum"] - found["optimum"]).values
    assert (beyond <= found["optimum_error"].values + 1e-4).all()
    assert (beyond[0] > 1e-5) == (low == 2)
