"""Two runs side by side: which numbers are compared, and in what units."""

import numpy as np
import pytest
import xarray as xr

from sims.study.comparing import _apart


def run(mse, extra=()):
    """Points with an estimate that has an error, and with one that has none."""
    known = {"mse": ("batch", mse), "mse_mcse": ((), 0.3), "lonely_mcse": ((), 1e-9)}
    known |= {"keys": ((), 5.0 * len(extra)), **dict.fromkeys(extra, ((), 2.0))}
    return {"p": xr.Dataset(known)}


def test_estimates_are_compared_that_have_an_error_in_both_runs():
    """Means over batches, in units of √(0.3² + 0.3²); what has no error counts for nothing."""
    one, other = run([1.0, 2.0]), run([2.0, 3.5], extra=("lonely",))
    found = _apart("e", one, other)
    assert (found.compared, found.beyond) == (1, 1)
    assert found.worst == pytest.approx(1.25 / (0.3 * np.sqrt(2)))
    assert found.where == "mse at point p"
    same = _apart("e", one, one)
    assert (same.compared, same.beyond, same.worst, same.where) == (1, 0, 0.0, "")
