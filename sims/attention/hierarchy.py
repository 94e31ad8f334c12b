"""Hierarchical scores: sums of scores between coarser and coarser copies of the tokens.

Level l holds ``X^(l)_t = Σ_k c_k X^(l−1)_{2t−k}``, every second position of a causal convolution
with taps c and zeros before the first token; row i of ``Z_l`` is its token ⌊i/2^l⌋. Scores are ``S
= Σ_l λ_l Z_l M_l Z_lᵀ``, convex λ. This is our reconstruction of arXiv 2604.08829.

Arrays are NumPy's or JAX's, with any leading axes before the tokens.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sims.attention.attention import Array, causal_mask, softmax


def strided_taps(tokens: Array, taps: Any) -> Array:
    """Next coarser copy of the tokens: ``Σ_k c_k x_{2t−k}``, ⌈n/2⌉ tokens, causal up to 2t."""
    n = tokens.shape[-2]
    before = len(taps) - 1
    xp: Any = tokens.__array_namespace__()
    padded = xp.pad(tokens, [(0, 0)] * (tokens.ndim - 2) + [(before, 0), (0, 0)])
    return sum(tap * padded[..., before - k : before - k + n : 2, :] for k, tap in enumerate(taps))


def levels(tokens: Array, taps: Any, count: int) -> list[Any]:
    """Levels X^(0), …, X^(count − 1), each with half as many tokens as the last, rounded up."""
    out = [tokens]
    for _ in range(count - 1):
        out.append(strided_taps(out[-1], taps))
    return out


def repeated(coarse: Array, level: int, n: int) -> Array:
    """Matrix Z_l: every token of a level repeated 2^l times, cut at n."""
    return coarse[..., np.arange(n) // 2**level, :]


def level_scores(coarse: Sequence[Any], pairs: Sequence[tuple[Any, Any]], n: int) -> list[Array]:
    """Scores of every level, computed between its tokens and then repeated.

    Args:
        coarse: the levels' tokens.
        pairs: W_Q and W_K (d, d_k) of every level, M_l = W_Q W_Kᵀ.
        n: tokens of level 0.
    """
    out = []
    for level, (level_tokens, (query, key)) in enumerate(zip(coarse, pairs, strict=True)):
        scores = (level_tokens @ query) @ (level_tokens @ key).swapaxes(-1, -2)
        wide = repeated(scores, level, n).swapaxes(-1, -2)
        out.append(repeated(wide, level, n).swapaxes(-1, -2))
    return out


def mixed(parts: Sequence[Any], weights: Any) -> Any:
    """Mixed scores ``Σ_l λ_l S_l``."""
    return sum(weight * part for weight, part in zip(weights, parts, strict=True))


def causal_softmax(scores: Array) -> Array:
    """Weights of row i over keys j ≤ i."""
    return softmax(scores, causal_mask(scores.shape[-1]))


def attend(
    tokens: Array, taps: Any, pairs: Sequence[tuple[Any, Any]], weights: Any, value: Any
) -> Array:
    """Output of a head: ``causal softmax(S) X W`` with as many levels as there are pairs."""
    coarse = levels(tokens, taps, len(pairs))
    scores = mixed(level_scores(coarse, pairs, tokens.shape[-2]), weights)
    return causal_softmax(scores) @ (tokens @ value)
