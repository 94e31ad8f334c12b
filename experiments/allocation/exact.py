"""Exact errors of every width at any n, where first order leaves a regime open."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from .apart import block_errors, law_of_blocks
from .grids import GIVEN, WIDTHS
from .integrals import nodes_of_bandwidths
from .problems import (
    Curve,
    Drawn,
    at_best_bandwidth,
    bandwidths,
    fits,
    own_coordinates,
    terms_of,
)
from .shared import draw_waves, head_errors, law_of_key

DENSE = np.array([*range(1, 13), 14, 16, 18, 20, 24, 28, 32, 40, 48, 64])
"""Widths that show where a curve is least, to one per cent of d_k*."""
LOST, ROW = 1.2, 3
"""Ratio to the least error that so many widths in a row exceed where wider heads are left out."""


Heads = Callable[[int], np.ndarray]
"""From a width to errors of one head and products of two heads' errors, (2, n, bandwidth)."""


def exact_curve(
    drawn: Drawn,
    n: ArrayLike,
    budget: ArrayLike,
    widths: np.ndarray = DENSE,
    lost: float = LOST,
    condition: str = GIVEN[0],
) -> Curve:
    """Exact errors of every width at pairs of n and D, by the regime's rule for the temperature.

    Between the given widths the logarithm of the error is a cubic spline in log width. Widths are
    left out, as infinite errors, once :data:`ROW` narrower ones in a row err more by a ratio.

    Args:
        drawn: the regime.
        n: numbers of keys, broadcast against the budgets.
        budget: D.
        widths: in ascending order, two or more.
        lost: the ratio; infinite for all widths.
        condition: one of :data:`.grids.GIVEN`.
    """
    keys, budgets = (np.ravel(part).astype(float) for part in np.broadcast_arrays(n, budget))
    if drawn["decay"] != "even":
        heads = heads_of(drawn, keys, drawn["budget"], condition)
        return curve_of(drawn, heads, budgets, widths, lost)
    parts = []
    for dimensions in np.unique(budgets):
        rows = budgets == dimensions
        possible = widths[fits(drawn, dimensions / widths)]
        heads = heads_of(drawn, keys[rows], int(dimensions), condition)
        parts.append(curve_of(drawn, heads, budgets[rows], possible, lost))
    return Curve(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def heads_of(drawn: Drawn, keys: np.ndarray, budget: int, condition: str) -> Heads:
    """Heads of the regime at these numbers of keys; a shared view is the same for all budgets."""
    terms = terms_of(drawn, budget, condition)
    limits = np.stack([terms.limit_squared, terms.limit_product], axis=-1)
    bands = np.broadcast_to(bandwidths(drawn), limits.shape[:-1])
    if drawn["decay"] == "even":
        law_of: Callable[[int], Any] = partial(
            law_of_blocks, drawn, *own_coordinates(drawn, budget, condition)
        )
        errors_of: Callable[..., np.ndarray] = block_errors
    else:
        law_of = partial(law_of_key, drawn, *draw_waves(drawn))
        errors_of = head_errors

    def errors(width: int) -> np.ndarray:
        law = law_of(width)
        found = []
        places = nodes_of_bandwidths(law.score, law.alone, bands[width - 1], keys)
        for nodes, limit in zip(places, limits[width - 1], strict=True):
            found.append(errors_of(law, nodes, keys, limit, drawn["noise_sd"]))
        return np.stack(found, axis=-1)

    return errors


def curve_of(
    drawn: Drawn, heads_of: Heads, budgets: np.ndarray, widths: np.ndarray, lost: float
) -> Curve:
    """The curve of all widths from some of them."""
    bands = np.broadcast_to(bandwidths(drawn), (len(WIDTHS), bandwidths(drawn).shape[1]))
    errors: list[np.ndarray] = []
    chosen: list[np.ndarray] = []
    for width in widths:
        single, pair = heads_of(width)
        heads = budgets[:, None] / width
        others = np.where(heads == 1, 0.0, (1 - 1 / heads) * pair)
        error = np.where(heads >= 1, single / heads + others, np.inf)
        curve = Curve(error[:, 0], np.isfinite(error[:, 0]), bands[None, width - 1, 0])
        if bands.shape[1] > 1:
            curve = at_best_bandwidth(bands[width - 1], error, np.isfinite(error))
        errors.append(curve.error)
        chosen.append(np.broadcast_to(curve.bandwidth, len(budgets)))
        if (np.array(errors[-ROW:]) > lost * np.min(errors, axis=0)).all():
            break
    computed = widths[: len(errors)]
    curve = between_widths(computed, np.transpose(errors), np.transpose(chosen))
    possible = curve.known & fits(drawn, budgets[:, None] / WIDTHS)
    return curve._replace(error=np.where(possible, curve.error, np.inf), known=possible)


def between_widths(widths: np.ndarray, errors: np.ndarray, bands: np.ndarray) -> Curve:
    """The curve of all widths from errors and bandwidths at some, (K, width)."""
    filled = np.full((len(errors), len(WIDTHS)), np.inf)
    bandwidth = np.full(filled.shape, np.nan)
    for row, (error, band) in enumerate(zip(errors, bands, strict=True)):
        known = np.isfinite(error)
        log = np.log(widths[known])
        inside = widths[known][-1] >= WIDTHS
        spline = CubicSpline(log, np.log(error[known]))
        filled[row, inside] = np.exp(spline(np.log(WIDTHS[inside])))
        bandwidth[row, inside] = np.interp(np.log(WIDTHS[inside]), log, band[known])
    return Curve(filled, np.isfinite(filled), bandwidth)
