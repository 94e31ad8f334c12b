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
    """Tokens and hidden scores, split so that collapse can be followed far below rounding.

    Attributes:
        mean: m (…, d), the mean token.
        residual: R (…, n, d), tokens less their mean; its columns sum to 0.
        common: a (…, n), hidden scores that all rows have in common.
        rows: b (…, n, n), hidden scores that depend on the row; constants of a row are dropped.
    """

    mean: Any
    residual: Any
    common: Any
    rows: Any


def split(tokens: Tokens) -> Stream:
    """Tokens before the first layer."""
    xp = tokens.__array_namespace__()
    mean = xp.mean(tokens, axis=-2)
    residual = tokens - mean[..., None, :]
    n = tokens.shape[-2]
    zeros = xp.zeros(tokens.shape[:-1])
    return Stream(mean, residual, zeros, xp.zeros((*tokens.shape[:-1], n)))


def split_layer(
    stream: Stream, bilinear: Any, value: Any, memory: Any, skip: Any, share: Any
) -> Stream:
    """:func:`layer` on the split representation.

    With ``p = softmax(a)`` a row of attention is ``p_j(1 + (e_ij − z_i)/(1 + z_i))``,
    ``e_ij = expm1(b_ij)``, ``z_i = Σ_j p_j e_ij``: the difference from p is not one of numbers that
    are nearly equal. Where b is not small it is a plain difference, since e^b may overflow.
    """
    mean, residual, common, rows = stream
    xp = residual.__array_namespace__()
    memory, skip, share = (xp.asarray(part)[..., None] for part in (memory, skip, share))
    turned = bilinear @ xp.swapaxes(residual, -1, -2)
    common = memory * common + share * (mean[..., None, :] @ turned)[..., 0, :]
    rows = memory[..., None] * rows + share[..., None] * (residual @ turned)
    p = softmax(common)[..., None, :]
    near = xp.max(xp.abs(rows), axis=(-2, -1), keepdims=True) < 1.0
    e = xp.expm1(xp.where(near, rows, 0.0))
    z = xp.sum(p * e, axis=-1, keepdims=True)
    apart = softmax(common[..., None, :] + rows) - p
    moved = xp.where(near, p * (e - z) / (1 + z), apart) @ residual
    shift = xp.mean(moved, axis=-2)
    pulled = mean + (p @ residual)[..., 0, :] + shift
    new = centred((moved - shift[..., None, :]) @ value)
    return Stream(
        skip * mean + (1 - skip) * (pulled[..., None, :] @ value)[..., 0, :],
        skip[..., None] * residual + (1 - skip[..., None]) * new,
        common,
        rows,
    )


def centred(residual: Tokens) -> Tokens:
    """Tokens less their mean."""
    xp = residual.__array_namespace__()
    return residual - xp.mean(residual, axis=-2, keepdims=True)


def split_rms_norm(stream: Stream) -> Stream:
    """Every token divided by its root mean square, on the split representation."""
    mean, residual = stream.mean[..., None, :], stream.residual
    xp = residual.__array_namespace__()
    square = xp.sum(mean**2, axis=-1, keepdims=True)
    excess = xp.sum(residual * (2 * mean + residual), axis=-1, keepdims=True) / square
    scaled = xp.expm1(-0.5 * xp.log1p(excess))
    moved = residual + scaled * (mean + residual)
    shift = xp.mean(moved, axis=-2, keepdims=True)
    size = xp.sqrt(square / residual.shape[-1])
    return stream._replace(
        mean=((mean + shift) / size)[..., 0, :], residual=centred((moved - shift) / size)
    )


def log_residual(stream: Stream) -> Any:
    """log ρ, of the relative residual ``ρ = ‖R‖/‖X‖``; −∞ where tokens are equal."""
    return -0.5 * np.logaddexp(0.0, log_odds(stream))


def log_odds(stream: Stream) -> Any:
    """``ω = log(n‖m‖²/‖R‖²) = log(1/ρ² − 1)``; ∞ where tokens are equal."""
    with np.errstate(divide="ignore"):
        sizes = [_log_norm(part, axes) for part, axes in ((stream.mean, 1), (stream.residual, 2))]
    return np.log(stream.residual.shape[-2]) + 2 * (sizes[0] - sizes[1])


def _log_norm(values: Any, axes: int) -> Any:
    """Logarithm of the Frobenius norm over the last axes, without squares that underflow."""
    over = tuple(range(-axes, 0))
    largest = np.max(np.abs(values), axis=over, keepdims=True)
    scaled = np.sum((values / np.where(largest > 0, largest, 1.0)) ** 2, axis=over)
    return np.log(np.squeeze(largest, over)) + 0.5 * np.log(np.maximum(scaled, 1e-300))


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
