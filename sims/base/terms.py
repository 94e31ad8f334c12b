"""The terms: the labelled result of both theory and simulation.

Theory and simulation both return an :class:`xarray.Dataset` with these variables (for simulation
with a leading ``batch`` dimension, and a variable ``<name>_mcse`` without it for each):

==============================  ======================  ==========================================
variable                        dimensions              meaning
==============================  ======================  ==========================================
``bias``                        query, head             β_h(x) = E f̂_h(x) − m(x)
``signal_covariance``           query, head, head2      Cov(g_h, g_g), g_h = Σ_i w_hi m(X_i)
``noise_covariance``            query, head, head2      σ² E Σ_i w_hi w_gi
``bias_product``                query, head, head2      β_h β_g (an estimate of it is unbiased)
``integrated_*``                head, head2             the last three, averaged over queries
``squared_bias``                                        αᵀ E_x[ββᵀ] α
``signal_variance``                                     mean over heads of Var g_h
``noise_variance``                                      mean over heads of the noise variance
``variance``                                            V̄, their sum
``cross_signal_covariance``                             mean over pairs h ≠ g of Cov(g_h, g_g)
``cross_noise_covariance``                              the same of the noise part
``covariance``                                          C̄, their sum
``ensemble_variance``                                   αᵀ E_x[S] α
``mse``                                                 squared_bias + ensemble_variance
``mean_head_mse``                                       mean over heads of β_h² + S_hh
==============================  ======================  ==========================================

All are for the ensemble f̄ = Σ_h α_h f̂_h, Σ α_h = 1 (uniform unless weights are given), in the
squared unit of Y, except ``bias`` (unit of Y). With one head the cross terms are NaN: there is
no pair. Source: theory notes in ``docs/theory/decomposition.md``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.base import estimates
from sims.base.arrays import real_numbers
from sims.base.errors import InputError

QUERY, HEAD, HEAD2, BATCH, PROBLEM = "query", "head", "head2", "batch", "problem"
PAIRS = ("bias_product", "signal_covariance", "noise_covariance")
LABELS = {
    "squared_bias": "squared bias",
    "signal_variance": "signal variance, mean of heads",
    "noise_variance": "noise variance, mean of heads",
    "variance": "variance of a head",
    "cross_signal_covariance": "signal covariance of a pair",
    "cross_noise_covariance": "noise covariance of a pair",
    "covariance": "covariance of a pair",
    "ensemble_variance": "variance of the ensemble",
    "mse": "MSE of the ensemble",
    "mean_head_mse": "MSE of a head, mean",
}
"""Scalar term to its name in words."""
SCALARS = tuple(LABELS)
CROSS = ("cross_signal_covariance", "cross_noise_covariance", "covariance")
"""Terms of pairs of heads, NaN for one head."""


def assemble(
    *arrays: ArrayLike,
    weights: ArrayLike | None = None,
    attrs: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Dataset of terms as described at the top of this module, from :func:`label_terms`."""
    return xr.Dataset(label_terms(*arrays, weights=weights), attrs=attrs)


def lead(count: int) -> tuple[str, ...]:
    """Names of the dimensions of a bias with ``count`` dimensions, the last two query and head."""
    return (BATCH, PROBLEM, QUERY, HEAD) if count == 4 else (BATCH, QUERY, HEAD)[-count:]


