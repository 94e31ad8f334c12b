"""Hidden scores: attention whose scores are a running mean over layers (modern Hopfield network).

With memory α′ the hidden scores of layer l are ``h_l = α′h_{l−1} + (1 − α′)S_l``. Two starts are
told apart by the first share, the weight of S_0 in h_0: ``zero`` (nothing before the first layer,
so ``h_0 = (1 − α′)S_0``) and ``copy`` (``h_0 = S_0``). A layer is ``X ↦ αX + (1 − α)softmax(h)XW``
with skip weight α. Plain attention is α′ = 0.

All functions take NumPy's arrays or JAX's, and any leading axes.

Close to rank collapse tokens agree to more digits than a number has. :class:`Stream` therefore
carries their mean apart from what they differ by, and of the scores only what softmax sees: the
part that all rows have in common, and the part that depends on the row.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

Start = Literal["zero", "copy"]
Tokens = Float[Any, "*batch n d"]


def first_share(memory: Any, start: Start) -> Any:
    """The weight of the first layer's scores in its hidden scores: 1 − α′, or 1 for a copy."""
    return 1 - memory if start == "zero" else 1.0


def layer_shares(layers: int, memory: float, start: Start) -> np.ndarray:
    """Weights w_k of the scores of layers 0, …, l = layers − 1 in h_l, (l + 1)."""
    shares = np.array([(1 - memory) * memory ** (layers - 1 - k) for k in range(layers)])
    if start == "copy":
        shares[0] = memory ** (layers - 1)
    return shares


def accumulate(
    scores: Float[Any, "layers *scores"], memory: float, start: Start
) -> Float[Any, "layers *scores"]:
    """Hidden scores of every layer, by the recursion."""
    xp = scores.__array_namespace__()
    hidden = [first_share(memory, start) * scores[0]]
    for own in scores[1:]:
        hidden.append(memory * hidden[-1] + (1 - memory) * own)
    return xp.stack(hidden)


def concatenated(
    features: Float[Any, "layers *batch n d_k"], memory: float, start: Start
) -> Float[Any, "*batch n wide"]:
    """Queries or keys whose dot products are the last layer's hidden scores.

    Those of layer k are scaled by √w_k and stand beside one another.
    """
    xp = features.__array_namespace__()
    roots = np.sqrt(layer_shares(len(features), memory, start))
    return xp.concatenate([w * part for w, part in zip(roots, features, strict=True)], axis=-1)


def softmax(scores: Float[Any, "*batch n"]) -> Float[Any, "*batch n"]:
    """Weights of every row, ``e^S`` over its sum."""
    xp = scores.__array_namespace__()
    raised = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return raised / xp.sum(raised, axis=-1, keepdims=True)


def layer(
    tokens: Tokens,
    hidden: Float[Any, "*batch n n"],
    bilinear: Float[Any, "*batch d d"],
    value: Float[Any, "*batch d d"],
    memory: Any,
    skip: Any,
    share: Any,
) -> tuple[Tokens, Float[Any, "*batch n n"]]:
    """One layer: the next tokens and the new hidden scores, which it attends with.

    Args:
        tokens: X.
        hidden: h_{l−1}; zeros before the first layer.
        bilinear: M, of the scores XMXᵀ.
        value: W.
        memory: α′, a number or one a stack (…); like skip and share.
        skip: α.
        share: the weight of the new scores: 1 − α′, and :func:`first_share` in the first layer.
    """
    xp = tokens.__array_namespace__()
    memory, skip, share = (xp.asarray(part)[..., None, None] for part in (memory, skip, share))
    hidden = memory * hidden + share * (tokens @ bilinear @ xp.swapaxes(tokens, -1, -2))
    return skip * tokens + (1 - skip) * (softmax(hidden) @ tokens @ value), hidden


