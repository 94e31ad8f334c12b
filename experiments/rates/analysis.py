"""Slopes of the error at the best bandwidth, for one head and for averaged heads."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict, bound, claim, equivalence, ordering
from sims.results import Results, mean_and_error

FAR = np.geomspace(1e8, 1e16, 33)
COMMON = np.geomspace(1e3, 1e5, 17)
"""Numbers of keys of the slopes; of those at sizes that a practitioner would have."""
LEAST_KEYS = 10.0
"""Effective keys below which first-order theory is not asked."""
FEWEST_COMPARED = 50.0
HEADS = (4, 8)
SATURATION = 2.0
NESTED = ((1, 2), (2, 4))
"""(d_0, d_k) of averaged heads."""


def exponent(beta: float, width: int) -> float:
    """−2β/(2β + d_k)."""
    return -2 * beta / (2 * beta + width)


def best(data: xr.Dataset, n: Any, heads: float = 1, extra: int = 0) -> tuple[Any, Any]:
    """Smallest MSE over bandwidths and where it is, each (…, n); … as in the data (group, beta).

    H heads (``inf`` allowed) of width d_0 + extra, averaged: the nuisance coordinates multiply the variance
    of a head by their overlap, and the covariance of two heads by 1. The minimum is that of the
    parabola through the three best points in log b and log MSE.
    """
    own = data["nuisance"] ** extra
    spread = own / heads + 1 - 1 / heads
    n = xr.DataArray(np.asarray(n, float), dims="n")
    value = (
        data["limit_bias"]
        + (own * data["cross_bias"] + spread * data["variance"]) / n
        + own**2 * data["ratio_bias"] / n**2
    )
    value = value.where(n >= LEAST_KEYS * own * data["overlap"])
    rest = [d for d in value.dims if d not in ("bandwidth", "n")]
    log = np.log(value.transpose("bandwidth", *rest, "n").values)
    at = np.clip(np.nanargmin(log, axis=0), 1, len(log) - 2)
    left, middle, right = (np.take_along_axis(log, at[None] + i, 0)[0] for i in (-1, 0, 1))
    # At the edge of what is allowed there is no parabola.
    shift = np.nan_to_num(0.5 * (left - right) / (left - 2 * middle + right))
    step = np.log(data["bandwidth"].values[1] / data["bandwidth"].values[0])
    return (
        np.exp(middle - np.nan_to_num(0.25 * (left - right) * shift)),
        data["bandwidth"].values[at] * np.exp(shift * step),
    )


def slopes(data: xr.Dataset, n: np.ndarray, heads: float = 1, extra: int = 0) -> np.ndarray:
    """Least-squares slopes of log MSE on log n, (group, beta)."""
    log = np.log(best(data, n, heads, extra)[0])
    x = np.log(n) - np.log(n).mean()
    return log @ x / (x @ x)
