"""Hidden scores: attention whose scores are a running mean over layers (modern Hopfield network).

With memory α′ the hidden scores of layer l are ``h_l = α′h_{l−1} + (1 − α′)S_l``. Two starts
differ by the first share, the weight of S_0 in h_0: ``zero`` (nothing before the first layer,
so ``h_0 = (1 − α′)S_0``) and ``copy`` (``h_0 = S_0``). A layer is ``X ↦ αX + (1 − α)softmax(h)XW``
with skip weight α. Plain attention is α′ = 0.

Arrays are NumPy's, with any leading axes.

Close to rank collapse, tokens agree to more digits than a number has: each layer of pure attention
cubes their residual. :class:`Stream` therefore keeps their mean separate from the residual, whose
scale is stored as a logarithm. It keeps what affects softmax: the part of the scores that all rows
share, and the part that depends on the row.
Nothing is expanded: every difference is taken by ``expm1`` or cancels by hand.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from sims.attention.attention import Array, softmax

Start = Literal["zero", "copy"]


def first_share(memory: Any, start: Start) -> Any:
    """Weight of the first layer's scores in its hidden scores: 1 − α′, or 1 for a copy."""
    return 1 - memory if start == "zero" else 1.0


def accumulate(scores: Array, memory: float, start: Start) -> Array:
    """Hidden scores of every layer, by recursion over scores (layers, …)."""
    hidden = [first_share(memory, start) * scores[0]]
    for fresh in scores[1:]:
        hidden.append(memory * hidden[-1] + (1 - memory) * fresh)
    return np.stack(hidden)


def layer(
    tokens: Array,
    hidden: Array,
    bilinear: Array,
    value: Array,
    memory: Any,
    skip: Any,
    share: Any,
) -> tuple[Array, Array]:
    """Next tokens and hidden scores of a layer, whose attention uses the new scores.

    Args:
        tokens: X (…, n, d).
        hidden: h_{l−1} (…, n, n); zeros before the first layer.
        bilinear: M (…, d, d) of the scores XMXᵀ.
        value: W (…, d, d).
        memory: α′, a number or one per stack, (…), like skip and share.
        skip: α.
        share: the weight of the new scores: 1 − α′, and :func:`first_share` in the first layer.
    """
    memory = np.asarray(memory)[..., None, None]
    skip = np.asarray(skip)[..., None, None]
    share = np.asarray(share)[..., None, None]
    hidden = memory * hidden + share * (tokens @ bilinear @ np.swapaxes(tokens, -1, -2))
    return skip * tokens + (1 - skip) * (softmax(hidden) @ tokens @ value), hidden


class Stream(NamedTuple):
    """Tokens and hidden scores, split so that collapse can be followed to arbitrarily small sizes.

    Tokens are ``1 mᵀ + R``, R = e^{log_scale}·``centred``; of the hidden scores softmax sees
    ``a_j + b_ij``, b = e^{log_apart}·``apart``.

    Attributes:
        mean: m (…, d), the mean token.
        centred: (…, n, d), of Frobenius norm 1 unless it is 0; its columns sum to 0.
        log_scale: (…).
        common: a (…, n), hidden scores common to all rows.
        apart: (…, n, n), the part that depends on the row, up to constants of a row.
        log_apart: (…), −∞ before the first layer.
    """

    mean: Array
    centred: Array
    log_scale: Array
    common: Array
    apart: Array
    log_apart: Array

    @property
    def residual(self) -> Array:
        """R in floating point."""
        return np.e ** self.log_scale[..., None, None] * self.centred

    @property
    def rows(self) -> Array:
        """b in floating point."""
        return np.e ** self.log_apart[..., None, None] * self.apart

    @property
    def log_odds(self) -> Array:
        """``ω = log(n‖m‖²/‖R‖²) = log(1/ρ² − 1)``; ∞ where tokens are equal."""
        with np.errstate(divide="ignore"):
            mean = np.log(np.sum(self.mean**2, axis=-1))
            centred = np.log(np.sum(self.centred**2, axis=(-2, -1)))
        return np.asarray(np.log(self.centred.shape[-2]) + mean - centred - 2 * self.log_scale)

    @property
    def log_residual(self) -> Array:
        """log ρ, of the relative residual ``ρ = ‖R‖/‖X‖``; −∞ where tokens are equal."""
        return np.asarray(-0.5 * np.logaddexp(0.0, self.log_odds))


def split(tokens: Array) -> Stream:
    """Tokens before the first layer."""
    mean = np.mean(tokens, axis=-2)
    shape = tokens.shape[:-1]
    none = np.zeros(shape[:-1])
    scores = np.zeros(shape), np.zeros((*shape, shape[-1])), none - np.inf
    return Stream(mean, *_normalise(tokens - mean[..., None, :], none), *scores)


