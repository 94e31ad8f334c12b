"""Sizes, budgets and widths of the curves, and what results on them are read by."""

import numpy as np

LATENT = 64
"""Coordinates of a shared view, and the widest head."""
WIDTHS = np.arange(1.0, LATENT + 1)
SIZES = 2.0 ** np.arange(7, 28, 2)
"""Numbers of keys n of the curves d_k*(n)."""
BUDGETS = 2 ** np.arange(5, 10)
"""Budgets D of the curves H*(D)."""
GIVEN = ("total relevance", "a coordinate's relevance", "one target")
"""What stays as D grows, where relevance is even. The one target has the most coordinates."""

DECADES = 2.0
"""Decades of n over which d_k* has to be known to tell a form of growth."""
RISE = 2.0
"""Widths by which d_k* has to rise to tell a form of growth."""
LONG = 4.0
"""Decades over which a smaller rise counts as none."""
FEWEST = 3
"""Budgets, each twice the one before, at which d_k* has to be known for an exponent."""


def splits(budget: int) -> np.ndarray:
    """The widths of whole splits of a budget: its divisors."""
    return np.flatnonzero(budget % WIDTHS == 0) + 1


def inner_part(by_keys: np.ndarray, most: int) -> np.ndarray:
    """Where d_k*(n), (n,), is known and neither 1 nor the width of the widest head."""
    return (by_keys > 1) & (by_keys < most)


def grows(by_keys: np.ndarray, most: int, limited: bool) -> bool | None:
    """Whether d_k*(n) rises enough to have a form; None where too little of it is known.

    It rises by :data:`RISE` over :data:`DECADES` between the ends of its range, or does not over
    :data:`LONG`.

    Args:
        by_keys: d_k*, (n,), NaN where it is not known.
        most: the widest head.
        limited: whether there are no wider heads, so that one that stays best is no growth.
    """
    step = np.log10(SIZES[1] / SIZES[0])
    inner = inner_part(by_keys, most)
    if (inner.sum() - 1) * step >= DECADES and by_keys[inner][-1] - by_keys[inner][0] >= RISE:
        return True
    if limited and ((by_keys == most).sum() - 1) * step >= LONG:
        return False
    known = by_keys[np.isfinite(by_keys)]
    if (len(known) - 1) * step >= LONG and known[-1] - known[0] < RISE:
        return False
    return None
