"""Disjoint blocks: first-order terms of heads that see different coordinates of R^D.

Averaged over Gaussian-process targets and Gaussian queries, as the redundant views are
(:mod:`sims.theory.first_order.views`): products of one-dimensional Gaussian integrals. Relevance is
the same for every coordinate, so heads are exchangeable, and one head and one pair give every
number of heads. Reconstruction; the derivation is in ``docs/theory/budget.md``.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sims.base.checks import as_floats, check_non_negative, check_positive, check_within
from sims.theory.first_order.views import (
    SplitTerms,
    TargetLaw,
    Tilts,
    check_averages,
    matern_mixture,
    split_terms,
    tilts_of,
)

PAIRED = (
    "limit_product",
    "cross_ratio",
    "ratio_product",
    "signal_covariance",
    "noise_covariance",
)
"""Terms of two heads, NaN where two blocks do not fit into D coordinates."""


def block_terms(
    width: ArrayLike,
    bandwidth: ArrayLike,
    *,
    dimension: int,
    relevance: float,
    query_scale: float,
    nu: float | None = None,
    kernel: Literal["gaussian", "softmax"] = "gaussian",
) -> SplitTerms:
    """Terms of heads that see disjoint blocks of d_k of the D coordinates of the keys.

    Keys ``N(0, I_D)``, queries ``N(0, κ²I)``. Target of unit variance with
    covariance ``exp(−½ λ ‖x − x'‖²)``, or the mixture of these over ``λ/g, g ~ Gamma(ν, ν)``.

    A tilt by the gaussian kernel makes ``x_j ~ N(a q_j, 1 − a)`` about the query q: by one head ``a
    = 1/(1 + b²)`` on its block, by the same head twice ``a = 2/(2 + b²)``, by two heads as by
    either on its block; 0 elsewhere. Softmax makes it ``N(a q_j, 1)`` with ``a = 1/b²`` and
    ``a = 2/b²`` in their places. As for redundant views, with τ = 0, everything is a product over
    coordinates of three kinds: d_k of this head, d_k of the other, D − 2 d_k of neither.

    Args:
        width: d_k, integers from 1 to D; broadcast against ``bandwidth``.
        bandwidth: b > 0.
        dimension: D ≥ 1.
        relevance: λ ≥ 0, of every coordinate.
        query_scale: κ ≥ 0; below 1/√2 for the gaussian kernel, below b²/2 for softmax.
        nu: ν > 0, or None for the squared-exponential target.
        kernel: ``gaussian`` or ``softmax``.

    Raises:
        InputError: an argument is outside its range.
    """
    width = np.asarray(width)
    b = np.asarray(as_floats("bandwidth", bandwidth))
    check_positive("bandwidth", b)
    check_non_negative("relevance", relevance)
    check_averages(kernel, b, 0.0, query_scale)
    check_within("width", width, 1, dimension)
    scales, weights = matern_mixture(nu)
    width = width[..., None]
    once, same, _, overlap, _ = tilts_of(kernel, b[..., None], 0.0)
    # Coordinates of head h, of head g, of neither; all of a sort are alike.
    counts = np.concatenate([width, width, dimension - 2 * width], axis=-1)
    unit_h, unit_g, _ = np.eye(3)
    # How far a tilt moves each sort towards the query.
    place = {
        "query": np.ones(3),
        "h": once * unit_h,
        "g": once * unit_g,
        "hg": once * (unit_h + unit_g),
        "hh": same * unit_h,
        "gg": same * unit_g,
    }

    def product(logs: np.ndarray) -> np.ndarray:
        return np.exp(np.einsum("...j,...j->...", counts, logs))

    scaled = relevance * scales.reshape(-1, *[1] * max(width.ndim, once.ndim))
    tilts = Tilts(place, [overlap * unit_h, overlap * unit_g, 0.0])
    law = TargetLaw(kernel, query_scale, scaled, weights)
    terms = split_terms(law, [tilts], product, apart=True)
    fits = 2 * width[..., 0] <= dimension
    lost = {}
    for name in PAIRED:
        lost[name] = np.where(fits, getattr(terms, name), np.nan)
    return terms._replace(**lost)
