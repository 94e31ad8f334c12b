"""The suite's own Nadaraya–Watson heads beside attention as two libraries compute it.

Every point is one dataset with dimensions (batch, replicate). Gaps are in units of rounding (see
:func:`_rounding`): of order 1 for two correct programs, many powers of ten for different functions.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.problem import Heads
from sims.simulation.heads import nw_weights

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
TINY = 2.0**-126
"""Weights below float32's range are flushed to zero by one program and not by another."""


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's gaps and differences, by the point's name."""
    run = experiment.simulation_at(fidelity)
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    root = jax.random.key(run.seed, impl="threefry2x32")
    shape = (run.batches, run.replicates_per_batch)
    attrs = {
        "replicates": shape[0] * shape[1],
        "replicates_per_batch": shape[1],
        "batches_asked": shape[0],
        "precision": "float64",
    }
    points = {}

    # Draws are named by (seed, batch, replicate): points share them.
    batch, replicate = (a.ravel() for a in np.indices(shape))
    keys = jax.vmap(lambda b, r: jax.random.fold_in(jax.random.fold_in(root, b), r))(
        batch, replicate
    )

    def add(name: str, function: Any, inputs: Any, value: float = 0.0, **labels: Any) -> None:
        found = function(inputs, value)
        points[name] = xr.Dataset(
            {
                k: (("batch", "replicate"), np.asarray(v, float).reshape(shape))
                for k, v in found.items()
            },
            attrs=attrs | labels,
        )

    single, layer, tilt = settings["single"], settings["layer"], settings["tilt"]
    # Smaller settings use the first rows and columns of the largest one's draws.
    drawn = jax.jit(jax.vmap(lambda k: _draw(k, max(single["n"]), max(single["width"]))))(keys)
    for n in single["n"]:
        for width in single["width"]:
            # Temperature and spread are traced: one compilation a shape.
            function = _mapped(lambda drawn, s, n=n, w=width: single_head(*_cut(drawn, n, w), s))
            for ratio in single["temperature"]:
                name = f"single n={n} d_k={width} s={ratio}√d_k"
                labels = {"part": "single", "n": n, "width": width, "ratio": ratio}
                add(name, function, drawn, ratio * width**0.5, **labels)
    for heads, width in layer["shapes"]:
        function = _mapped(
            lambda k, _, h=heads, w=width: whole_layer(k, h, w, layer["n"], layer["queries"])
        )
        labels = {"part": "layer", "heads": heads, "width": width}
        add(f"layer H={heads} d_k={width}", function, keys, **labels)
    function = _mapped(lambda k, c: key_tilt(k, tilt["n"], tilt["width"], c))
    for spread in tilt["spread"]:
        labels = {"part": "tilt", "n": tilt["n"], "width": tilt["width"], "spread": float(spread)}
        add(f"tilt spread={spread}", function, keys, spread, **labels)
    return points


def _mapped(function: Any) -> Any:
    """The function over the leading axis of its first argument, one replicate at a time."""
    return jax.jit(lambda inputs, value: jax.lax.map(lambda one: function(one, value), inputs))


def _draw(key: Any, n: int, width: int) -> tuple[Any, Any]:
    """A query and keys, in float32: both precisions then compute from the same numbers."""
    query_key, keys_key = jax.random.split(key)
    query = jax.random.normal(query_key, (width,), jnp.float32)
    return query, jax.random.normal(keys_key, (n, width), jnp.float32)


def _cut(drawn: tuple[Any, Any], n: int, width: int) -> tuple[Any, Any]:
    query, keys = drawn
    return query[:width].astype(jnp.float64), keys[:n, :width].astype(jnp.float64)


def single_head(query: Any, keys: Any, temperature: Any) -> dict[str, Any]:
    """One head: largest relative gap of any weight, against three library computations."""
    n, width = keys.shape
    own = nw_weights(Heads(jnp.eye(width)[None], "softmax", temperature**0.5), query, keys)[0]
    magnitude = jnp.max(jnp.abs(keys) @ jnp.abs(query)) / temperature

    def gap(weights: Any, epsilon: float) -> Any:
        relative = jnp.max(jnp.abs(weights - own) / (own + TINY))
        return relative / _rounding(magnitude, n, epsilon)

    return {
        "float64": gap(_equinox_weights(query, keys, temperature), EPS["float64"]),
        "float32": gap(_jax_weights(query, keys, temperature, jnp.float32), EPS["float32"]),
        "mixed": gap(_jax_weights(query, keys, temperature, jnp.float64), EPS["float32"]),
    }


def whole_layer(key: Any, heads: int, width: int, n: int, queries: int) -> dict[str, Any]:
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
    into_keys, wanted = w_k.reshape(size, size), w_q.reshape(size, size) @ x64.T
    factors = jax.scipy.linalg.lu_factor(into_keys)
    points = jax.scipy.linalg.lu_solve(factors, wanted)
    # One step of refinement leaves no error of elimination, only that of the data's rounding.
    points = (points + jax.scipy.linalg.lu_solve(factors, wanted - into_keys @ points)).T
    nw = Heads(jnp.swapaxes(w_k, 1, 2), "softmax", width**0.25)
    weights = jax.vmap(lambda point: nw_weights(nw, point, keys64))(points)
    estimates = jnp.einsum("qhn,nd->qhd", weights, values64)
    own = jnp.einsum("ohv,hvd,qhd->qo", w_o, w_v, estimates)

    q_hat = jnp.einsum("hpd,qd->qhp", w_q, x64)
    k_hat = jnp.einsum("hpd,nd->hpn", w_k, keys64)
    key_size = jnp.einsum("hpd,nd->hpn", w_k**2, keys64**2)

    def magnitude(frames: Any, at: Any) -> Any:
        # Roundings of projections and of their product, of independent signs, so that squares
        # add: sums of magnitudes over d², d_k and n would hide errors of a thousand units.
        query_size = jnp.einsum("hpd,qd->qhp", frames**2, at**2)
        squares = jnp.einsum("qhp,hpn->qhn", query_size, k_hat**2)
        squares += jnp.einsum("qhp,hpn->qhn", q_hat**2, key_size)
        return jnp.sqrt(jnp.max(squares) / width)

    theirs, ours = magnitude(w_q, x64), magnitude(w_k, points)
    scale = jnp.sqrt(jnp.mean(own**2))

    def gap(result: Any, epsilon: float) -> Any:
        allowed = _rounding(theirs, n, epsilon) + _rounding(ours, n, EPS["float64"])
        return jnp.max(jnp.abs(result - own)) / (scale * allowed)

    return {
        "float64": gap(_layer(heads, matrices64)(x64, keys64, values64), EPS["float64"]),
        "float32": gap(_layer(heads, matrices)(*inputs), EPS["float32"]),
    }


def key_tilt(key: Any, n: int, width: int, spread: float) -> dict[str, Any]:
    """Gaussian against softmax weights, with and without the key tilt, at one spread of norms.

    Norms are ``r = √d_k (1 + spread·u)/√(1 + spread²)``, u uniform with unit variance.
    """
    query_key, direction_key, norm_key = jax.random.split(key, 3)
    query = _directions(query_key, 1, width)[0] * width**0.5
    u = jax.random.uniform(norm_key, (n,), jnp.float64, -(3.0**0.5), 3.0**0.5)
    norms = (width / (1 + spread**2)) ** 0.5 * (1 + spread * u)
    keys = _directions(direction_key, n, width) * norms[:, None]
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
    unit = _rounding(magnitude, n, EPS["float64"])
    return {
        "total_variation": jnp.sum(jnp.abs(plain - softmax)) / 2,
        "largest_difference": jnp.max(jnp.abs(plain - softmax)),
        "plain": jnp.max(jnp.abs(plain - softmax) / softmax) / unit,
        "tilted": jnp.max(jnp.abs(tilted - softmax) / softmax) / unit,
        "tilted_total_variation": jnp.sum(jnp.abs(tilted - softmax)) / 2,
    }


def _rounding(magnitude: Any, n: int, epsilon: float) -> Any:
    """The unit of a gap: what rounding at ``epsilon`` does to the logarithm of a weight.

    A logit of terms that sum to ``magnitude`` in absolute value is off by about epsilon times
    that; its normalisation adds log n, and the final division one more.
    """
    return epsilon * (1.0 + np.log(n) + magnitude)


def _directions(key: Any, count: int, width: int) -> Any:
    raw = jax.random.normal(key, (count, width), jnp.float64)
    return raw / jnp.linalg.norm(raw, axis=1, keepdims=True)


def _blocks(n: int, width: int, dtype: Any) -> Any:
    """The columns of I_n in blocks (blocks, n, width): as values, they return the weights."""
    count = -(-n // width)
    return jnp.moveaxis(jnp.eye(n, count * width, dtype=dtype).reshape(n, count, width), 1, 0)


def _jax_weights(query: Any, keys: Any, temperature: float, dtype: Any) -> Any:
    n, width = keys.shape
    values = _blocks(n, width, dtype)

    def attend(value: Any) -> Any:
        return jax.nn.dot_product_attention(
            query.astype(dtype)[None, None],
            keys.astype(dtype)[:, None],
            value[:, None],
            scale=1.0 / temperature,
        )[0, 0]

    return jax.vmap(attend)(values).reshape(-1)[:n].astype(jnp.float64)


def _equinox_weights(query: Any, keys: Any, temperature: Any) -> Any:
    n, width = keys.shape
    identity = jnp.eye(width)
    # The layer divides logits by √d_k; the query projection makes that the temperature.
    layer = _layer(1, [identity * (width**0.5 / temperature), identity, identity, identity])
    attend = jax.vmap(lambda value: layer(query[None], keys, value)[0])
    return attend(_blocks(n, width, jnp.float64)).reshape(-1)[:n]


def _layer(heads: int, matrices: Any) -> Any:
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
