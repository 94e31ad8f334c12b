"""Agreement of the answers of two runs. No JAX."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sims.judgement.answers import Answer
from sims.judgement.summaries import Mean
from sims.judgement.wording import percent


@dataclass(frozen=True)
class Agreement:
    """Agreement of the answers of two runs with different draws.

    Attributes:
        agreeing: ids of answers that agree.
        differing: ids of those that do not.
        visible: median over answers of the smallest detectable difference, relative to the number
            for means, otherwise absolute.
    """

    agreeing: list[str]
    differing: list[str]
    visible: float

    def in_words(self, partner: str = "") -> str:
        """The counts, the names of differing answers, and the power, on one line.

        Args:
            partner: words after "agree", such as " with the published ones".
        """
        count = len(self.agreeing) + len(self.differing)
        names = f" ({', '.join(self.differing)} differ)" if self.differing else ""
        seen = percent(self.visible)
        return (
            f"{len(self.agreeing)} of {count} answers agree{partner}{names}; "
            f"half would show a difference of {seen}."
        )


def agreement(first: Sequence[Answer], second: Sequence[Answer]) -> Agreement:
    """Agreement of the answers that both runs have with an interval, compared end by end.

    Two agree if neither end of one bracket lies outside the other by more than ``√(w² + w′²)``,
    with w the distance from that end to the interval's: a run that decides fewer problems has a
    wider bracket. If only the draws differ, they do so with probability
    :data:`~sims.judgement.conventions.LEVEL` or more.
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
    return Agreement(agreeing, differing, float(np.median(tolerated)) if tolerated else 0.0)