class Stream(NamedTuple):
    """Tokens and hidden scores, split so that collapse can be followed below any number.

    Tokens are ``1 mᵀ + R``, R = e^{log_scale}·``centred``; of the hidden scores softmax sees
    ``a_j + b_ij``, b = e^{log_apart}·``apart``.

    Attributes:
        mean: m (…, d), the mean token.
        centred: (…, n, d), of Frobenius norm 1 unless it is 0; its columns sum to 0.
        log_scale: (…).
        common: a (…, n), hidden scores that all rows have in common.
        apart: (…, n, n), what depends on the row; constants of a row are dropped.
        log_apart: (…), −∞ before the first layer.
    """

    mean: Any
    centred: Any
    log_scale: Any
    common: Any
    apart: Any
    log_apart: Any

    @property
    def residual(self) -> Any:
        """R, as far as numbers go."""
        return np.e ** self.log_scale[..., None, None] * self.centred

    @property
    def rows(self) -> Any:
        """b, as far as numbers go."""
        return np.e ** self.log_apart[..., None, None] * self.apart


def split(tokens: Tokens) -> Stream:
    """Tokens before the first layer."""
    xp = tokens.__array_namespace__()
    mean, n = xp.mean(tokens, axis=-2), tokens.shape[-2]
    none = xp.zeros(tokens.shape[:-2])
    scores = xp.zeros(tokens.shape[:-1]), xp.zeros((*tokens.shape[:-1], n)), none - np.inf
    return Stream(mean, *_sized(tokens - mean[..., None, :], none), *scores)


def _sized(residual: Any, log_scale: Any) -> tuple[Any, Any]:
    """A residual, centred and of norm 1, and the logarithm of its scale."""
    xp = residual.__array_namespace__()
    part = residual - xp.mean(residual, axis=-2, keepdims=True)
    size = xp.sqrt(xp.sum(part**2, axis=(-2, -1)))
    size = xp.where(size > 0, size, 1.0)
    return part / size[..., None, None], log_scale + xp.log(size)


def split_layer(
    stream: Stream, bilinear: Any, value: Any, memory: Any, skip: Any, share: Any
) -> Stream:
    """:func:`layer` on the split representation.

    With ``p = softmax(a)`` a row of attention is ``p_j(1 + (e_ij − z_i)/(1 + z_i))``,
    ``e_ij = expm1(b_ij)``, ``z_i = Σ_j p_j e_ij``: the difference from p is not one of numbers that
    are nearly equal. Where b is not small it is a plain difference, since e^b may overflow.
    """
    mean, centred, log_scale, common, apart, log_apart = stream
    xp = centred.__array_namespace__()
    memory, skip, share = (xp.asarray(part) for part in (memory, skip, share))
    scale = xp.exp(log_scale)[..., None]
    turned = bilinear @ xp.swapaxes(centred, -1, -2)
    seen = scale * (mean[..., None, :] @ turned)[..., 0, :]
    common = memory[..., None] * common + share[..., None] * seen
    with np.errstate(divide="ignore"):
        logs = xp.log(memory) + log_apart, xp.log(share) + 2 * log_scale
    log_apart = xp.maximum(*logs)
    old, new = (xp.exp(part - log_apart)[..., None, None] for part in logs)
    apart = old * apart + new * (centred @ turned)
    size = xp.exp(log_apart)[..., None, None]
    p = softmax(common)[..., None, :]
    near = xp.max(xp.abs(size * apart), axis=(-2, -1), keepdims=True) < 1.0
    e = apart * _expm1_ratio(xp.where(near, size * apart, 0.0))
    z = xp.sum(p * e, axis=-1, keepdims=True)
    far = softmax(common[..., None, :] + size * apart) - p
    moved = xp.where(near, p * (e - z) / (1 + size * z), far) @ centred
    shift = xp.mean(moved, axis=-2)
    # Of the new residual: what attention moves is smaller by e^{unit} than what the skip keeps.
    unit = xp.where(near[..., 0, 0], log_apart, 0.0)
    pulled = mean + scale * ((p @ centred)[..., 0, :] + xp.exp(unit)[..., None] * shift)
    moved = (moved - shift[..., None, :]) @ value
    taken = xp.where(skip == 0, unit, 0.0)
    branch = ((1 - skip) * xp.exp(unit - taken))[..., None, None]
    residual = skip[..., None, None] * centred + branch * moved
    kept = skip[..., None]
    return Stream(
        kept * mean + (1 - kept) * (pulled[..., None, :] @ value)[..., 0, :],
        *_sized(residual, log_scale + taken), common, apart, log_apart,
    )  # fmt: skip


