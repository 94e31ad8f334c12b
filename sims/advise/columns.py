"""Columns of a table that are no feature, and values that are no measurement."""

import re

import numpy as np
from scipy.stats import rankdata

from sims.base.errors import InputError

FEWEST = 20
"""Minimum number of rows."""
INDEX = re.compile(
    r"|Unnamed: .*|.*[a-z](Id|ID)"
    r"|(?i:(.*[ _.-])?id|index|idx|level_0|obs|rn|#|row[ _.-]?(s|id|index|no|nr|num(ber)?|names?)?)"
)
"""Names (or no name) of columns that number the rows, if they contain at least 20 integers."""
SAME_ORDER = 0.999
"""Squared rank correlation from which a column has the order of an output."""
FAR = 20.0
"""Ratio of distances from the median from which a value is absurd."""


def choose_columns(x: np.ndarray, y: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Mask (d,) of columns that vary and do not number the rows, and notes on columns.

    The last varying column is always kept.

    Raises:
        InputError: no column varies.
    """
    kept = np.ptp(x, axis=0) > 0
    if not kept.any():
        raise InputError("data, X", "only constant columns", "a varying feature")
    notes = []
    if gone := int((~kept).sum()):
        notes.append(f"Left out {gone} constant column{'s' * (gone > 1)}.")
    for column in np.flatnonzero(kept):
        name = names[column] or "without a name"
        values = np.unique(x[:, column])
        if len(values) < FEWEST or kept.sum() == 1:
            continue
        whole = not (values % 1).any()
        many = len(values) >= len(x) / 2
        if whole and INDEX.fullmatch(names[column]):
            kept[column] = False
            notes.append(f"Left out the column {name}, which numbers the rows.")
        elif has_order(x[:, column], y):
            if whole and many:
                kept[column] = False
                notes.append(f"Left out the column {name}, which numbers the rows by the output.")
            else:
                notes.append(f"The column {name} equals an output: drop it unless it is known.")
        elif whole and many and (np.ptp(values) < len(values) or (np.diff(x[:, column]) > 0).all()):
            notes.append(f"The column {name} counts the rows; drop it unless it is measured.")
    return kept, notes


def has_order(column: np.ndarray, y: np.ndarray) -> bool:
    """Whether the column has the order of an output, or the reverse."""
    ranks = rankdata(y, axis=0)
    sequence = ranks[np.argsort(column, kind="stable")]
    squares = [
        np.corrcoef(np.sort(output), places)[0, 1] ** 2
        for output, places in zip(ranks.T, sequence.T, strict=True)
    ]
    return max(squares) > SAME_ORDER


def find_absurd(table: np.ndarray, names: list[str]) -> list[str]:
    """Notes on values far from all others of their column, in at most 2 % of the rows (or 3)."""
    distances = np.abs(table - np.median(table, axis=0))
    ordered = np.sort(distances, axis=0)
    few = max(3, len(table) // 50)
    below = ordered[-few - 1 : -1]
    jumps = (ordered[-few:] > FAR * below) & (below > 0)
    notes = []
    for column in np.flatnonzero(jumps.any(0)):
        first = jumps[:, column].argmax()
        rows = np.flatnonzero(distances[:, column] > below[first, column])
        if len(np.unique(np.delete(table[:, column], rows))) < few:
            continue
        listed = ", ".join(f"{table[row, column]:.6g} in row {row + 1}" for row in rows[:3])
        more = f" and {len(rows) - 3} more" * (len(rows) > 3)
        line = f"The column {names[column]} holds {listed}{more}, far from all other rows: "
        notes.append(line + "correct or remove it.")
    return notes
