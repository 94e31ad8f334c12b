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

    def add(name: str, function: Any, value: float | None = None, **labels: Any) -> None:
        argument = jnp.asarray(0.0 if value is None else value)
        found = function(keys, argument)
        points[name] = xr.Dataset(
            {
                k: (("batch", "replicate"), np.asarray(v, float).reshape(shape))
                for k, v in found.items()
            },
            attrs=attrs | labels,
        )

    single, layer, tilt = settings["single"], settings["layer"], settings["tilt"]
    for n in single["n"]:
        for width in single["width"]:
            # Temperature and spread are traced: one compilation a shape.
            function = _mapped(lambda k, s, n=n, w=width: single_head(k, n, w, s))
            for ratio in single["temperature"]:
                name = f"single n={n} d_k={width} s={ratio}√d_k"
                labels = {"part": "single", "n": n, "width": width, "ratio": ratio}
                add(name, function, ratio * width**0.5, **labels)
    for heads, width in layer["shapes"]:
        function = _mapped(
            lambda k, _, h=heads, w=width: whole_layer(k, h, w, layer["n"], layer["queries"])
        )
        add(f"layer H={heads} d_k={width}", function, part="layer", heads=heads, width=width)
    function = _mapped(lambda k, c: key_tilt(k, tilt["n"], tilt["width"], c))
    for spread in tilt["spread"]:
        labels = {"part": "tilt", "n": tilt["n"], "width": tilt["width"], "spread": float(spread)}
        add(f"tilt spread={spread}", function, spread, **labels)
    return points


def _mapped(function: Any) -> Any:
    return jax.jit(lambda keys, value: jax.lax.map(lambda key: function(key, value), keys))


def single_head(key: Any, n: int, width: int, temperature: float) -> dict[str, Any]:
    """One head: largest relative gap of any weight, against three library computations."""
    query_key, keys_key = jax.random.split(key)
    # Drawn in float32, so that both precisions get the same numbers.
    query = jax.random.normal(query_key, (width,), jnp.float32).astype(jnp.float64)
    keys = jax.random.normal(keys_key, (n, width), jnp.float32).astype(jnp.float64)
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
    layer_key, query_key, keys_key, values_key = jax.random.split(key, 4)
    layer = eqx.nn.MultiheadAttention(heads, size, dtype=jnp.float32, key=layer_key)
    # Unit-variance projections: the default initialisation gives nearly uniform attention.
    layer = jax.tree.map(lambda a: a * 3.0**0.5 if eqx.is_inexact_array(a) else a, layer)
    x = jax.random.normal(query_key, (queries, size), jnp.float32)
    keys = jax.random.normal(keys_key, (n, size), jnp.float32)
    values = jax.random.normal(values_key, (n, size), jnp.float32)

    wide = jax.tree.map(lambda a: a.astype(jnp.float64) if eqx.is_inexact_array(a) else a, layer)
    w_q, w_k, w_v = (
        getattr(wide, f"{name}_proj").weight.reshape(heads, width, size)
        for name in ("query", "key", "value")
    )
    w_o = wide.output_proj.weight.reshape(size, heads, width)
    x64, keys64, values64 = (a.astype(jnp.float64) for a in (x, keys, values))
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
        "float64": gap(wide(x64, keys64, values64), EPS["float64"]),
        "float32": gap(layer(x, keys, values), EPS["float32"]),
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


def _equinox_weights(query: Any, keys: Any, temperature: float) -> Any:
    n, width = keys.shape
    layer = eqx.nn.MultiheadAttention(1, width, key=jax.random.key(0), dtype=jnp.float64)
    identity = jnp.eye(width)
    # The layer divides logits by √d_k; the query projection makes that the temperature.
    projections = (identity * (width**0.5 / temperature), identity, identity, identity)
    layer = eqx.tree_at(
        lambda m: tuple(
            getattr(m, f"{name}_proj").weight for name in ("query", "key", "value", "output")
        ),
        layer,
        projections,
    )
    attend = jax.vmap(lambda value: layer(query[None], keys, value)[0])
    return attend(_blocks(n, width, jnp.float64)).reshape(-1)[:n]
