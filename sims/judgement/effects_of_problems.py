"""Stock effects: one number a problem, from what both roads return of N problems. No JAX."""

import numpy as np

from sims.estimates import mcse
from sims.judgement import house
from sims.judgement.answers import Effects


def of_batches(values: np.ndarray, **fields: np.ndarray | str | None) -> Effects:
    """Effects that are means of iid batches.

    Args:
        values: (N, B).
        **fields: others of :class:`~sims.judgement.answers.Effects`.
    """
    return Effects(
        values.mean(1),
        mcse(values.T),
        batches=values.shape[1],
        **fields,  # type: ignore[arg-type]
    )


def gap(values: np.ndarray, predicted: np.ndarray, valid: np.ndarray | None = None) -> Effects:
    """Relative gaps of the two roads, simulated / predicted − 1.

    Args:
        values: (N, B) simulated batches.
        predicted: (M,) by theory, M ≥ N.
        valid: (M,) problems of which it is asked; None: all.
    """
    theory = predicted[: len(values)]
    inside = np.isfinite(theory) & (theory != 0)
    inside &= True if valid is None else valid[: len(values)]
    return of_batches(values / np.where(inside, theory, np.nan)[:, None] - 1, kind="gap")


def order(
    index: np.ndarray,
    values: np.ndarray,
    predicted: np.ndarray | None = None,
    valid: np.ndarray | None = None,
) -> tuple[Effects, Effects]:
    """The fall of a value from the set of lower to the set of higher index.

    Args:
        index: (M, S) of the sets of each problem, M ≥ N.
        values: (N, B, S) simulated batches.
        predicted: (M, S) by theory; None where it does not reach.
        valid: (M,) where theory is in its range.

    Returns:
        The fall between the first two sets, in order, whose index differs by
        :data:`~sims.judgement.house.INDEX_GAP`, NaN where there are none; and the share of all such
        pairs of a problem that fall, an estimate whose interval is over problems (theory's if there
        is one; a simulated share is nearer to ½ than the true one).
    """
    one, two = np.triu_indices(index.shape[1], 1)
    rise = index[:, two] - index[:, one]
    far = np.abs(rise) >= house.INDEX_GAP
    first, some = far.argmax(1), far.any(1)

    def falls(of: np.ndarray) -> np.ndarray:
        """(…, S) to (…, pairs); leading axes are problems and batches."""
        sign = np.sign(rise[: len(of)])
        return (of[..., one] - of[..., two]) * (sign[:, None] if of.ndim == 3 else sign)

    def pair(fall: np.ndarray) -> np.ndarray:
        places = first[: len(fall)].reshape((-1,) + (1,) * (fall.ndim - 1))
        found = np.take_along_axis(fall, places, -1)[..., 0]
        found[~some[: len(fall)]] = np.nan
        return found

    def falling(fall: np.ndarray) -> np.ndarray:
        own = far[: len(fall)]
        with np.errstate(invalid="ignore"):
            return np.asarray((own & (fall > 0)).sum(1) / own.sum(1))

    simulated = falls(values)
    theory = None if predicted is None else falls(predicted)
    of_first = of_batches(
        pair(simulated), predicted=None if theory is None else pair(theory), valid=valid
    )
    of_all = Effects(
        falling(simulated.mean(1)),
        np.zeros(len(values)),
        kind="estimate",
        predicted=None if theory is None else falling(theory),
        valid=valid,
    )
    return of_first, of_all


def slope(
    x: np.ndarray,
    values: np.ndarray,
    expected: float | np.ndarray,
    rival: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    valid: np.ndarray | None = None,
) -> Effects:
    """How far the slope of log y on log x is inside the house tolerance about an expected one.

    Negative where it is outside, and minus the tolerance where log y lies nearer to a line in the
    rival's regressor: then the slope means nothing.

    Args:
        x: (K,) or (M, K), positive.
        values: (N, B, K) simulated batches, positive in the mean.
        expected: the slope that is claimed, of all problems or of each, (M,).
        rival: the regressor of the rival form, of the shape of x; None: no rival.
        predicted: (M, K) by theory; None where it does not reach.
        valid: (M,) where theory is in its range.
    """

    def fitted(regressor: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, ...]:
        """Weights of log y in the slope, (n, K); slopes and squares left by the line, (n,)."""
        own = np.atleast_2d(regressor)
        own = own[: len(log)] if len(own) > 1 else own
        centred = own - own.mean(-1, keepdims=True)
        by = np.broadcast_to(centred / (centred**2).sum(-1, keepdims=True), log.shape)
        steep = (by * log).sum(-1)
        left = log - log.mean(-1, keepdims=True) - steep[:, None] * centred
        return by, steep, (left**2).sum(-1)

    def inside(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The effects of curves (n, K), and the weights."""
        by, steep, left = fitted(np.log(x), np.log(y))
        wanted = np.atleast_1d(expected)
        wanted = wanted[: len(y)] if len(wanted) > 1 else wanted
        margin = house.TOLERANCES["slope"] - np.abs(steep - wanted)
        if rival is not None:
            nearer = fitted(rival, np.log(y))[2] < left
            margin = np.where(nearer, -house.TOLERANCES["slope"], margin)
        return margin, by

    mean = values.mean(1)
    value, by = inside(mean)
    error = mcse(np.moveaxis((by[:, None] * values / mean[:, None]).sum(-1), 1, 0))
    theory = None if predicted is None else inside(predicted)[0]
    return Effects(value, error, "share", theory, valid, values.shape[1])


def extremum(values: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
    """The place of the least value on a grid, (N,), NaN where it is censored.

    Censored is a minimum at an end of the grid, or beside a point that is not valid.

    Args:
        values: (N, K).
        valid: (N, K) which of them count; None: all that are finite.
    """
    good = np.isfinite(values) if valid is None else valid & np.isfinite(values)
    place = np.where(good, values, np.inf).argmin(1)
    padded = np.pad(good, ((0, 0), (1, 1)))
    rows = np.arange(len(values))
    inside = padded[rows, place] & padded[rows, place + 1] & padded[rows, place + 2]
    return np.where(inside, place, np.nan)
