"""Numbers of arrays as a ``repr`` shows them: one line, no dump, and nothing of what is traced."""

import numpy as np
from numpy.typing import ArrayLike

from sims.checks import is_concrete


def span(values: ArrayLike, lengths: bool = False) -> str:
    """The number that all entries are, or the least and the largest: ``0.7``, ``0.5 to 0.9``.

    Args:
        values: any array.
        lengths: whether it is the lengths of the rows that are shown.
    """
    if not is_concrete(values):
        return "traced"
    array = np.asarray(values, float)
    array = np.linalg.norm(array, axis=1) if lengths else array
    low, high = (f"{end:.4g}" for end in (array.min(), array.max()))
    return low if low == high else f"{low} to {high}"


def variances(covariance: ArrayLike) -> str:
    """The variances along the principal axes: ``variance 1``, ``variances 0.2 to 3``."""
    known = covariance
    if is_concrete(covariance):
        known = np.maximum(np.linalg.eigvalsh(np.asarray(covariance)), 0.0)
    text = span(known)
    return f"variance{'s' * (' to ' in text)} {text}"
