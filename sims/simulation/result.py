"""From the engine's arrays to the labelled result, and back (to resume a run)."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims import terms
from sims.errors import InputError

RAW_SCALARS = (
    "squared_bias",
    "variance",
    "covariance",
    "ensemble_variance",
    "mse",
    "mean_head_mse",
)
"""Scalar terms that raw labels estimate as well (they cannot tell signal from noise)."""
_RAW_PAIRS = ("raw_bias_product", "raw_total_covariance")


def build(
    arrays: Mapping[str, np.ndarray],
    *,
    keep_queries: bool,
    weights: ArrayLike | None = None,
) -> xr.Dataset:
    """Label the batches of the engine and derive all that follows, without MCSE.

    Args:
        arrays: of :func:`~.moments.batch_estimates`, batch first; averaged over queries, with one
            query left, unless ``keep_queries``.
        keep_queries: whether variables with a query dimension stay.
        weights: α (H,), None is uniform.
    """
    main = ("bias", *terms.PAIRS)
    data = terms.assemble(*(arrays[name] for name in main), weights=weights)
    lead = (terms.BATCH, terms.QUERY, terms.HEAD)
    data["empty_rate"] = lead, arrays["empty_rate"]
    if "raw_bias" in arrays:
        data["raw_bias"] = lead, arrays["raw_bias"]
        for name in _RAW_PAIRS:
            data[name] = (*lead, terms.HEAD2), arrays[name]
            data[f"integrated_{name}"] = data[name].mean(terms.QUERY)
        total = data["integrated_raw_total_covariance"]
        raw = terms.summarise(
            xr.Dataset(
                {
                    "integrated_bias_product": data["integrated_raw_bias_product"],
                    "integrated_signal_covariance": total,
                    "integrated_noise_covariance": xr.zeros_like(total),
                }
            ),
            weights,
        )
        data = data.assign({f"raw_{name}": raw[name] for name in RAW_SCALARS})
    if keep_queries:
        return data
    data["mean_empty_rate"] = data["empty_rate"].mean(terms.QUERY)
    return data.drop_dims(terms.QUERY)


def batch_arrays(data: xr.Dataset) -> dict[str, np.ndarray]:
    """The arrays that :func:`build` was given, from its result."""
    names = ["bias", *terms.PAIRS, "empty_rate", "raw_bias", *_RAW_PAIRS]
    if terms.QUERY in data.dims:
        return {name: data[name].values for name in names if name in data}
    heads = np.zeros((data.sizes[terms.BATCH], 1, data.sizes[terms.HEAD]))
    arrays = {
        name: data[f"integrated_{name}"].values[:, None]
        for name in names
        if f"integrated_{name}" in data
    }
    arrays |= {"bias": heads, "empty_rate": data["mean_empty_rate"].values[:, None]}
    if "raw_mse" in data:
        arrays["raw_bias"] = heads
    return arrays


def reached(data: xr.Dataset, rel_mcse: float, negligible: float = 1e-3) -> bool:
    """Whether every scalar term has mcse ≤ rel_mcse·|term|, or is negligible beside the MSE.

    Negligible: |term| + 2·mcse ≤ negligible·MSE.

    Terms that do not exist (the cross terms of a single head are NaN) are passed over.
    """
    mse = float(data["mse"].mean())
    for name in terms.SCALARS:
        value, error = abs(float(data[name].mean())), float(terms.mcse(data[name]))
        if np.isnan(value):
            continue
        if error > rel_mcse * value and value + 2 * error > negligible * mse:
            return False
    return True


def efficiency_gain(data: xr.Dataset) -> xr.Dataset:
    """How many times integrating out the labels cut the variance of each estimated scalar term.

    The ratio, over batches, of the variance of the raw-label estimate to that of the
    Rao–Blackwellised one (both unbiased for the same term, from the same designs). With B batches
    its own relative error is about 2/√(B − 1) at most.

    Raises:
        InputError: the result has no raw-label estimates.
    """
    if "raw_mse" not in data:
        raise InputError("raw_labels", False, "True: a result with raw-label estimates")
    ratio = {
        name: data[f"raw_{name}"].var(terms.BATCH, ddof=1) / data[name].var(terms.BATCH, ddof=1)
        for name in RAW_SCALARS
    }
    return xr.Dataset(ratio)
