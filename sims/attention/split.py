"""Layers on tokens that are kept as their mean and what is left of them, however little that is.

Attention alone takes what tells tokens apart to its third power, layer after layer: after four of
them nothing of it is left beside the mean in float64. Kept apart, ``x_i = m + t·r_i`` with the
scale t in its own logarithm, it loses no digits: every difference below is taken by ``expm1`` or
cancels by hand. Nothing is expanded; the layers are those of :mod:`sims.attention.attention`.
"""

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class SplitTokens(NamedTuple):
    """Tokens ``1 mᵀ + e^{log_scale} R``, R centred over tokens; leading dimensions are free.

    Attributes:
        mean: m, (…, 1, d).
        centred: R, (…, n, d), of Frobenius norm 1 unless it is 0.
        log_scale: (…, 1, 1).
    """

    mean: Array
    centred: Array
    log_scale: Array

    @property
    def log_odds(self) -> Array:
        """``ω = log(n‖m‖²/‖R‖²)``, (…,): the relative residual ρ has ω = log(1/ρ² − 1)."""
        count = self.centred.shape[-2]
        square = count * (self.mean**2).sum((-2, -1))
        return np.log(square) - np.log((self.centred**2).sum((-2, -1))) - 2 * self._scale

    @property
    def log_residual(self) -> Array:
        """log ρ, (…,), of ``ρ = ‖R‖_F/‖X‖_F``."""
        return -0.5 * np.logaddexp(0.0, self.log_odds)

    @property
    def _scale(self) -> Array:
        return self.log_scale[..., 0, 0]


def split(tokens: Array) -> SplitTokens:
    """Tokens (…, n, d) in parts."""
    mean = tokens.mean(-2, keepdims=True)
    return joined(mean, tokens - mean, np.zeros((*tokens.shape[:-2], 1, 1)))


def joined(mean: Array, difference: Array, log_scale: Array) -> SplitTokens:
    """Tokens of that mean and difference times e^{log_scale}, which takes up the latter's size."""
    centred = difference - difference.mean(-2, keepdims=True)
    size = np.sqrt((centred**2).sum((-2, -1), keepdims=True))
    size = np.where(size > 0, size, 1.0)
    return SplitTokens(mean, centred / size, log_scale + np.log(size))


def attend_split(
    tokens: SplitTokens,
    score: Array,
    value: Array,
    bias: Array | None = None,
    branch: float = 1.0,
    skip: float = 0.0,
) -> SplitTokens:
    """``skip·X + branch·softmax(X M Xᵀ + bias) X W`` of one head.

    A row of scores has a part that all rows share, ``a_j = t·m M r_j``, one that all its entries
    share, which softmax does not see, and ``b_ij = t² r_i M r_j``. With p the softmax of a (and
    bias), ``A_ij − p_ij = t² p_ij (e_ij − z_i)/(1 + t² z_i)``, ``e_ij = expm1(b_ij)/t²`` and
    ``z_i = Σ_j p_ij e_ij``. Without a bias p is the same for all rows and its part of the output
    belongs to the mean. Scores of one row may differ by 700 at most, where ``expm1`` overflows.

    Args:
        tokens: X in parts.
        score: M = W_Q W_Kᵀ/√d_k, (…, d, d).
        value: W = W_V W_O, (…, d, d).
        bias: of the scores, (n, n); −∞ masks. None for none.
        branch: factor of attention.
        skip: factor of the tokens themselves.
    """
    mean, centred, log_scale = tokens
    scale = np.exp(log_scale)
    common = scale * ((mean @ score) @ centred.swapaxes(-1, -2))
    common = common if bias is None else common + bias
    kernel = np.exp(common - common.max(-1, keepdims=True))
    p = kernel / kernel.sum(-1, keepdims=True)
    own = (centred @ score) @ centred.swapaxes(-1, -2)
    e = own * _expm1_ratio(scale**2 * own)
    z = (p * e).sum(-1, keepdims=True)
    moved = (p * (e - z) / (1 + scale**2 * z)) @ centred @ value
    seen = p @ centred @ value
    # Of the order t: seen, by rows, where a bias tells rows apart; of the order t³: moved.
    if bias is None and skip == 0:
        centre = mean @ value + scale * seen + scale**3 * moved.mean(-2, keepdims=True)
        return joined(branch * centre, branch * moved, 3 * log_scale)
    both = seen + scale**2 * moved if bias is not None else scale**2 * moved
    centre = mean @ value + scale * (seen if bias is None else 0.0)
    centre = centre + scale * both.mean(-2, keepdims=True)
    return joined(skip * mean + branch * centre, skip * centred + branch * both, log_scale)


def _expm1_ratio(x: Array) -> Array:
    """``expm1(x)/x``, 1 at 0."""
    safe = np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, np.expm1(safe) / safe)


def rms_norm_split(tokens: SplitTokens) -> SplitTokens:
    """Every token over its own root mean square, as :func:`sims.attention.norms.rms_norm`.

    With ``s_i² = s²(1 + t u_i)``, s that of m, a token's factor is ``(1 + g_i)/s`` with
    ``g_i = expm1(−½ log1p(t u_i))``.
    """
    mean, centred, log_scale = tokens
    scale = np.exp(log_scale)
    square = (mean**2).sum(-1, keepdims=True)
    u = (2 * (mean * centred).sum(-1, keepdims=True)
         + scale * (centred**2).sum(-1, keepdims=True)) / square  # fmt: skip
    # g/t, which at t = 0 is −u/2.
    inner = -0.5 * np.log1p(scale * u)
    ratio = _expm1_ratio(inner) * -0.5 * u * _log1p_ratio(scale * u)
    size = np.sqrt(square / mean.shape[-1])
    difference = (centred + ratio * mean + scale * ratio * centred) / size
    centre = mean / size + scale * difference.mean(-2, keepdims=True)
    return joined(centre, difference, log_scale)


def _log1p_ratio(x: Array) -> Array:
    """``log1p(x)/x``, 1 at 0."""
    safe = np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, np.log1p(safe) / safe)
