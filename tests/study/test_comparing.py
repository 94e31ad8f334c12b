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


@pytest.mark.parametrize(("difference", "beyond"), [(10.0, 0), (10.1, 1), (-10.1, 1), (0.0, 0)])
def test_estimates_are_beyond_that_are_more_than_two_joint_errors_apart(difference, beyond):
    """Errors of 3 and 4 are a joint one of 5."""
    one, other = (
        {"p": xr.Dataset({"mse": ((), value), "mse_mcse": ((), error)})}
        for value, error in ((0.0, 3.0), (difference, 4.0))
    )
    found = _apart("e", one, other)
    assert (found.compared, found.beyond) == (1, beyond)
    assert found.worst == pytest.approx(abs(difference) / 5)
