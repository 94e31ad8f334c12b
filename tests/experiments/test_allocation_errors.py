"""Allocation: how far off its effects of theory may be, from widths between whole ones by hand."""

import numpy as np
import pytest
import xarray as xr

from sims.judgement.curves import deviation
from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("allocation", "standard")
curves, predict, regimes = (EXPERIMENT.module(name) for name in ("curves", "predict", "regimes"))
SIZES = np.logspace(2, 6, 9)


def views(cells, errors):
    """The map's dataset of best widths by cell, (cell, n), at every temperature."""
    dims, count = ("cell", "temperature", "dense_n"), len(curves.TEMPERATURES)
    data = {
        name: (dims, np.repeat(np.array(rows, float)[:, None], count, axis=1))
        for name, rows in (("map_optimum", cells), ("map_optimum_error", errors))
    }
    noise = [0.1, 0.8]
    data |= {f"cell_{k}": ("cell", [1.0, 1.0]) for k in ("alpha", "nu", "noise_sd")}
    data["cell_noise"] = ("cell", noise)
    return xr.Dataset(data, {"temperature": list(curves.TEMPERATURES), "dense_n": SIZES})


def test_a_regimes_deviation_is_off_by_what_its_widths_are():
    """One width in the middle is off by 0.1, of a rise by 4; of the other cell the last by 0.2."""
    straight = np.linspace(2, 6, 9)
    bent = straight + 0.5 * np.sin(np.linspace(0, np.pi, 9))
    errors = np.zeros((2, 9))
    errors[0, 4], errors[1, 8] = 0.1, 0.2
    found = curves.regimes(views([straight, bent], errors), "fixed")
    off = deviation(SIZES, bent)
    assert [e.value for e in found] == pytest.approx([0.0, off], abs=1e-9)
    assert [e.bound for e in found] == pytest.approx([0.1 / 4, (0.2 + off * 0.2) / 3.8])


@pytest.mark.parametrize(("error", "known"), [(0.2, True), (0.6, False)])
def test_a_growth_within_its_error_has_no_rate(error, known):
    """Growth by 1 in four decades, each end of which is off by 0.2, or by 0.6."""
    grown = [np.linspace(2, 6, 9), np.linspace(3, 4, 9)]
    (found,) = curves.noise_rates(views(grown, np.full((2, 9), error)), "fixed")
    assert np.isfinite(found.value) == known
    if known:
        assert found.value == pytest.approx(np.log(4))
        assert found.bound == pytest.approx(-np.log(1 - 0.4 / 4) - np.log(1 - 0.4))


@pytest.mark.theory
def test_readings_have_errors_of_their_best_widths():
    """As at the fixed temperature, where both are of one target; 0 at width 1 or one head."""
    settings = regimes.checked(EXPERIMENT.settings)["blocks"]
    own = settings | {
        "budgets": [16, predict.SAME_TARGET],
        "widest": 16,
        "families": {"smooth": settings["families"]["smooth"]},
        "decades": {"low": 2, "high": 5, "per_decade": 1},
    }
    found = regimes.labelled(predict.readings(own), own).sel(reading="coordinate", family="smooth")
    given = regimes.labelled(predict.dense(own), own).sel(temperature="fixed", family="smooth")
    of = {"dense_budget": predict.SAME_TARGET}
    errors, inner = (
        data.sel(of).values for data in (found["reading_optimum_error"], given["optimum_error"])
    )
    inside = np.isfinite(inner)
    np.testing.assert_allclose(errors[inside], inner[inside], rtol=1e-9)
    assert inner[inside].max() > 1e-5
    ends = (
        np.isin(found["reading_optimum"].values, (1, 16))
        & (found["dense_budget"].values < 32)[:, None]
    )
    assert ends.any()
    assert (found["reading_optimum_error"].values[ends] == 0).all()
