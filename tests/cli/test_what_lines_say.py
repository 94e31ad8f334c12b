"""What `sims decompose` and `sims sweep` print of bounds, defects and gaps, by numbers made up."""

import numpy as np
import pytest
import xarray as xr

from sims.cli import decompose, sweep


def test_the_bound_on_theorys_error_is_that_of_the_worst_term():
    """0.03 of an MSE of 2; a term that has none counts for nothing."""
    terms = {
        "mse": {"theory": 2.0, "theory_error": 0.03},
        "squared_bias": {"theory": 1.5, "theory_error": 0.002},
        "variance": {"theory": None, "theory_error": None},
    }
    theory = {"entries_unknown": 0, "entries": 9, "reached": True, "rtol": 1e-4}
    (line,) = decompose._bounds({"theory": theory, "terms": terms})
    assert line == "Bound on theory's error: up to 0.015 of the MSE."


def test_the_largest_defect_of_exact_theory_is_told_by_its_size():
    """Of either sign; and how many of six entries missed the accuracy, or have no value."""
    at = ("query", "head", "head2")
    prediction = xr.Dataset(
        {
            "defect": (at, [[[1e-9, -4e-6, 2e-7]], [[1e-8, 3e-6, 0.0]]]),
            "converged": (at, [[[True, False, True]], [[True, False, True]]]),
            "noise_covariance": (at, [[[0.1, np.nan, 0.1]], [[0.1, 0.1, 0.1]]]),
            "empty_probability": (("query", "head"), [[0.0], [0.1]]),
        },
        attrs={"order": "exact", "rounding": 1e-9, "rtol": 1e-4},
    )
    assert decompose._accuracy(prediction) == {
        "order": "exact", "rounding": 1e-9, "rtol": 1e-4, "largest_defect": 4e-6,
        "empty_probability": pytest.approx(0.05), "reached": False, "entries": 6,
        "entries_missed": 2, "entries_unknown": 1,
    }  # fmt: skip


def test_a_sweeps_gap_is_that_of_simulation_from_theory(capsys):
    """1.5 for 1.2 is a quarter more, 0.9 for 1.2 a quarter less; without theory there is none."""
    rough = "first-order theory is rough: n_eff = 4 at query 0, head 0, below 50"
    columns = {
        "mse": [1.5, 0.9, 1.0],
        "mse_mcse": [0.01] * 3,
        "mse_theory": [1.2, 1.2, np.nan],
        "faults": ["", "no keys", ""],
        "cautions": ["", rough, "a head attends to 1.2 keys"],
    }
    data = xr.Dataset({k: ("n", v) for k, v in columns.items()}, coords={"n": [16, 32, 64]})
    sweep._print(data)
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    gaps = {row[0]: row[4] for row in rows if row and row[0] in ("16", "32", "64")}
    assert gaps == {"16": "+25.0%", "32": "-25.0%", "64": "–"}
    assert "rough at 1 of 3 points" in " ".join(said.split())
