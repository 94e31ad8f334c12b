"""Outcomes of a problem: the falls of each question, with simultaneous bounds."""

from collections.abc import Mapping

import numpy as np

from sims.judgement import house
from sims.judgement.outcomes import UNDECIDED, outcome_calls

from .sets import ALIGNED, HAAR, ORTHOGONAL, OWN_BEST

LOOKS = (128, 512, 2048)
"""Numbers of batches at which a problem may be looked at. The first one is the first round, which
all problems have; a run of fewer batches leaves out the last ones."""
FIRST_ROUND = LOOKS[0]
STEPS = ((0, 1), (1, 2), (2, 3), (3, 4))
"""Pairs of neighbouring rungs of the ladder."""
QUESTIONS = ("hdi-monotone", "hdi", "extremes", "not-heads-alone", "adding-heads")
"""Order questions, each with falls over pairs of sets."""


def is_decided(arrays: Mapping[str, np.ndarray], fits: bool) -> bool:
    """True if every question's outcome is known, in both readings, at own best temperatures."""
    for reading in (0, 1):
        for question in QUESTIONS:
            if question == "extremes" and not fits:
                continue
            falls = falls_of(question, arrays, reading, OWN_BEST)
            call = outcome_calls(
                falls.mean(0)[None],
                (falls.std(0, ddof=1) / len(falls) ** 0.5)[None],
                np.array([len(falls) - 1.0]),
                len(LOOKS),
                house.TOLERANCES["order"],
            )
            if call == UNDECIDED:
                return False
    return True


def falls_of(
    question: str, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """Relative falls of a question over its pairs as pseudo-values of the batches, (B, P).

    Their mean is the fall of the means, and their spread that of the fall to first order.

    Args:
        question: of :data:`QUESTIONS`.
        arrays: terms of a problem, (B, reading, set, temperature).
        reading: 0 as given, 1 in law.
        temperature: 0 the common one, 1 each set's best.
    """
    value = _quantity(question, arrays, reading, temperature)
    if question == "adding-heads":
        return np.asarray(value[:, [HAAR]] - value[:, [ALIGNED]])
    pairs = {"not-heads-alone": [(ALIGNED, HAAR)], "extremes": [(HAAR, ORTHOGONAL)]}
    chosen = np.array(pairs.get(question, STEPS))
    return np.asarray(1 - ratio(value[:, chosen[:, 1]], value[:, chosen[:, 0]]))


def change_over_ends(
    question: str, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """Relative change from a question's first set to its last one, as pseudo-values, (B,)."""
    value = _quantity(question, arrays, reading, temperature)
    if question == "adding-heads":
        return np.asarray(value[:, HAAR] - value[:, ALIGNED])
    first, last = (HAAR, ORTHOGONAL) if question == "extremes" else (ALIGNED, HAAR)
    return np.asarray(ratio(value[:, last], value[:, first]) - 1)


def _quantity(
    question: str, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """What a question compares, of every set, as pseudo-values: an error, or a share of one."""
    one = {
        name: np.asarray(values[:, reading, :, temperature], float)
        for name, values in arrays.items()
        if values.ndim == 4
    }
    error = one["bias"] + one["variance"]
    if question == "hdi-monotone":
        return np.asarray(error)
    if question == "adding-heads":
        return -ratio(error, one["half_error"])
    return ratio(one["variance"], one["head_variance"])


def ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """A ratio of means over batches, the first axis, as pseudo-values."""
    value = top.mean(0) / bottom.mean(0)
    return np.asarray(value + (top - value * bottom) / bottom.mean(0))
