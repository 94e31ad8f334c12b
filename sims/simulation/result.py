"""From the engine's arrays to the labelled result, and back (to resume a run)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims import terms

RAW_SCALARS = (
    "squared_bias",
    "variance",
    "covariance",
    "ensemble_variance",
    "mse",
    "mean_head_mse",
)
"""Scalar terms that raw labels estimate as well (they cannot tell signal from noise)."""
REMAINDERS = (
    "signal_variance",
    "noise_variance",
    "variance",
    "cross_signal_covariance",
    "cross_noise_covariance",
    "covariance",
    "ensemble_variance",
)
"""Scalar terms whose remainders are estimated when a linearisation is given."""
_GAP_PAIRS = ("signal_remainder", "noise_remainder")
_RAW_PAIRS = ("raw_bias_product", "raw_total_covariance")


def build(
    arrays: Mapping[str, np.ndarray],
    *,
    keep_queries: bool,
    weights: Any = None,
    attrs: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Label the batches of the engine and derive all that follows, without MCSE.

    Args:
        arrays: of :func:`sims.simulation.batches.run_batches`; averaged over queries, with one
            query left, unless ``keep_queries``.
        keep_queries: whether variables with a query dimension stay.
        weights: α (H,), None is uniform.
        attrs: attributes of the result.
    """
    main = ("bias", *terms.PAIRS)
    data = terms.assemble(*(arrays[name] for name in main), weights=weights, attrs=attrs)
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
    if "bias_remainder" in arrays:
        data["bias_remainder"] = lead, arrays["bias_remainder"]
        for name in _GAP_PAIRS:
            data[name] = (*lead, terms.HEAD2), arrays[name]
            data[f"integrated_{name}"] = data[name].mean(terms.QUERY)
        signal, noise = (data[f"integrated_{name}"] for name in _GAP_PAIRS)
        gaps = terms.summarise(
            xr.Dataset(
                {
                    "integrated_bias_product": xr.zeros_like(signal),
                    "integrated_signal_covariance": signal,
                    "integrated_noise_covariance": noise,
                }
            ),
            weights,
        )
        data = data.assign({f"{name}_remainder": gaps[name] for name in REMAINDERS})
    if keep_queries:
        return data
    data["mean_empty_rate"] = data["empty_rate"].mean(terms.QUERY)
    return data.drop_dims(terms.QUERY)


def batch_arrays(data: xr.Dataset) -> dict[str, np.ndarray]:
    """The arrays that :func:`build` was given, from its result."""
    names = ["bias", *terms.PAIRS, "empty_rate", "raw_bias", *_RAW_PAIRS]
    names += ["bias_remainder", *_GAP_PAIRS]
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
    if "variance_remainder" in data:
        arrays["bias_remainder"] = heads
    return arrays
