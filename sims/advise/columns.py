"""Columns of a table that are no feature, and values that are no measurement."""

import re

import numpy as np
import pandas as pd
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


def choose_columns(table: pd.DataFrame, y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Mask (d,) of columns that vary and do not number the rows, and notes on columns.

    The last varying column is always kept.

    Raises:
        InputError: no column varies.
    """
    x = table.to_numpy()[:, : -y.shape[1]]
    names = [*table]
    kept = np.ptp(x, axis=0) > 0
    if not kept.any():
        raise InputError("data, X", "only constant columns", "a varying feature")
    notes = []
    if gone := int((~kept).sum()):
        notes.append(f"Left out {gone} constant column{'s' * (gone > 1)}.")
    for column in np.flatnonzero(kept):
        if kept.sum() > 1 and (note := note_column(x[:, column], y, names[column])):
            kept[column] = not note.startswith("Left out")
            notes.append(note)
    return kept, notes


def note_column(column: np.ndarray, y: np.ndarray, name: str) -> str:
    """Note on a column that numbers the rows or equals an output; empty for others."""
    values = np.unique(column)
    if len(values) < FEWEST:
        return ""
    whole = not (values % 1).any()
    counts = whole and len(values) >= len(column) / 2
    name_of_column = f"column {name or 'without a name'}"
    numbers_rows = f"Left out the {name_of_column}, which numbers the rows"
    if whole and INDEX.fullmatch(name):
        return f"{numbers_rows}."
    if has_order(column, y):
        equal = f"The {name_of_column} equals an output: drop it unless it is known."
        return f"{numbers_rows} by the output." if counts else equal
    if counts and (np.ptp(values) < len(values) or (np.diff(column) > 0).all()):
        return f"The {name_of_column} counts the rows; drop it unless it is measured."
    return ""


def has_order(column: np.ndarray, y: np.ndarray) -> bool:
    """Whether the column has the order of an output, or the reverse."""
    ranks = rankdata(y, axis=0)
    ranks -= ranks.mean(0)
    products = np.sort(ranks, axis=0) * ranks[np.argsort(column, kind="stable")]
    correlations = products.sum(0) / (ranks**2).sum(0)
    return bool((correlations**2).max() > SAME_ORDER)


def find_absurd(table: pd.DataFrame) -> list[str]:
    """Notes on values far from all others of their column, in at most 2 % of the rows (or 3)."""
    few = max(3, len(table) // 50)
    notes = []
    for name, column in table.items():
        values = column.to_numpy()
        distances = np.abs(values - np.median(values))
        ordered = np.sort(distances)[-few - 1 :]
        below = ordered[:-1]
        jumps = (ordered[1:] > FAR * below) & (below > 0)
        rows = np.flatnonzero(distances > below[jumps.argmax()])
        if not jumps.any() or len(np.unique(np.delete(values, rows))) < few:
            continue
        listed = ", ".join(f"{values[row]:.6g} in row {row + 1}" for row in rows[:3])
        more = f" and {len(rows) - 3} more" * (len(rows) > 3)
        line = f"The column {name} holds {listed}{more}, far from all other rows: "
        notes.append(line + "correct or remove it.")
    return notes
