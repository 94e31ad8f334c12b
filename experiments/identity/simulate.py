"""The suite's own Nadaraya–Watson heads beside attention as two libraries compute it.

Every replicate is kept. Gaps are in units of rounding (see :func:`rounding`): of order 1 for two
correct programs, many powers of ten for different functions.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from sims.montecarlo import Replicates
from sims.problem import Heads
from sims.simulation.heads import nw_weights
from sims.study.experiment import Experiment
from sims.study.stacking import Scalar
from sims.study.units import SampledUnit

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
"""Machine epsilons: the distance from 1 to the next number."""
TINY = 2.0**-126
"""Weights below float32's range are flushed to zero by one program and not by another."""


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """One head at several sizes and temperatures, layers, and Gaussian heads by spread of norms.

    Draws are named by seed, batch and replicate alone: units share them.
    """
    settings = experiment.settings
    single, layer, tilt = settings["single"], settings["layer"], settings["tilt"]
    # Smaller settings use the first rows and columns of the largest one's draws.
    most = max(single["n"]), max(single["width"])
    sampled = {}
    for n in single["n"]:
        for width in single["width"]:
            replicate = partial(drawn_head, n, width, most)
            for ratio in single["temperature"]:
                at = {"part": "single", "n": n, "width": width, "ratio": ratio}
                name = f"single n={n} d_k={width} s={ratio}√d_k"
                sampled[name] = unit(replicate, ratio * width**0.5, at)
    for heads, width in layer["shapes"]:
        replicate = partial(whole_layer, heads, width, layer["n"], layer["queries"])
        at = {"part": "layer", "n": layer["n"], "width": width, "heads": heads}
        sampled[f"layer H={heads} d_k={width}"] = unit(replicate, None, at)
    for spread in tilt["spread"]:
        replicate = partial(key_tilt, tilt["n"], tilt["width"])
        at = {"part": "tilt", "n": tilt["n"], "width": tilt["width"], "spread": float(spread)}
        sampled[f"tilt spread={spread}"] = unit(replicate, float(spread), at)
    return sampled


def unit(
    replicate: partial[dict[str, Array]], value: float | None, at: dict[str, Scalar]
) -> SampledUnit:
    """All replicates of a function; its value is traced: one compilation a shape."""
    coordinates = dict.fromkeys(("part", "n", "width", "ratio", "heads", "spread")) | at
    constant = None if value is None else jnp.asarray(value, jnp.float64)
    return SampledUnit(Replicates(replicate, reduce="stack", constants=constant), coordinates)


def drawn_head(
    n: int, width: int, most: tuple[int, int], key: Array, temperature: Array, _: None
) -> dict[str, Array]:
    """:func:`single_head` on a query and keys drawn in float32.

    Both precisions then compute from the same numbers.
    """
    query_key, keys_key = jax.random.split(key)
    query = jax.random.normal(query_key, most[1:], jnp.float32)[:width]
    keys = jax.random.normal(keys_key, most, jnp.float32)[:n, :width]
    return single_head(query.astype(jnp.float64), keys.astype(jnp.float64), temperature)


def single_head(
    query: Float[Array, " d_k"], keys: Float[Array, "n d_k"], temperature: float | Array
) -> dict[str, Array]:
    """One head: largest relative gap of any weight, against three library computations."""
    n, width = keys.shape
    own = nw_weights(Heads(jnp.eye(width)[None], "softmax", temperature**0.5), query, keys)[0]
    magnitude = jnp.max(jnp.abs(keys) @ jnp.abs(query)) / temperature

    def gap(weights: Array, epsilon: float) -> Array:
        relative = jnp.max(jnp.abs(weights - own) / (own + TINY))
        return relative / rounding(magnitude, n, epsilon)

    return {
        "float64": gap(equinox_weights(query, keys, temperature), EPS["float64"]),
        "float32": gap(jax_weights(query, keys, temperature, jnp.float32), EPS["float32"]),
        "mixed": gap(jax_weights(query, keys, temperature, jnp.float64), EPS["float32"]),
    }


