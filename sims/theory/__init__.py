"""Theory: closed forms to first order in 1/n, laws, and exact quadrature at any n."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.base.errors import InputError, Uncovered, one_of
from sims.base.runtime import forget_changed
from sims.base.terms import phrases
from sims.problem import Heads, Kernel, SequenceDesign, Task, problem_digest
from sims.theory.coverage import (
    FEW_KEYS,
    add_cautions,
    check_affordable,
    check_exact,
    in_range,
    noise_for_share,
    without_value,
)
from sims.theory.differentiable import terms
from sims.theory.first_order.blocks import block_terms
from sims.theory.first_order.closed_forms import FirstOrder, first_order_arrays, first_order_terms
from sims.theory.first_order.laws import (
    gaussian_overlap,
    noise_correlation_law,
    softmax_overlap,
    softmax_overlap_of_maps,
)
from sims.theory.first_order.tilts import Tilt, tilted_mean, tilted_product
from sims.theory.first_order.views import SplitTerms, view_terms
from sims.theory.limits import Unseen, limit_bias, limit_error, unseen
from sims.weights import WeightRule
from sims.weights.merged import SlotWeights


def _within_float64(terms: Callable[..., xr.Dataset]) -> Callable[..., xr.Dataset]:
    def computed(task: Task, heads: Heads, n: int, *arguments: Any, **options: Any) -> xr.Dataset:
        try:
            return terms(task, heads, n, *arguments, **options)
        except ArithmeticError as error:
            raise without_value(n, heads.bandwidth, "some query") from error

    return computed


@_within_float64
def _first_order_terms(task: Task, heads: Heads, *arguments: Any, **options: Any) -> xr.Dataset:
    merged = isinstance(heads.rule, WeightRule) and isinstance(heads.rule.weights, SlotWeights)
    if merged or isinstance(task.design, SequenceDesign):
        from sims.theory.neighbours.merging import merged_terms

        terms = merged_terms
    elif isinstance(heads.rule, Kernel):
        terms = first_order_terms
    else:
        # Imported late, like exact theory: SciPy's integration is slow to load.
        from sims.theory.first_order.adaptive import adaptive_terms

        terms = adaptive_terms
    with np.errstate(all="ignore"):  # what is not finite is a fault
        return add_cautions(terms(task, heads, *arguments, **options))


@_within_float64
def _exact_terms(*problem: Any, **options: Any) -> xr.Dataset:
    # Imported late: quadrature's libraries take as long to load as first order takes to compute.
    from sims.theory.exact import exact_terms

    return exact_terms(*problem, **options)


def _auto_terms(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    weights: ArrayLike | None = None,
    **options: Any,
) -> xr.Dataset:
    """First-order terms within their range; beyond it exact terms, if affordable and accurate."""
    first = None
    refused = None
    try:
        first = _first_order_terms(task, heads, n, queries, weights=weights)
    except InputError as error:
        refused = error
    if first is not None and in_range(first):
        return first
    if first is not None and "faults" in first.attrs:
        first = None
    best = first
    try:
        check_affordable(task, heads, queries, options.get("rtol"))
        if isinstance(heads.rule, Kernel):
            options.setdefault("rtol", PERCENT)
        exact = _exact_terms(task, heads, n, queries, weights=weights, **options)
        mse = float(exact["mse"])
        bound = float(exact["mse_error"])
        if bound <= TRUSTED * mse:
            return exact
        best = exact if first is None else first
        why = f"exact theory says {mse:.3g} with an error of up to {bound:.2g} for the MSE"
    except InputError as error:
        if first is None:
            told = refused if refused and isinstance(error, Uncovered) else error
            raise told from None
        why = f"exact theory does not cover {error.field} {error.value} (covered: {error.allowed})"
    assert best  # for the type checker
    none = f"no theory is trustworthy here: {why}"
    return best.assign_attrs(cautions="\n".join([*phrases(best, "cautions"), none]))


PERCENT = 0.02
"""Accuracy that order auto asks of exact theory with kernels."""
TRUSTED = 0.05
"""Largest bound on exact theory's error, as a share of the MSE, that order auto accepts."""
ORDERS: dict[str, Callable[..., xr.Dataset]] = {
    "first": _first_order_terms,
    "exact": _exact_terms,
    "auto": _auto_terms,
}
"""Every order of theory: name to ``(task, heads, n, queries, **options) -> Dataset``."""
_EXACT = ("weights", "rtol", "max_level", "progress")
OPTIONS = {"first": ("weights",), "exact": _EXACT, "auto": _EXACT}
"""Arguments of every order, in addition to the problem."""


def predict(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    order: Literal["first", "exact", "auto"] = "first",
    **options: Any,
) -> xr.Dataset:
    """Terms of the decomposition by theory.

    Args:
        task: design, target, noise.
        heads: frames of queries and of keys, kernel, bandwidths.
        n: number of keys.
        queries: (Q, d).
        order: ``first``: closed forms, to first order in 1/n; ``exact``: integrals at any n;
            ``auto``: exact (to 2 % unless ``rtol`` is given) if first order is out of its range or
            does not cover the problem, and exact theory takes at most some minutes and bounds its
            error by 5 % of the MSE. Otherwise ``auto`` returns first order with a caution, or
            raises where first order is impossible (n_eff or n_third below 1, numbers beyond
            float64).
        options: options of that order: ``weights`` for all; those of
            :func:`sims.theory.exact.exact_terms`, such as ``rtol``, for ``exact`` and ``auto``.

    Returns:
        The dataset of :mod:`sims.base.terms` (no batches), with ``n_eff`` (query, head) and the
        attributes ``order``, the order used, and ``inputs``, a digest of the problem that
        :func:`sims.estimate` gives too. If needed, it has ``cautions`` (first order is rough,
        since n_eff or n_third is below :data:`FEW_KEYS`) and ``faults`` (numbers are lost in
        rounding or beyond float64, or first order is NaN, since n_eff or n_third is below 1), text
        with one phrase per line.

    Raises:
        Uncovered: the order does not cover the problem (an InputError): theory needs weights
            K/ΣK, first order a Gaussian design, a trigonometric series and the gaussian or softmax
            kernel; or, of a series, α-entmax of distances, a Gaussian design and heads of width 1
            or 2. Exact theory of α-entmax needs 30 attended keys. With kernels it takes every
            function as a target. First order alone covers merged keys, and keys that are a
            sequence.
        InputError: parts do not fit together, or float64 cannot hold the problem.
    """
    if order not in ORDERS:
        raise InputError("order", order, one_of(ORDERS, order))
    for name in options.keys() - OPTIONS[order]:
        allowed = f"{one_of(OPTIONS[order], name)} (order {order})"
        raise InputError("option of predict", name, allowed)
    forget_changed(task, heads)
    terms = ORDERS[order](task, heads, n, queries, **options)
    return terms.assign_attrs(
        inputs=problem_digest(task, heads, n, queries, options.get("weights"))
    )


__all__ = [
    "FEW_KEYS",
    "ORDERS",
    "FirstOrder",
    "SplitTerms",
    "Tilt",
    "Unseen",
    "block_terms",
    "check_affordable",
    "check_exact",
    "first_order_arrays",
    "first_order_terms",
    "gaussian_overlap",
    "in_range",
    "limit_bias",
    "limit_error",
    "noise_correlation_law",
    "noise_for_share",
    "predict",
    "softmax_overlap",
    "softmax_overlap_of_maps",
    "terms",
    "tilted_mean",
    "tilted_product",
    "unseen",
    "view_terms",
]
