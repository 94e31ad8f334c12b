"""Evidence: the effects that a claim rests on, with all that is known of their errors."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sims.errors import InputError

FEWEST = 64
"""Batches from which on their skewness can be told from chance, and so be corrected: fewer decide
nothing. Error rates at the level that Holm asks for were measured from here on."""
_PER_EFFECT = ("effects", "errors", "batches", "fixed", "bounds", "skewness", "narrowing")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Effects of a claim, one a comparison, with their errors.

    Scalars stand for all effects. After construction the seven arrays are (k,), and points are
    tuples of names.

    Attributes:
        effects: (k,), such as relative gaps between theory and simulation, in the margin's unit.
        errors: Monte Carlo standard errors (k,) of the effects, in their unit; 0 where they are not
            sampled.
        batches: numbers of iid batches (k,) behind the effects; inf: not sampled, hence without
            Monte Carlo error.
        replicates: the fewest replicates behind an effect; 0: none needed.
        points: for every effect, names of the grid points that it rests on, which need more
            replicates if the verdict is open; an effect of one point may give its name alone.
        fixed: (k,) bool, whether the number of batches was fixed before the run: then t intervals,
            narrower with few batches, replace confidence sequences.
        bounds: (k,), how far an effect may be off for reasons that are not random, such as the
            error bound of a quadrature; in the unit of the effects.
        skewness: (k,), of the estimates: that of their batches over √B.
        narrowing: (k,) bool, whether more batches narrow an effect's bound, as one on a quantity
            whose sign they are to tell.
        fewest: batches from which on an effect may decide anything.

    Raises:
        InputError: the arrays do not broadcast to one length, points are not one an effect, an
            effect that is not sampled has an error, or a bound is negative.
    """

    effects: np.ndarray
    errors: np.ndarray | float
    batches: np.ndarray | float
    replicates: int = 0
    points: tuple[tuple[str, ...], ...] | None = None
    fixed: np.ndarray | bool = False
    bounds: np.ndarray | float = 0.0
    skewness: np.ndarray | float = 0.0
    narrowing: np.ndarray | bool = False
    fewest: int = FEWEST

    def __post_init__(self) -> None:
        arrays = [np.ravel(np.asarray(getattr(self, name), float)) for name in _PER_EFFECT]
        try:
            given = np.broadcast_arrays(*arrays)
            effects, errors, batches, fixed, bounds, skewness, narrowing = given
        except ValueError:
            lengths = dict(zip(_PER_EFFECT, map(len, arrays), strict=True))
            raise InputError("evidence", lengths, "arrays of one length, or scalars") from None
        unsampled = np.isinf(batches)
        if (errors[unsampled] > 0).any():
            raise InputError(
                "errors", errors[unsampled].max(), "0 where batches is inf (not sampled)"
            )
        if (bounds < 0).any():
            raise InputError("bounds", bounds.min(), "0 or more")
        if self.points is not None and len(self.points) != effects.size:
            raise InputError("points", len(self.points), f"{effects.size}, one an effect")
        flags = fixed.astype(bool), narrowing.astype(bool)
        values = (effects, errors, batches, flags[0], bounds, skewness, flags[1])
        for name, value in zip(_PER_EFFECT, values, strict=True):
            object.__setattr__(self, name, value)
        if self.points is not None:
            object.__setattr__(self, "points", tuple(map(_names, self.points)))

    @property
    def all_points(self) -> tuple[str, ...] | None:
        """The points behind all effects together, each once; None if they are not named."""
        if self.points is None:
            return None
        return tuple(dict.fromkeys(name for names in self.points for name in names))


def _names(points: str | Iterable[str]) -> tuple[str, ...]:
    return (points,) if isinstance(points, str) else tuple(points)