def label_terms(
    bias: ArrayLike, *pair_terms: ArrayLike, weights: ArrayLike | None = None
) -> dict[str, xr.Variable]:
    """Labelled arrays of a method, and all terms that follow from them.

    Args:
        bias: (Q, H), (B, Q, H) for an estimate, or (B, P, Q, H) for estimates of P problems.
        pair_terms: bias products, signal and noise covariances (:data:`PAIRS`), (…, Q, H, H) each.
        weights: α, shape (H,), sum 1; None is uniform.

    Raises:
        InputError: weights have the wrong shape or do not sum to 1.
    """
    bias = np.asarray(bias, float)
    dims = lead(bias.ndim)
    pair_dims = (*dims, HEAD2)
    variables = {"bias": xr.Variable(dims, bias)}
    integrated = {}
    for name, values in zip(PAIRS, pair_terms, strict=True):
        array = np.asarray(values, float)
        variables[name] = xr.Variable(pair_dims, array)
        # Plain arrays: xarray's mean would take longer than small problems take to solve.
        mean = xr.Variable((*dims[:-2], HEAD, HEAD2), array.mean(-3))
        integrated[f"integrated_{name}"] = mean
    return variables | integrated | scalars(integrated, weights)


def scalars(
    variables: Mapping[Any, xr.Variable], weights: ArrayLike | None = None
) -> dict[str, xr.Variable]:
    """Scalar terms, from the integrated pair terms; see :func:`assemble`."""
    # Plain arrays: labelled ones would take longer than small problems take to solve.
    integrated = []
    for name in PAIRS:
        integrated.append(variables[f"integrated_{name}"].transpose(..., HEAD, HEAD2))
    dims = integrated[0].dims[:-2]
    alpha = ensemble_weights(weights, integrated[0].sizes[HEAD])
    # 0/0 for a single head, which has no pair; and ∞ · 0 of an error that is not known.
    with np.errstate(invalid="ignore"):
        values = scalar_forms([variable.values for variable in integrated], alpha)
    return {name: xr.Variable(dims, value) for name, value in values.items()}


def ensemble_weights(weights: ArrayLike | None, heads: int) -> np.ndarray:
    """The weights α (H,); None is uniform.

    Raises:
        InputError: they have the wrong shape or do not sum to 1.
    """
    alpha = np.full(heads, 1 / heads) if weights is None else real_numbers("weights", weights)
    if alpha.shape != (heads,) or not np.isclose(alpha.sum(), 1.0, rtol=0, atol=1e-9):
        raise InputError("weights", alpha.tolist(), f"{heads} numbers that sum to 1")
    return alpha


def scalar_forms(integrated: Iterable[Any], alpha: Any) -> dict[str, Any]:
    """Scalar terms of the integrated :data:`PAIRS` (…, H, H) and weights α (H,), NumPy or JAX."""
    bias_product, signal, noise = integrated
    heads = len(alpha)
    outer = alpha[:, None] * alpha
    diagonal = np.eye(heads) / heads
    with np.errstate(invalid="ignore"):
        pairs = (1 - np.eye(heads)) / np.float64(heads * (heads - 1))

    def form(values: Any, matrix: Any) -> Any:
        return (values * matrix).sum((-2, -1))

    terms = {
        "squared_bias": form(bias_product, outer),
        "signal_variance": form(signal, diagonal),
        "noise_variance": form(noise, diagonal),
        "cross_signal_covariance": form(signal, pairs),
        "cross_noise_covariance": form(noise, pairs),
        "ensemble_variance": form(signal, outer) + form(noise, outer),
    }
    terms["variance"] = terms["signal_variance"] + terms["noise_variance"]
    terms["covariance"] = terms["cross_signal_covariance"] + terms["cross_noise_covariance"]
    terms["mse"] = terms["squared_bias"] + terms["ensemble_variance"]
    terms["mean_head_mse"] = form(bias_product, diagonal) + terms["variance"]
    return terms


def phrases(data: xr.Dataset, name: str) -> list[str]:
    """Lines of a text attribute such as ``cautions``; empty if it is absent."""
    lines: list[str] = data.attrs.get(name, "").splitlines()
    return lines


def mcse(values: xr.DataArray) -> xr.DataArray:
    """Monte Carlo standard error of the mean over the batch dimension, labelled like the mean."""
    return values.reduce(lambda v, axis: estimates.mcse(np.moveaxis(v, axis, 0)), BATCH)