def whole_layer(
    heads: int, width: int, n: int, queries: int, key: Array, _: None, __: None
) -> dict[str, Array]:
    """A multi-head layer as NW heads in key space: largest gap of any output.

    With H·d_k = d, ``x̃ = W_K⁻¹ W_Q x`` is a point of key space whose projection by W_K^h is
    head h's query: head h is the NW estimator of the values at x̃ in the subspace of W_K^h.
    """
    size = heads * width
    rows = jax.random.normal(key, (4 * size + queries + 2 * n, size), jnp.float32)
    matrices = rows[: 4 * size].reshape(4, size, size) / size**0.5
    inputs = jnp.split(rows[4 * size :], [queries, queries + n])
    matrices64, (x64, keys64, values64) = jax.tree.map(
        lambda a: a.astype(jnp.float64), (matrices, inputs)
    )
    w_q, w_k, w_v = (matrices64[i].reshape(heads, width, size) for i in range(3))
    w_o = matrices64[3].reshape(size, heads, width)
    into_keys, projected = w_k.reshape(size, size), w_q.reshape(size, size) @ x64.T
    factors = jax.scipy.linalg.lu_factor(into_keys)
    points = jax.scipy.linalg.lu_solve(factors, projected)
    # One step of refinement leaves no error of elimination, only that of the data's rounding.
    points = (points + jax.scipy.linalg.lu_solve(factors, projected - into_keys @ points)).T
    nw = Heads(jnp.swapaxes(w_k, 1, 2), "softmax", width**0.25)
    weights = jax.vmap(lambda point: nw_weights(nw, point, keys64))(points)
    estimates = jnp.einsum("qhn,nd->qhd", weights, values64)
    own = jnp.einsum("ohv,hvd,qhd->qo", w_o, w_v, estimates)

    q_hat = jnp.einsum("hpd,qd->qhp", w_q, x64)
    k_hat = jnp.einsum("hpd,nd->hpn", w_k, keys64)
    key_size = jnp.einsum("hpd,nd->hpn", w_k**2, keys64**2)

    def magnitude(frames: Float[Array, "H d_k d"], at: Float[Array, "q d"]) -> Array:
        # Roundings of projections and of their product, of independent signs, so that squares
        # add: sums of magnitudes over d², d_k and n would hide errors of a thousand units.
        query_size = jnp.einsum("hpd,qd->qhp", frames**2, at**2)
        squares = jnp.einsum("qhp,hpn->qhn", query_size, k_hat**2)
        squares += jnp.einsum("qhp,hpn->qhn", q_hat**2, key_size)
        return jnp.sqrt(jnp.max(squares) / width)

    theirs, ours = magnitude(w_q, x64), magnitude(w_k, points)
    scale = jnp.sqrt(jnp.mean(own**2))

    def gap(result: Array, epsilon: float) -> Array:
        allowed = rounding(theirs, n, epsilon) + rounding(ours, n, EPS["float64"])
        return jnp.max(jnp.abs(result - own)) / (scale * allowed)

    return {
        "float64": gap(attention(heads, matrices64)(x64, keys64, values64), EPS["float64"]),
        "float32": gap(attention(heads, matrices)(*inputs), EPS["float32"]),
    }


