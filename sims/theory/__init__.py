"""The theory road: closed forms to first order in 1/n, laws, and exact quadrature at any n."""

from collections.abc import Callable
from typing import Any, Literal

import xarray as xr
from numpy.typing import ArrayLike

from sims.errors import InputError, one_of
from sims.problem import Heads, Kernel, SequenceDesign, Task
from sims.theory.coverage import check_exact
from sims.theory.first_order.blocks import BlockTerms, block_terms, rescaled
from sims.theory.first_order.closed_forms import (
    FirstOrder,
    Tilt,
    first_order_arrays,
    first_order_terms,
    tilted_mean,
    tilted_product,
)
from sims.theory.first_order.laws import (
    gaussian_overlap,
    noise_correlation_law,
    noise_covariance_law,
    softmax_overlap,
    softmax_overlap_of_maps,
)
from sims.theory.first_order.views import ViewTerms, view_terms
from sims.weights import WeightRule
from sims.weights.merged import SlotWeights
from sims.weights.sparse import TopK


def _first_order_terms(task: Task, heads: Heads, *rest: Any, **options: Any) -> xr.Dataset:
    merged = isinstance(heads.rule, WeightRule) and isinstance(heads.rule.weights, SlotWeights)
    if merged or isinstance(task.design, SequenceDesign):
        from sims.theory.neighbours.merging import merged_terms

        return merged_terms(task, heads, *rest, **options)
    if isinstance(heads.rule, Kernel):
        return first_order_terms(task, heads, *rest, **options)
    # Imported late, like exact theory: SciPy's integration is slow to load.
    from sims.theory.first_order.adaptive import adaptive_terms
    from sims.theory.first_order.nearest import nearest_terms

    terms = nearest_terms if isinstance(heads.rule.weights, TopK) else adaptive_terms
    return terms(task, heads, *rest, **options)


def _exact_terms(*problem: Any, **options: Any) -> xr.Dataset:
    # Imported late: quadrature's libraries take as long to load as first order takes to compute.
    from sims.theory.exact import exact_terms

    return exact_terms(*problem, **options)


ORDERS: dict[str, Callable[..., xr.Dataset]] = {"first": _first_order_terms, "exact": _exact_terms}
"""Every order of theory: name to ``(task, heads, n, queries, **options) -> Dataset``."""
OPTIONS = {
    "first": ("weights",),
    "exact": ("weights", "rtol", "max_level", "progress"),
}
"""What every order takes beside the problem."""


def predict(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    order: Literal["first", "exact"] = "first",
    **options: Any,
) -> xr.Dataset:
    """The terms of the decomposition by theory.

    Args:
        task: design, target, noise.
        heads: frames of queries and of keys, kernel, bandwidths.
        n: number of keys.
        queries: (Q, d).
        order: ``first``: closed forms, to first order in 1/n; ``exact``: quadrature at any n.
        options: of that order: ``weights`` for both; ``rtol``, ``progress`` and the other options
            of :func:`sims.theory.exact.exact_terms` for ``exact``.

    Returns:
        The dataset of :mod:`sims.terms` (no batches), with ``n_eff`` (query, head).

    Raises:
        Uncovered: this order says nothing about the problem (an InputError): theory needs weights
            K/ΣK, first order a Gaussian design, a trigonometric series and the gaussian or softmax
            kernel; or, of a series, α-entmax or top-k of distances, a Gaussian design and heads of
            width 1 or 2. Of these, exact theory needs 30 attended keys (α-entmax) or a single head
            (top-k). With kernels it takes every function as a target. First order alone covers
            merged keys, and keys that are a sequence.
        InputError: parts do not fit together, or float64 cannot hold the problem.
    """
    if order not in ORDERS:
        raise InputError("order", order, one_of(ORDERS, order))
    for name in options.keys() - OPTIONS[order]:
        allowed = f"{one_of(OPTIONS[order], name)} (order {order})"
        raise InputError("option of predict", name, allowed)
    return ORDERS[order](task, heads, n, queries, **options)


__all__ = [
    "ORDERS",
    "BlockTerms",
    "FirstOrder",
    "Tilt",
    "ViewTerms",
    "block_terms",
    "check_exact",
    "first_order_arrays",
    "first_order_terms",
    "gaussian_overlap",
    "noise_correlation_law",
    "noise_covariance_law",
    "predict",
    "rescaled",
    "softmax_overlap",
    "softmax_overlap_of_maps",
    "tilted_mean",
    "tilted_product",
    "view_terms",
]
