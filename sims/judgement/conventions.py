"""Conventions: tolerances, words and counts that are the same for every question."""

LEVEL = 0.95
"""Confidence of every interval, and of "false as stated"."""
WITHIN = 0.95
"""Share of problems within the stated tolerance: T95."""
CALLED = 3.0
"""Standard errors from zero at which a simulated problem counts as one that holds or fails."""
SURE = 0.99
"""Confidence with which the outcome of a problem is called, over all its pairs and looks."""
FEWEST = 80
"""Number of problems below which a law or a stratum gets no word."""
SHOWN = 20
"""Number of problems below which no share is shown and no group compared."""
INDEX_GAP = 0.05
"""Least difference of a diversity index at which two sets of heads are compared."""
TOLERANCES = {"methods": 0.05, "exact": 0.01, "slope": 0.1, "order": 0.01}
"""Agreement of simulation with theory, and with exact theory of like accuracy, relative; of slopes;
the relative change below which two errors count as equal."""
WIDER = (0.05, 0.2)
"""Tolerances at which outcomes are shown, in addition to their question's."""

SWEPT = (0.01, 0.2)
"""Limits, in addition to 5 %, at which a share is shown where the limit is ours."""


def tolerance(name: str | None) -> float | None:
    """The tolerance that a question names; None without a name."""
    return TOLERANCES[name] if name else None


TOO_FEW = "too few to say"
"""Word for fewer problems than :data:`FEWEST`."""


BY_CONDITION = "depends on a condition"
"""Word if one field of the law decides."""
WORDS = ("rarely", "sometimes", "usually", "nearly always")
EDGES = (1 / 3, 2 / 3, 0.95)
"""Shares between neighbouring words."""


def word(share: float, interval: tuple[float, float], problems: int) -> str:
    """Word for how often a claim holds.

    The share gives the word, and the interval stands next to it. "Never" is of the interval: it is
    below 5 %, and no problem can hold.

    Args:
        share: the share of all problems, with half of the undecided ones.
        interval: its interval.
        problems: number of tested problems.
    """
    if problems < FEWEST:
        return TOO_FEW
    if share == 0 and interval[1] <= 1 - EDGES[-1]:
        return "never"
    return WORDS[sum(share >= edge for edge in EDGES)]


def words_of(interval: tuple[float, float]) -> tuple[str, ...]:
    """Words that an interval of a share covers."""
    low, high = interval
    first = sum(low > edge for edge in EDGES)
    last = sum(high > edge for edge in EDGES)
    return WORDS[first : last + 1]
