"""Table of methods: errors, paired differences, and standard errors over groups of rows."""

from dataclasses import dataclass

import numpy as np

from sims.advise.search import Setting

CLEAR = 2.0
"""Number of standard errors beyond which a difference counts."""


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: name of the method.
        error: mean over the reporting rows.
        standard_error: its standard error over groups of rows and draws of frames.
        difference: error minus that of the best setting.
        difference_error: its standard error, of paired rows.
        setting: setting of heads; None for a baseline.
    """

    name: str
    error: float
    standard_error: float
    difference: float
    difference_error: float
    setting: Setting | None = None

    @property
    def clear(self) -> bool:
        """True if the difference is more than :data:`CLEAR` standard errors."""
        return abs(self.difference) > CLEAR * self.difference_error

    @property
    def difference_text(self) -> str:
        """Difference in words."""
        word = "less" if self.difference < 0 else "more"
        return f"{abs(self.difference):.2g} ± {self.difference_error:.2g} {word}"

    @property
    def share_text(self) -> str:
        """Difference in words, in per cent of the error of the best setting."""
        if not (best := self.error - self.difference):
            return self.difference_text
        word = "less" if self.difference < 0 else "more"
        error = 100 * self.difference_error / best
        return f"{100 * abs(self.difference) / best:.0f} % {word} (± {error:.0f} %)"


def standard_error(losses: np.ndarray, groups: np.ndarray) -> float:
    """Standard error of a mean whose rows are dependent within groups."""
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(codes, losses - losses.mean())
    count = len(sums)
    return float(np.sqrt(np.sum(sums**2) * count / max(count - 1, 1)) / len(losses))


def compare_methods(
    losses: dict[str, np.ndarray], best: np.ndarray, groups: np.ndarray, named: dict[str, Setting]
) -> list[Row]:
    """Means, standard errors and paired differences of losses (draw, Q) or (Q,)."""

    def spread(of: np.ndarray) -> float:
        between = of.mean(1).var(ddof=1) / len(of) if len(of) > 1 else 0.0
        return float(np.hypot(standard_error(of.mean(0), groups), between**0.5))

    rows = []
    for name, loss in losses.items():
        table = np.atleast_2d(loss)
        gap = table - best
        error = float(table.mean())
        row = Row(name, error, spread(table), float(gap.mean()), spread(gap), named.get(name))
        rows.append(row)
    return rows
