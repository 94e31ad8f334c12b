"""House rules: the tolerances, words and counts that are the same for every question."""

LEVEL = 0.95
"""Confidence of every interval, and of "not always"."""
WITHIN = 0.95
"""Share of problems that a tolerance is stated for: T95."""
CALLED = 3.0
"""Standard errors from zero at which a simulated problem counts as one that holds or fails."""
FEWEST = 80
"""Problems below which nothing is said, of a whole or of a stratum."""
SHOWN = 20
"""Problems below which no share is shown, and no group compared."""
INDEX_GAP = 0.05
"""Difference of an index of diversity from which two sets of heads are compared."""
TOLERANCES = {"roads": 0.05, "exact": 0.01, "slope": 0.1}
"""Agreement of simulation with first-order theory and with exact theory, relative; of slopes."""


TOO_FEW = "too few to say"
"""The word of fewer problems than :data:`FEWEST`."""


def word(interval: tuple[float, float], possible: bool, problems: int) -> str:
    """The word for how often something holds.

    Args:
        interval: of its share.
        possible: whether it may hold in any problem asked.
        problems: how many were asked.
    """
    low, high = interval
    if problems < FEWEST:
        return TOO_FEW
    if not possible:
        return "never seen"
    if low > 2 / 3:
        return "nearly always" if low > 0.95 else "usually"
    return "rarely" if high < 1 / 3 else "mixed"
