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


def splits(budget: int) -> np.ndarray:
    """The widths of whole splits of a budget: its divisors."""
    return np.flatnonzero(budget % WIDTHS == 0) + 1
