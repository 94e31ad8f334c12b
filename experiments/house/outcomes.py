"""Outcomes of a problem: the falls of each question, with simultaneous bounds."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sims.base.estimates import mcse, ratio
from sims.judgement import conventions
from sims.judgement.outcomes import UNDECIDED, outcome_calls

from .sets import (
    ALIGNED,
    COMMON,
    DRAWN,
    EQUAL,
    HAAR,
    HALF_ALIGNED,
    HALF_HAAR,
    ORTHOGONAL,
    OWN_BEST,
    THIRD,
)

LOOKS = (128, 512, 2048)
"""Numbers of batches at which a problem may be looked at. The first one is the first round, which
all problems have; a run of fewer batches leaves out the last ones."""
FIRST_ROUND = LOOKS[0]
Pairs = tuple[tuple[int, int], ...]
STEPS: Pairs = ((0, 1), (1, 2), (2, 3), (3, 4))
"""Pairs of neighbouring rungs of the ladder."""
ENDS: Pairs = ((ALIGNED, HAAR),)
FROM_ALIGNED: Pairs = ((0, 1), (0, 2), (0, 3), (0, 4))
"""The aligned set and each further rung."""


class Order(NamedTuple):
    """What a question compares, the error or the variance kept, over which pairs of sets."""

    quantity: str
    pairs: Pairs


QUESTIONS = {
    "hdi-monotone": Order("error", STEPS),
    "random-aligned": Order("error", ENDS),
    "chance": Order("error", ((HAAR, THIRD),)),
    "hdi": Order("kept", STEPS),
    "extremes": Order("kept", ((HAAR, ORTHOGONAL),)),
    "not-heads-alone": Order("kept", ENDS),
}
"""Order questions."""
AGAIN = ("hdi-monotone", "random-aligned")
"""Questions that get the later looks, as drawn at own best temperatures."""


def is_decided(arrays: Mapping[str, np.ndarray]) -> bool:
    """True if every outcome that is looked at again is known."""
    tolerance = conventions.TOLERANCES["order"]
    for question in AGAIN:
        falls = falls_of(QUESTIONS[question], arrays, DRAWN, OWN_BEST)
        value, error = falls.mean(0)[None], mcse(falls)[None]
        freedom = np.array([len(falls) - 1.0])
        if outcome_calls(value, error, freedom, len(LOOKS), tolerance) == UNDECIDED:
            return False
    return True


def falls_of(
    order: Order, arrays: Mapping[str, np.ndarray], reading: int, temperature: int
) -> np.ndarray:
    """Relative falls over pairs of sets as pseudo-values of the batches, (…, B, P).

    Their mean is the fall of the means, and their spread that of the fall to first order. Heads
    alone err equally in all equally good sets, by algebra: there the difference of what the mean
    head has is a control variate.

    Args:
        order: what is compared, and between which sets.
        arrays: terms of a problem, or of several, (…, B, reading, set, temperature).
        reading: as drawn or equally good.
        temperature: the common one or the other.
    """

    def term(name: str) -> np.ndarray:
        return np.asarray(arrays[name][..., reading, :, temperature], float)

    value, head = term("variance"), term("head_variance")
    if order.quantity == "error":
        value, head = value + term("bias"), head + term("head_bias")
    else:
        value = ratio(value, head, axis=-2)
    first, last = np.transpose(order.pairs)
    falls = 1 - ratio(value[..., last], value[..., first], axis=-2)
    if reading == EQUAL:
        return controlled(falls, head[..., last] - head[..., first])
    return falls


def controlled(values: np.ndarray, control: np.ndarray) -> np.ndarray:
    """Batches less their regression on a control of mean zero, (…, B, P) both."""
    gaps = control - control.mean(-2, keepdims=True)
    square = (gaps**2).sum(-2, keepdims=True)
    slope = (gaps * values).sum(-2, keepdims=True) / np.where(square > 0, square, np.inf)
    return np.asarray(values - slope * control)


def extra_falls(arrays: Mapping[str, np.ndarray], reading: int) -> np.ndarray:
    """Fall of the error by the second half of random heads, less that of aligned ones, (…, B).

    Each relative to the error of the first half; the sets and the halves are at own best
    temperatures. As pseudo-values of the batches.
    """

    def error(place: int, temperature: int) -> np.ndarray:
        cell = (..., reading, place, temperature)
        return np.asarray(arrays["bias"][cell] + arrays["variance"][cell], float)

    aligned = ratio(error(ALIGNED, OWN_BEST), error(HALF_ALIGNED, OWN_BEST), axis=-1)
    return np.asarray(aligned - ratio(error(HAAR, COMMON), error(HALF_HAAR, OWN_BEST), axis=-1))


def gain_falls(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Relative fall of the error from aligned to random heads, with a gain, (…, B)."""
    error = np.asarray(arrays["gain_error"], float)
    return np.asarray(1 - ratio(error[..., HAAR], error[..., ALIGNED], axis=-1))