def key_tilt(n: int, width: int, key: Array, spread: Array, _: None) -> dict[str, Array]:
    """Gaussian against softmax weights, with and without the key tilt, at one spread of norms.

    Norms are ``r = √d_k (1 + spread·u)/√(1 + spread²)``, u uniform with unit variance.
    """
    query_key, direction_key, norm_key = jax.random.split(key, 3)
    query = directions(query_key, 1, width)[0] * width**0.5
    u = jax.random.uniform(norm_key, (n,), jnp.float64, -(3.0**0.5), 3.0**0.5)
    norms = (width / (1 + spread**2)) ** 0.5 * (1 + spread * u)
    keys = directions(direction_key, n, width) * norms[:, None]
    temperature = width**0.5
    frame = jnp.eye(width)[None]
    softmax = nw_weights(Heads(frame, "softmax", temperature**0.5), query, keys)[0]
    plain = nw_weights(Heads(frame, "gaussian", temperature**0.5), query, keys)[0]
    log_tilt = jnp.sum(keys**2, axis=1) / (2 * temperature)
    # Shifted before the exponential: the tilt's common factor cancels.
    tilted = plain * jnp.exp(log_tilt - jnp.max(log_tilt))
    tilted = tilted / tilted.sum()
    distance = jnp.sum((keys - query) ** 2, axis=1) / (2 * temperature)
    magnitude = jnp.max(distance + 2 * log_tilt)
    one = rounding(magnitude, n, EPS["float64"])
    return {
        "total_variation": jnp.sum(jnp.abs(plain - softmax)) / 2,
        "largest_difference": jnp.max(jnp.abs(plain - softmax)),
        "plain": jnp.max(jnp.abs(plain - softmax) / softmax) / one,
        "tilted": jnp.max(jnp.abs(tilted - softmax) / softmax) / one,
        "tilted_total_variation": jnp.sum(jnp.abs(tilted - softmax)) / 2,
    }


def rounding(magnitude: Array, n: int, epsilon: float) -> Array:
    """The unit of a gap: what rounding at ``epsilon`` does to the logarithm of a weight.

    A logit of terms that sum to ``magnitude`` in absolute value is off by about epsilon times
    that; its normalisation adds log n, and the final division one more.
    """
    return epsilon * (1.0 + np.log(n) + magnitude)


def directions(key: Array, count: int, width: int) -> Float[Array, "count d_k"]:
    """Uniform points of the unit sphere."""
    raw = jax.random.normal(key, (count, width), jnp.float64)
    return raw / jnp.linalg.norm(raw, axis=1, keepdims=True)


def blocks(n: int, width: int, dtype: DTypeLike) -> Float[Array, "blocks n d_k"]:
    """The columns of I_n in blocks: as values, they return the weights."""
    count = -(-n // width)
    return jnp.moveaxis(jnp.eye(n, count * width, dtype=dtype).reshape(n, count, width), 1, 0)


def jax_weights(
    query: Float[Array, " d_k"],
    keys: Float[Array, "n d_k"],
    temperature: float | Array,
    dtype: DTypeLike,
) -> Float[Array, " n"]:
    """Weights of ``jax.nn.dot_product_attention`` on inputs of a precision."""
    n, width = keys.shape

    def attend(value: Array) -> Array:
        return jax.nn.dot_product_attention(
            query.astype(dtype)[None, None],
            keys.astype(dtype)[:, None],
            value[:, None],
            scale=1.0 / temperature,  # type: ignore[arg-type]
        )[0, 0]

    weights = jax.vmap(attend)(blocks(n, width, dtype))
    return weights.reshape(-1)[:n].astype(jnp.float64)


def equinox_weights(
    query: Float[Array, " d_k"], keys: Float[Array, "n d_k"], temperature: float | Array
) -> Float[Array, " n"]:
    """Weights of ``equinox.nn.MultiheadAttention`` of one head, in float64."""
    n, width = keys.shape
    identity = jnp.eye(width)
    # The layer divides logits by √d_k; the query projection makes that the temperature.
    layer = attention(1, [identity * (width**0.5 / temperature), identity, identity, identity])
    attend = jax.vmap(lambda value: layer(query[None], keys, value)[0])
    return attend(blocks(n, width, jnp.float64)).reshape(-1)[:n]


def attention(
    heads: int, matrices: Float[Array, "4 d d"] | list[Array]
) -> eqx.nn.MultiheadAttention:
    """The library's layer with these matrices W_Q, W_K, W_V, W_O, each (d, d)."""
    size, dtype = len(matrices[0]), matrices[0].dtype
    # Its structure alone, without drawing weights: all of them are set here.
    layer = eqx.filter_eval_shape(
        eqx.nn.MultiheadAttention, heads, size, dtype=dtype, key=jax.random.key(0)
    )
    names = ("query_proj", "key_proj", "value_proj", "output_proj")
    return eqx.tree_at(
        lambda layer: [getattr(layer, name).weight for name in names], layer, list(matrices)
    )
