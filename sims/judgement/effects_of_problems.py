"""Stock effects: one number per problem, from theory and simulation of N problems. No JAX."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sims.base.estimates import mcse
from sims.judgement import conventions
from sims.judgement.effects import Effects


def of_batches(values: np.ndarray, **fields: np.ndarray | str | None) -> Effects:
    """Effects as means of iid batches.

    Args:
        values: (N, B).
        **fields: other fields of :class:`~sims.judgement.effects.Effects`.
    """
    return Effects(
        values.mean(1),
        mcse(values.T),
        draws=values,
        **fields,  # type: ignore[arg-type]
    )


def outcomes(draws: Sequence[np.ndarray], **fields: Any) -> Effects:
    """Outcomes of problems with several pairs: whether a quantity falls, rises or is level.

    Args:
        draws: of each problem the relative falls over its pairs, (B, P), as iid batches; NaN of a
            problem that has no pair.
        **fields: others of :class:`~sims.judgement.effects.Effects`.
    """
    value = np.stack([falls.mean(0) for falls in draws])
    error = np.stack([mcse(falls) for falls in draws])
    return Effects(value, error, "outcome", draws=draws, **fields)


def outcome(falls: np.ndarray, size: np.ndarray | None = None) -> Effects:
    """Outcomes of problems with one pair each: whether a quantity falls, rises or is level.

    Args:
        falls: (N, B) relative falls as iid batches; NaN for a problem without a pair.
        size: (N,) relative change; None if no size is reported.
    """
    draws = falls[..., None]
    error = mcse(draws.swapaxes(0, 1))
    size_error = None if size is None else error[:, 0]
    return Effects(
        draws.mean(1), error, "outcome", draws=[*draws], size=size, size_error=size_error
    )


def gap(values: np.ndarray, predicted: np.ndarray, valid: np.ndarray | None = None) -> Effects:
    """Relative gaps of simulation and theory, simulated / predicted − 1.

    Args:
        values: (N, B) simulated batches.
        predicted: (M,) by theory, M ≥ N.
        valid: (M,) mask of the problems that count; None is all.
    """
    theory = predicted[: len(values)]
    inside = np.isfinite(theory) & (theory != 0)
    inside &= True if valid is None else valid[: len(values)]
    return of_batches(values / np.where(inside, theory, np.nan)[:, None] - 1, kind="gap")


def slope(
    x: np.ndarray,
    values: np.ndarray,
    expected: float | np.ndarray,
    rival: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    valid: np.ndarray | None = None,
) -> Effects:
    """House tolerance minus the distance of the slope of log y on log x from an expected slope.

    It is minus the tolerance if a line in the rival's regressor fits log y better, since then the
    slope has no meaning.

    Args:
        x: (K,) or (M, K), positive.
        values: (N, B, K) simulated batches, positive in the mean.
        expected: the claimed slope, for all problems or for each, (M,).
        rival: regressor of the rival form, of the shape of x; None without a rival.
        predicted: (M, K) by theory; None without theory.
        valid: (M,) where theory is in its range.
    """

    def fitted(regressor: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, ...]:
        """Weights of log y in the slope, slopes (n,) and the squares that the line leaves (n,)."""
        lines = regressor[: len(log)] if regressor.ndim > 1 else regressor
        centred = lines - lines.mean(-1, keepdims=True)
        by = centred / (centred**2).sum(-1, keepdims=True)
        steep = (by * log).sum(-1)
        residual_squares = log - log.mean(-1, keepdims=True) - steep[:, None] * centred
        return by, steep, (residual_squares**2).sum(-1)

    margin, fits = conventions.TOLERANCES["slope"], []
    expected_slopes = np.atleast_1d(expected)
    for y in (values.mean(1), predicted):
        if y is not None:
            by, steep, residual_squares = fitted(np.log(x), np.log(y))
            worse = residual_squares if rival is None else fitted(rival, np.log(y))[2]
            inside = margin - np.abs(steep - expected_slopes[: len(y)])
            fits.append((np.where(worse < residual_squares, -margin, inside), by, steep))
    relative = (fits[0][1][..., None, :] * values / values.mean(1, keepdims=True)).sum(-1)
    theory = fits[1][0] if len(fits) > 1 else None
    (inside, _, steep), side = fits[0], expected_slopes[: len(values)]
    draws = inside[:, None] + np.where(steep < side, 1, -1)[:, None] * relative
    return of_batches(draws, predicted=theory, valid=valid)


def extremum(values: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
    """Index of the least value on a grid, (N,); NaN if it is censored.

    A minimum is censored at an end of the grid, or next to a point that is not valid.

    Args:
        values: (N, K).
        valid: (N, K) mask of values that count; None is all finite values.
    """
    good = np.isfinite(values) if valid is None else valid & np.isfinite(values)
    place = np.where(good, values, np.inf).argmin(1)
    padded = np.pad(good, ((0, 0), (1, 1)))
    rows = np.arange(len(values))
    inside = padded[rows, place] & padded[rows, place + 1] & padded[rows, place + 2]
    return np.where(inside, place, np.nan)
