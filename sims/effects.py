"""Effects: what a claim is about, as numbers with their errors, before anyone says what they mean.

An experiment's ``effects.py`` turns the results of both roads into families of effects. An effect
knows the grid points it rests on, so that an open claim can say where; it knows no margin, no level
and no verdict, which stand in ``experiment.yaml`` and were fixed before the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sims.estimates import mean_and_error, skewness


@dataclass(frozen=True, eq=False)
class Effect:
    """One effect: an estimate, its Monte Carlo error, and what it rests on.

    Attributes:
        label: what it is of, such as "gaussian, 60°".
        value: the estimate.
        error: its MCSE; 0 for an effect that is not sampled.
        batches: B behind the estimate; ``inf`` for an effect that is not sampled.
        points: names of the grid points whose batches it rests on: those that need more of them if
            the claim is open. Empty where more batches do not help.
        skewness: of the estimate, that of its batches over √B.
        bound: ≥ 0, how far off the estimate may be for reasons that are not random, such as
            quadrature; the same in every batch.
        condition: ≥ 1, how many times the computation enlarges rounding (of identities).
        x: the abscissa, for tests of rates and laws.
        values: iid batch values or pseudo-values (B,) behind the estimate, for tests that need the
            covariance of several effects; for candidates of a choice (B, k); for an identity, all
            gaps, of any shape.
        best: the place of the candidate that is said to be best, for a choice.
        replicates: Monte Carlo replicates behind it; None for the fewest of the experiment.
        unit: what would have to be more of, for the estimate to be more exact.
        at: facts that a claim may select effects by (its ``where``), such as n_eff.
    """

    label: str
    value: float = np.nan
    error: float = 0.0
    batches: float = np.inf
    points: tuple[str, ...] = ()
    skewness: float = 0.0
    bound: float = 0.0
    condition: float = 1.0
    x: float | None = None
    values: np.ndarray | None = None
    best: int | None = None
    replicates: int | None = None
    unit: str = "replicates"
    at: Mapping[str, float | str] = field(default_factory=dict)

    def scaled(self, factor: float) -> "Effect":
        """The effect in another unit: all that has one times a factor, which may be negative."""
        values = None if self.values is None else self.values * factor
        size = abs(factor)
        return replace(
            self,
            value=self.value * factor,
            error=self.error * size,
            bound=self.bound * size,
            values=values,
            skewness=self.skewness * float(np.sign(factor)),
        )


def of_batches(
    label: str, values: np.ndarray, points: str | Sequence[str] = (), **fields: Any
) -> Effect:
    """The effect that is the mean of iid batch values, or of their pseudo-values.

    Args:
        label: what it is of.
        values: (B,), B ≥ 2.
        points: as in :class:`Effect`; a name stands for itself.
        **fields: others of :class:`Effect`, such as bound, x, replicates, unit and at.
    """
    value, error = mean_and_error(values)
    names = (points,) if isinstance(points, str) else tuple(dict.fromkeys(points))
    skewed = float(skewness(values))
    return Effect(label, value, error, len(values), names, skewed, values=values, **fields)


Families = dict[str, list[Effect]]
"""What ``effects.py`` returns: families of effects by the names that claims use."""
