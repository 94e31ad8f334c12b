"""One row of attention, or many, whose scores are iid N(0, s²): entropy, effective keys, spectrum.

Limits of many keys n at fixed s, valid for ``s < ½√(2 log n)``; at ``√(2 log n)`` the largest
weights take over (the freezing of a random energy model). Scores of dot products have the rank d_k
and are not iid.
"""

import numpy as np


def row_entropy(n: int, score_sd: float) -> float:
    """``log n − s²/2``, the entropy of a row."""
    return float(np.log(n) - score_sd**2 / 2)


def effective_keys(n: int, score_sd: float) -> float:
    """``n e^{−s²}``: one over the sum of a row's squared weights."""
    return float(n * np.exp(-(score_sd**2)))


def spectral_ratio(n: int, score_sd: float) -> float:
    """``2√((e^{s²} − 1)/n)``: σ₂/σ₁ of A (n × n), the width of its noise beside its mean 11ᵀ/n."""
    return float(2 * np.sqrt(np.expm1(score_sd**2) / n))


def stable_rank(score_sd: float) -> float:
    """``e^{s²}``: ‖A‖_F²/σ₁² of A."""
    return float(np.exp(score_sd**2))


def freezing(n: int) -> float:
    """``√(2 log n)``: the s at which few keys take all weight; laws above hold below its half."""
    return float(np.sqrt(2 * np.log(n)))
