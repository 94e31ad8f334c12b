"""Hierarchical scores: sums of scores between coarser and coarser copies of the tokens.

Level l holds ``X^(l)_t = Σ_k c_k X^(l−1)_{2t−k}``, every second place of a causal convolution with
taps c and zeros before the first token; row i of ``Z_l`` is its token ⌊i/2^l⌋. Scores are
``S = Σ_l λ_l Z_l M_l Z_lᵀ``, convex λ. This is our reconstruction of arXiv 2604.08829.

All functions take NumPy's arrays or JAX's, and any leading axes before the tokens.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from sims.attention.hidden import Tokens, softmax


def strided_taps(tokens: Tokens, taps: Any) -> Float[Any, "*batch fewer d"]:
    """The next coarser copy: ``Σ_k c_k x_{2t−k}``, ⌈n/2⌉ tokens. Nothing later than 2t enters."""
    xp = tokens.__array_namespace__()
    n, width = tokens.shape[-2], len(taps)
    padding = [(0, 0)] * (tokens.ndim - 2) + [(width - 1, 0), (0, 0)]
    padded = xp.pad(tokens, padding)
    parts = [taps[k] * padded[..., width - 1 - k : width - 1 - k + n : 2, :] for k in range(width)]
    return sum(parts[1:], parts[0])


def block_means(tokens: Tokens, taps: object = None) -> Float[Any, "*batch fewer d"]:
    """A coarser copy that is *not* causal: means of pairs; a last token without partner stays."""
    xp = tokens.__array_namespace__()
    n = tokens.shape[-2]
    paired = 0.5 * (tokens[..., 0 : n - 1 : 2, :] + tokens[..., 1:n:2, :])
    return xp.concatenate([paired, tokens[..., n - n % 2 :, :]], axis=-2)


def levels(
    tokens: Tokens, taps: Any, count: int, coarsen: Callable[..., Any] = strided_taps
) -> list[Any]:
    """X^(0), …, X^(count − 1), each of half as many tokens as the one before, rounded up."""
    out = [tokens]
    for _ in range(count - 1):
        out.append(coarsen(out[-1], taps))
    return out


def repeated(coarse: Tokens, level: int, n: int) -> Float[Any, "*batch more d"]:
    """Z_l: every token of a level 2^l times, cut at n."""
    return coarse[..., np.arange(n) // 2**level, :]


def level_scores(
    coarse: Sequence[Any], pairs: Sequence[tuple[Any, Any]], n: int
) -> list[Float[Any, "*batch n n"]]:
    """Scores of every level, computed between its own few tokens and then repeated.

    Args:
        coarse: the levels' tokens.
        pairs: W_Q and W_K (d, d_k) of every level, M_l = W_Q W_Kᵀ.
        n: tokens of level 0.
    """
    out = []
    for level, (own, (query, key)) in enumerate(zip(coarse, pairs, strict=True)):
        xp = own.__array_namespace__()
        scores = (own @ query) @ xp.swapaxes(own @ key, -1, -2)
        wide = xp.swapaxes(repeated(scores, level, n), -1, -2)
        out.append(xp.swapaxes(repeated(wide, level, n), -1, -2))
    return out


def mixed(parts: Sequence[Any], weights: Any) -> Any:
    """``Σ_l λ_l S_l``."""
    whole = weights[0] * parts[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        whole = whole + weight * part
    return whole


def causal_softmax(scores: Float[Any, "*batch n n"]) -> Float[Any, "*batch n n"]:
    """Weights of row i over keys j ≤ i."""
    xp = scores.__array_namespace__()
    n = scores.shape[-1]
    return softmax(xp.where(xp.tril(xp.ones((n, n))) > 0, scores, -xp.inf))


def attend(
    tokens: Tokens,
    taps: Any,
    pairs: Sequence[tuple[Any, Any]],
    weights: Any,
    value: Any,
    coarsen: Callable[..., Any] = strided_taps,
) -> Tokens:
    """One head: ``causal softmax(S) X W`` with as many levels as there are pairs."""
    coarse = levels(tokens, taps, len(pairs), coarsen)
    scores = mixed(level_scores(coarse, pairs, tokens.shape[-2]), weights)
    return causal_softmax(scores) @ (tokens @ value)
