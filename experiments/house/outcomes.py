"""Outcomes of a problem: the falls of each question, with simultaneous bounds."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from sims.base.estimates import mcse, ratio
from sims.judgement import conventions
from sims.judgement.outcomes import UNDECIDED, outcome_calls

from .sets import ALIGNED, HAAR, ORTHOGONAL, OWN_BEST

LOOKS = (128, 512, 2048)
"""Numbers of batches at which a problem may be looked at. The first one is the first round, which
all problems have; a run of fewer batches leaves out the last ones."""
FIRST_ROUND = LOOKS[0]
STEPS = ((0, 1), (1, 2), (2, 3), (3, 4))
"""Pairs of neighbouring rungs of the ladder."""
QUESTIONS = {
    "hdi-monotone": STEPS,
    "hdi": STEPS,
    "extremes": ((HAAR, ORTHOGONAL),),
    "not-heads-alone": ((ALIGNED, HAAR),),
    "adding-heads": ((ALIGNED, HAAR),),
}
"""Order questions, each with the pairs of sets over which it asks for a fall."""


def is_decided(arrays: Mapping[str, np.ndarray], fits: bool) -> bool:
    """True if every question's outcome is known, in both readings, at own best temperatures."""
    tolerance = conventions.TOLERANCES["order"]
    for reading, question in product((0, 1), QUESTIONS):
        if question == "extremes" and not fits:
            continue
        falls = falls_of(question, arrays, reading, OWN_BEST)
        value, error = falls.mean(0)[None], mcse(falls)[None]
        freedom = np.array([len(falls) - 1.0])
        if outcome_calls(value, error, freedom, len(LOOKS), tolerance) == UNDECIDED:
            return False
    return True


def falls_of(
    question: str, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """Relative falls of a question over its pairs as pseudo-values of the batches, (…, B, P).

    Their mean is the fall of the means, and their spread that of the fall to first order.

    Args:
        question: of :data:`QUESTIONS`.
        arrays: terms of a problem, or of several, (…, B, reading, set, temperature).
        reading: 0 as given, 1 in law.
        temperature: 0 the common one, 1 each set's best.
    """
    value = _quantity(question, arrays, reading, temperature)
    first, last = np.transpose(QUESTIONS[question])
    if question == "adding-heads":
        return value[..., last] - value[..., first]
    return 1 - ratio(value[..., last], value[..., first], axis=-2)


def change_over_ends(
    question: str, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """Relative change from a question's first set to its last one, as pseudo-values, (…, B).

    Arguments are those of :func:`falls_of`.
    """
    value = _quantity(question, arrays, reading, temperature)
    pairs = QUESTIONS[question]
    first, last = (value[..., place] for place in (pairs[0][0], pairs[-1][1]))
    if question == "adding-heads":
        return last - first
    return ratio(last, first, axis=-1) - 1


def _quantity(
    question: str, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """What a question compares, of every set, (…, B, set): an error, or a share of one."""

    def term(name: str) -> np.ndarray:
        return np.asarray(arrays[name][..., reading, :, temperature], float)

    if question not in ("hdi-monotone", "adding-heads"):
        return ratio(term("variance"), term("head_variance"), axis=-2)
    error = term("bias") + term("variance")
    if question == "hdi-monotone":
        return error
    return -ratio(error, term("half_error"), axis=-2)
