"""Agreement of the answers of two runs. No JAX."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sims.judgement.answers import Answer
from sims.judgement.conventions import LEVEL
from sims.judgement.summaries import Mean
from sims.judgement.wording import percent

POWER = 0.8
"""Probability with which a difference that the comparison is said to show is found."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of the answers of two runs with different draws.

    Attributes:
        agreeing: ids of answers that agree.
        differing: ids of those that do not.
        visible: median over answers of the difference that is found with probability
            :data:`POWER`, relative to the number for means, otherwise absolute.
    """

    agreeing: list[str]
    differing: list[str]
    visible: float

    def in_words(self) -> str:
        """The counts and the power, as the object of "gave"."""
        count = len(self.agreeing) + len(self.differing)
        return (
            f"the same answer to {len(self.agreeing)} of {count} questions (median detectable "
            f"difference: {percent(self.visible)} with {percent(POWER)} power)."
        )


def agreement(first: Sequence[Answer], second: Sequence[Answer]) -> Agreement:
    """Agreement of the answers that both runs have with an interval, compared end by end.

    Two agree if neither end of one bracket lies outside the other by more than ``√(w² + w′²)``,
    with w the distance from that end to the interval's: a run that decides fewer problems has a
    wider bracket. If only the draws differ, they do so with probability
    :data:`~sims.judgement.conventions.LEVEL` or more. A difference of ``√(w² + w′²) (1 + z₀.₈ /
    z₀.₉₇₅)`` is found with probability :data:`POWER`.
    """
    partners = {item.id: item for item in second}
    agreeing, differing = list[str](), list[str]()
    tolerated = list[float]()
    for item in first:
        if item.id not in partners:
            continue
        both = (item.result.ends(), partners[item.id].result.ends())
        if None in both:
            continue
        one, other = map(np.array, both)
        allowed = np.hypot(one[:, 1], other[:, 1])
        scale = abs(one[:, 0]).max() if isinstance(item.result, Mean) else 1.0
        # From the lower end down and from the upper end up: by how much one reaches beyond.
        beyond = (other[:, 0] - one[:, 0]) * np.array([1, -1])
        agree = bool((beyond <= allowed).all() or (-beyond <= allowed).all())
        (agreeing if agree else differing).append(item.id)
        tolerated.append(float(allowed.max() / (scale or 1.0)))
    # Half widths of intervals are as many standard errors as the normal quantile of their level.
    reach = 1 + ndtri(POWER) / ndtri((1 + LEVEL) / 2)
    return Agreement(agreeing, differing, reach * float(np.median(tolerated or [0.0])))