def _expm1_ratio(x: Any) -> Any:
    """``expm1(x)/x``, 1 at 0."""
    xp = x.__array_namespace__()
    return xp.where(x == 0, 1.0, xp.expm1(x) / xp.where(x == 0, 1.0, x))


def split_rms_norm(stream: Stream) -> Stream:
    """Every token divided by its root mean square, on the split representation.

    With ``s_i² = s²(1 + t u_i)``, s that of m, a token's factor is ``(1 + g_i)/s`` with
    ``g_i = expm1(−½ log1p(t u_i))``, and g/t tends to −u/2.
    """
    mean, centred = stream.mean[..., None, :], stream.centred
    xp = centred.__array_namespace__()
    scale = xp.exp(stream.log_scale)[..., None, None]
    square = xp.sum(mean**2, axis=-1, keepdims=True)
    u = xp.sum(centred * (2 * mean + scale * centred), axis=-1, keepdims=True) / square
    excess = scale * u
    none = excess == 0
    log_ratio = xp.where(none, 1.0, xp.log1p(excess) / xp.where(none, 1.0, excess))
    ratio = -0.5 * u * log_ratio * _expm1_ratio(-0.5 * xp.log1p(excess))
    moved = centred + ratio * (mean + scale * centred)
    shift = xp.mean(moved, axis=-2, keepdims=True)
    size = xp.sqrt(square / centred.shape[-1])
    residual, log_scale = _sized((moved - shift) / size, stream.log_scale)
    return stream._replace(
        mean=((mean + scale * shift) / size)[..., 0, :], centred=residual, log_scale=log_scale
    )


def log_residual(stream: Stream) -> Any:
    """log ρ, of the relative residual ``ρ = ‖R‖/‖X‖``; −∞ where tokens are equal."""
    return -0.5 * np.logaddexp(0.0, log_odds(stream))


def log_odds(stream: Stream) -> Any:
    """``ω = log(n‖m‖²/‖R‖²) = log(1/ρ² − 1)``; ∞ where tokens are equal."""
    with np.errstate(divide="ignore"):
        sizes = [
            np.log(np.sum(part**2, axis=axes))
            for part, axes in ((stream.mean, -1), (stream.centred, (-2, -1)))
        ]
    return np.log(stream.centred.shape[-2]) + sizes[0] - sizes[1] - 2 * stream.log_scale


def energy(state: Any, hidden: Any, memories: Any) -> Any:
    """``E(x, h) = ½‖x‖² + h·f − log Σe^h − fᵀKx``, f = softmax(h); K the memories (…, n, d)."""
    xp = state.__array_namespace__()
    attended = softmax(hidden)
    top = xp.max(hidden, axis=-1)
    log_sum = top + xp.log(xp.sum(xp.exp(hidden - top[..., None]), axis=-1))
    scores = (memories @ state[..., None])[..., 0]
    return (
        0.5 * xp.sum(state**2, axis=-1)
        + xp.sum(hidden * attended, axis=-1)
        - log_sum
        - xp.sum(attended * scores, axis=-1)
    )


def retrieve(
    state: Any, hidden: Any, keys: Any, values: Any, memory: Any, skip: Any, old: bool = False
) -> tuple[Any, Any]:
    """One step of one token among fixed keys and values: the next state and hidden scores.

    ``h ← α′h + (1 − α′)Kx``, then ``x ← αx + (1 − α)Vᵀsoftmax(h)``.

    Args:
        state: x (…, d).
        hidden: h (…, n).
        keys: K (…, n, d).
        values: V (…, n, d); the network of memories has V = K.
        memory: α′.
        skip: α.
        old: attend with the h of before the step.
    """
    scores = (keys @ state[..., None])[..., 0]
    renewed = memory * hidden + (1 - memory) * scores
    attended = softmax(hidden if old else renewed)
    return skip * state + (1 - skip) * (attended[..., None, :] @ values)[..., 0, :], renewed
