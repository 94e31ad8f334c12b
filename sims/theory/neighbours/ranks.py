"""Ranks of tokens after a norm, an attention layer and a token-wise MLP.

Tokens are the rows of X (n × d). Their *affine rank* is the rank of X less the mean token,
``rank(C X)`` with ``C = I − 11ᵀ/n``; P = I − 11ᵀ/d centres features instead.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

LEAST_GAP = 1e3
"""Of a numerical rank: the least singular value that is kept over the largest that is not."""
NOISE = 1e-10
"""Singular values below this share of the largest are none."""


def rank_of(matrix: ArrayLike, scale: float | None = None) -> tuple[int, bool]:
    """The numerical rank of a matrix: singular values above :data:`NOISE` times the largest.

    And whether it is clear: the least of them is :data:`LEAST_GAP` times the others or more.

    Args:
        matrix: of any shape.
        scale: that of the numbers it was computed from, whose rounding is no rank; None for its own
            largest singular value.
    """
    values = np.linalg.svd(np.atleast_2d(np.asarray(matrix, float)), compute_uv=False)
    size = scale or float(values[0])
    rank = int((values > NOISE * size).sum())
    least, rest = [size, *values, 0.0][rank : rank + 2]
    return rank, bool(least >= LEAST_GAP * rest)


def _contains(columns: np.ndarray, vector: np.ndarray) -> tuple[bool, bool]:
    """Whether a vector lies in the column space, and whether that is clear."""
    least = np.linalg.lstsq(columns, vector, rcond=NOISE)[0]
    left = np.linalg.norm(vector - columns @ least) / np.linalg.norm(vector)
    return bool(left < NOISE), bool(left < NOISE or left > NOISE * LEAST_GAP)


class NormRanks(NamedTuple):
    """What a norm does to ranks of tokens, and whether numbers leave no doubt of it.

    Attributes:
        before: affine rank before.
        after: affine rank after.
        linear: rank of the matrix after; of LayerNorm ``rank X − [1_d ∈ row space of X]``.
        clear: whether all of them have a gap.
    """

    before: int
    after: int
    linear: int
    clear: bool


def layer_norm_ranks(tokens: ArrayLike) -> NormRanks:
    """Affine rank before LayerNorm and after: ``a(LN X) = rank(XP) − [s ∈ col(XP)]``.

    Every token is divided by its own ``s_i = ‖P x_i‖/√d``, so LN(X) = S⁻¹XP has the rank of XP,
    and 1 lies in its column space if and only if s lies in that of XP. With ε = 0; scale without
    zeros and shift change no affine rank.

    Args:
        tokens: X, none of equal features.
    """
    x = np.asarray(tokens, float)
    centred = x - x.mean(1, keepdims=True)
    size = np.linalg.norm(centred, axis=1)
    return _norm_ranks(x, centred, size)


def rms_norm_ranks(tokens: ArrayLike) -> NormRanks:
    """Affine rank before RMSNorm and after: ``rank X − [s ∈ col X]``, ``s_i = ‖x_i‖/√d``.

    Args:
        tokens: X, none of zeros.
    """
    x = np.asarray(tokens, float)
    return _norm_ranks(x, x, np.linalg.norm(x, axis=1))


def _norm_ranks(x: np.ndarray, divided: np.ndarray, size: np.ndarray) -> NormRanks:
    scale = float(np.linalg.norm(x))
    before, sure = rank_of(x - x.mean(0), scale)
    linear, known = rank_of(divided, scale)
    inside, clear = _contains(divided, size)
    return NormRanks(before, linear - inside, linear, clear and sure and known)


def attention_rank(
    n: int, dimension: int, rank: int, heads: int, width: int, residual: bool
) -> int:
    """``min(n, d, [residual]·r + H·min(r, d_k))`` after one layer of generic weights.

    Args:
        n: tokens, all distinct.
        dimension: d.
        rank: r, of X.
        heads: H.
        width: d_k.
        residual: whether X itself is added.
    """
    return min(n, dimension, residual * rank + heads * min(rank, width))


def mlp_rank(n: int, dimension: int, inner: int) -> int:
    """``min(n, d, d_ff)`` after a token-wise MLP, for n distinct tokens and generic weights.

    The activation has to be analytic and no polynomial, and to have shifts. Tokens that are equal
    stay so: n counts the distinct ones.
    """
    return min(n, dimension, inner)


def energy_share(rank: int, dimension: int) -> float:
    """``1 − r/d``: the mean share of A X W outside the row space of X, W of iid normal entries."""
    return 1 - rank / dimension


def tail_exponent(n: int, dimension: int) -> int:
    """p of ``P(σ_min < t) ~ c t^p``, the least singular value of n centred tokens: ``|d−n+1| + 1``.

    For X + AXW with normal W, at generic X and A: near a matrix of deficient rank, (n − 1) × d
    matrices lose a rank on a variety of that codimension.
    """
    return abs(dimension - n + 1) + 1