def _normalise(residual: Array, log_scale: Array) -> tuple[Array, Array]:
    """Residual scaled to norm 1 (0 where tokens are equal), and the logarithm of its scale."""
    part = residual - np.mean(residual, axis=-2, keepdims=True)
    size = np.sqrt(np.sum(part**2, axis=(-2, -1)))
    positive = size > 0
    size = np.where(size > 0, size, 1.0)
    return part / size[..., None, None], np.where(positive, log_scale + np.log(size), 0.0)


def split_layer(
    stream: Stream,
    bilinear: Array,
    value: Array,
    memory: Any,
    skip: Any,
    share: Any,
    branch: Any = None,
    bias: Array | None = None,
) -> Stream:
    """:func:`layer` on the split representation.

    With ``p = softmax(a)`` a row of attention is ``p_j(1 + (e_ij − z_i)/(1 + z_i))``,
    ``e_ij = expm1(b_ij)``, ``z_i = Σ_j p_j e_ij``: the difference from p does not subtract nearly
    equal numbers. Where b is not small it is a plain difference, since e^b may overflow.

    Args:
        stream: tokens and hidden scores.
        bilinear: M, of the scores XMXᵀ.
        value: W.
        memory: α′.
        skip: α, the factor of the tokens.
        share: the weight of the new scores.
        branch: factor of attention; None is 1 − α.
        bias: bias of the scores, (n, n); −∞ masks. With one, p depends on the row.
    """
    mean, centred, log_scale, common, apart, log_apart = stream
    memory, skip, share = map(np.asarray, (memory, skip, share))
    scale = np.exp(log_scale)[..., None]
    turned = bilinear @ np.swapaxes(centred, -1, -2)
    seen = scale * (mean[..., None, :] @ turned)[..., 0, :]
    common = memory[..., None] * common + share[..., None] * seen
    with np.errstate(divide="ignore"):
        log_old = np.log(memory) + log_apart
        log_new = np.log(share) + 2 * log_scale
    log_apart = np.maximum(log_old, log_new)
    old = np.exp(log_old - log_apart)[..., None, None]
    new = np.exp(log_new - log_apart)[..., None, None]
    apart = old * apart + new * (centred @ turned)
    size = np.exp(log_apart)[..., None, None]
    shared = common[..., None, :] if bias is None else common[..., None, :] + bias
    p = softmax(shared)
    near = np.max(np.abs(size * apart), axis=(-2, -1), keepdims=True) < 1.0
    e = apart * _expm1_ratio(np.where(near, size * apart, 0.0))
    z = np.sum(p * e, axis=-1, keepdims=True)
    far = softmax(shared + size * apart) - p
    moved = np.where(near, p * (e - z) / (1 + size * z), far) @ centred
    shift = np.mean(moved, axis=-2)
    # Of the new residual: what attention moves is smaller by e^{unit} than what the skip keeps.
    unit = np.where(near[..., 0, 0], log_apart, 0.0)
    seen = p @ centred
    centre = np.mean(seen, axis=-2)
    pulled = mean + scale * (centre + np.exp(unit)[..., None] * shift)
    log_unit = np.where((skip == 0) & (bias is None), unit, 0.0)
    branch = np.asarray(1 - skip if branch is None else branch)[..., None, None]
    moved = np.exp(unit - log_unit)[..., None, None] * (moved - shift[..., None, :])
    rows = seen - centre[..., None, :]  # 0 where p is the same for all of them
    residual = skip[..., None, None] * centred + branch * ((moved + rows) @ value)
    new_mean = skip[..., None] * mean + branch[..., 0] * (pulled[..., None, :] @ value)[..., 0, :]
    return Stream(new_mean, *_normalise(residual, log_scale + log_unit), common, apart, log_apart)


def _expm1_ratio(x: Array) -> Array:
    """``expm1(x)/x``, 1 at 0."""
    return np.where(x == 0, 1.0, np.expm1(x) / np.where(x == 0, 1.0, x))


def split_rms_norm(stream: Stream) -> Stream:
    """Split representation with each token divided by its root mean square.

    With ``s_i² = s²(1 + t u_i)``, s that of m, a token's factor is ``(1 + g_i)/s`` with
    ``g_i = expm1(−½ log1p(t u_i))``, and g/t tends to −u/2.
    """
    mean = stream.mean[..., None, :]
    centred = stream.centred
    scale = np.exp(stream.log_scale)[..., None, None]
    square = np.sum(mean**2, axis=-1, keepdims=True)
    u = np.sum(centred * (2 * mean + scale * centred), axis=-1, keepdims=True) / square
    excess = scale * u
    none = excess == 0
    log_ratio = np.where(none, 1.0, np.log1p(excess) / np.where(none, 1.0, excess))
    ratio = -0.5 * u * log_ratio * _expm1_ratio(-0.5 * np.log1p(excess))
    moved = centred + ratio * (mean + scale * centred)
    shift = np.mean(moved, axis=-2, keepdims=True)
    size = np.sqrt(square / centred.shape[-1])
    residual, log_scale = _normalise((moved - shift) / size, stream.log_scale)
    middle = ((mean + scale * shift) / size)[..., 0, :]
    return stream._replace(mean=middle, centred=residual, log_scale=log_scale)
