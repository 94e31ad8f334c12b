"""House rules: the tolerances, words and counts that are the same for every question."""

LEVEL = 0.95
"""Confidence of every interval, and of "not always"."""
WITHIN = 0.95
"""Share of problems that a tolerance is stated for: T95."""
CALLED = 3.0
"""Standard errors from zero at which a simulated problem counts as one that holds or fails."""
SURE = 0.99
"""Confidence with which the outcome of a problem is called, over all its pairs and looks."""
FEWEST = 80
"""Number of problems below which a law or a stratum gets no word."""
SHOWN = 20
"""Problems below which no share is shown, and no group compared."""
INDEX_GAP = 0.05
"""Difference of an index of diversity from which two sets of heads are compared."""
TOLERANCES = {"roads": 0.05, "exact": 0.01, "slope": 0.1, "order": 0.01}
"""Agreement of simulation with first-order theory and with exact theory, relative; of slopes; the
relative change below which two errors count as equal."""


TOO_FEW = "too few to say"
"""The word of fewer problems than :data:`FEWEST`."""


BY_CONDITION = "depends on a condition"
"""The word where one field of the law decides."""
WORDS = ("rarely", "sometimes", "usually", "nearly always")
EDGES = (1 / 3, 2 / 3, 0.95)
"""Shares between neighbouring words."""


def word(interval: tuple[float, float], possible: bool, problems: int, level: bool = False) -> str:
    """The word for how often something holds.

    A share whose interval reaches over an edge is undecided between the words on both sides; but
    "usually" may reach beyond 95 %.

    Args:
        interval: interval of its share among the problems with a difference.
        possible: whether it may hold in any problem asked.
        problems: how many were asked.
        level: whether more than half of them have no difference.
    """
    if problems < FEWEST:
        return TOO_FEW
    if level:
        return "no difference"
    if not possible:
        return "never"
    among = words_of(interval)
    if len(among) == 1 or among[0] == "usually":
        return among[0]
    return f"undecided: {among[0]} {'or' if len(among) == 2 else 'to'} {among[-1]}"


def words_of(interval: tuple[float, float]) -> tuple[str, ...]:
    """The words that an interval of a share reaches over."""
    low, high = interval
    first = sum(low > edge for edge in EDGES)
    last = sum(high > edge for edge in EDGES)
    return WORDS[first : last + 1]
