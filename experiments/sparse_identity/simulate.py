"""Sparse weight rules beside Nadaraya–Watson heads with compact kernels, on random rows.

Every replicate is kept. Gaps are in units of rounding (see :func:`rounding`).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.montecarlo import Replicates
from sims.problem import Heads
from sims.simulation.heads import nw_weights
from sims.study.experiment import Experiment
from sims.study.stacking import Scalar
from sims.study.units import SampledUnit
from sims.weights import FACTORIES, WeightRule
from sims.weights.sparse import Relu, ReluGap

EPS = 2.0**-52
"""Machine epsilon of float64."""
KERNELS = {1: "epanechnikov", 2: "biweight", 3: "triweight"}
"""The kernel (1 − u²)₊^ν by ν."""
SPREAD = 3.0
"""Temperatures are e^{−3} to e^3, uniform in the logarithm."""
AXES = {"keys": ("key", "axis"), "attended": ("key",), "query": ("axis",)}


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """Each identity at every width and power, the literal readings, empty rows, the limit, a plane.

    Draws are named by seed, batch and replicate alone: units share them.
    """
    settings, sampled = experiment.settings, {}
    for width in settings["width"]:
        for nu in settings["power"]:
            for part in ("distance", "equal"):
                replicate = partial(entmax_row, settings["n"], width, nu, part)
                sampled[f"{part} ν={nu} d_k={width}"] = unit(replicate, part, width=width, power=nu)
        for part, function in {"relu": relu_row, "gap": gap_row, "literal": literal_row}.items():
            replicate = partial(function, settings["n"], width)
            sampled[f"{part} d_k={width}"] = unit(replicate, part, width=width)
    empty, softmax = settings["empty"], settings["softmax"]
    for square in empty["radius_squared"]:
        replicate = partial(empty_rows, empty["n"], empty["rows"], square)
        sampled[f"empty h²={square}"] = unit(replicate, "empty", radius_squared=square)
    for nu in softmax["power"]:
        replicate = partial(gap_to_softmax, softmax["n"], softmax["width"], nu)
        sampled[f"softmax ν={nu}"] = unit(replicate, "softmax", power=nu, width=softmax["width"])
    for part in ("disc", "half-plane"):
        replicate = partial(plane, settings["plane"]["n"], part == "disc")
        sampled[part] = unit(replicate, part, dims=AXES, width=2)
    return sampled


def unit(
    replicate: Callable[..., dict[str, Array]],
    part: str,
    dims: dict[str, tuple[str, ...]] | None = None,
    **at: Scalar,
) -> SampledUnit:
    """All replicates of a function."""
    coordinates = dict.fromkeys(("width", "power", "radius_squared")) | {"part": part} | at
    return SampledUnit(Replicates(replicate, reduce="stack", dims=dims or {}), coordinates)


def drawn(
    n: int, width: int, key: Array, equal: bool
) -> tuple[Float[Array, " d_k"], Float[Array, "n d_k"], Float[Array, ""]]:
    """Query, keys (of one random norm or as they come) and temperature of a row."""
    query_key, keys_key, norm_key, temperature_key = jax.random.split(key, 4)
    query = jax.random.normal(query_key, (width,), jnp.float64)
    keys = jax.random.normal(keys_key, (n, width), jnp.float64)
    if equal:
        norm = jax.random.uniform(norm_key, (), jnp.float64, 0.5, 3.0)
        keys = norm * keys / jnp.linalg.norm(keys, axis=1, keepdims=True)
    logarithm = jax.random.uniform(temperature_key, (), jnp.float64, -SPREAD, SPREAD)
    return query, keys, jnp.exp(logarithm)


def attended(
    rule: str | WeightRule, query: Array, keys: Array, temperature: float | Array = 1.0
) -> Float[Array, " n"]:
    """The rule's weights of one row."""
    frame = jnp.eye(len(query))[None]
    return nw_weights(Heads(frame, rule, temperature**0.5), query, keys)[0]


def compact(nu: int, square: Array, query: Array, keys: Array) -> Float[Array, " n"]:
    """NW weights of the kernel (1 − u²)₊^ν with that squared radius."""
    return nw_weights(Heads(jnp.eye(len(query))[None], KERNELS[nu], square**0.5), query, keys)[0]


def rounding(nu: int, square: Array, nearest: Array, size: Array) -> Array:
    """The unit of a gap: what float64 leaves of ``(h² − d²)^ν``, relative to its largest value.

    Squared distances and radius come from numbers of the given size.
    """
    return EPS * nu * (1 + size / (square - nearest))


def entmax_row(
    n: int, width: int, nu: int, part: str, key: Array, _: None, __: None
) -> dict[str, Array]:
    """α-entmax of distances, or of dot products with equal norms: gaps of weights and denominator.

    With the largest weight w the threshold is ``τ = z/ν − w^{1/ν}``, and the squared radius is
    ``−2sντ`` of distances, ``‖q‖² + R² − 2sντ`` of dot products.
    """
    scores = "distance" if part == "distance" else "dot"
    query, keys, s = drawn(n, width, key, equal=scores == "dot")
    weights = attended(FACTORIES["entmax"](nu=nu, scores=scores), query, keys, s)
    best = jnp.argmax(weights)
    squares = jnp.sum((keys - query) ** 2, axis=1)
    if scores == "dot":
        size = query @ query + keys[best] @ keys[best]
        square = size - 2 * s * nu * (query @ keys[best] / (s * nu) - weights[best] ** (1 / nu))
    else:
        size = squares[best]
        square = -2 * s * nu * (-squares[best] / (2 * s * nu) - weights[best] ** (1 / nu))
    one = rounding(nu, square, squares[best], size + square)
    denominator = jnp.sum(jnp.maximum(square - squares, 0) ** nu) / (2 * s * nu) ** nu
    return {
        "weights": jnp.max(jnp.abs(weights - compact(nu, square, query, keys))) / one,
        "denominator": jnp.abs(denominator - 1) / one,
    }


def relu_row(n: int, width: int, key: Array, _: None, __: None) -> dict[str, Array]:
    """ReLU whose offset reaches some keys: the gap of weights to squared radius a² + R² + 2γb."""
    query, keys, gain = drawn(n, width, key, equal=True)
    offset = offset_of(key, keys @ query, gain)
    weights = Relu(gain, offset, "zero")(keys @ query)  # type: ignore[arg-type]
    size = query @ query + keys[0] @ keys[0]
    square = size + 2 * gain * offset
    one = rounding(1, square, nearest_of(query, keys), size + jnp.abs(gain * offset))
    return {"weights": jnp.max(jnp.abs(weights - compact(1, square, query, keys))) / one}


def gap_row(n: int, width: int, key: Array, _: None, __: None) -> dict[str, Array]:
    """ReLU of the gap to the best key: the gap of weights to squared radius d² + 2γs."""
    query, keys, s = drawn(n, width, key, equal=True)
    gain = jax.random.uniform(jax.random.fold_in(key, 1), (), jnp.float64, 0.2, 2.0)
    weights = ReluGap(gain)(keys @ query / s)  # type: ignore[arg-type]
    nearest = nearest_of(query, keys)
    square = nearest + 2 * gain * s
    one = rounding(1, square, nearest, query @ query + keys[0] @ keys[0] + square)
    return {"weights": jnp.max(jnp.abs(weights - compact(1, square, query, keys))) / one}


def literal_row(n: int, width: int, key: Array, _: None, __: None) -> dict[str, Array]:
    """With norms as they come: 1 if a key is attended to and a nearer one is not, else 0."""
    query, keys, s = drawn(n, width, key, equal=False)
    squares, scores = jnp.sum((keys - query) ** 2, axis=1), keys @ query

    def passes_over(weights: Array) -> Array:
        farthest = jnp.max(jnp.where(weights > 0, squares, 0.0))
        return (farthest > jnp.min(jnp.where(weights > 0, jnp.inf, squares))).astype(jnp.float64)

    offset = offset_of(key, scores, s)
    return {
        "sparsemax": passes_over(attended(FACTORIES["sparsemax"](), query, keys, s)),
        "relu": passes_over(Relu(s, offset, "zero")(scores)),  # type: ignore[arg-type]
    }


def offset_of(key: Array, scores: Array, gain: Array) -> Array:
    """An offset of ReLU with which it reaches the best key, and keys up to about the mean one."""
    share = jax.random.uniform(jax.random.fold_in(key, 1), (), jnp.float64, 0.05, 1.0)
    best = jnp.max(scores)
    return -(best - share * (best - jnp.mean(scores))) / gain


def nearest_of(query: Array, keys: Array) -> Array:
    """The least squared distance."""
    return jnp.min(jnp.sum((keys - query) ** 2, axis=1))


def empty_rows(n: int, rows: int, square: float, key: Array, _: None, __: None) -> dict[str, Array]:
    """The share of rows that ReLU leaves empty, on the unit sphere of R³; its radius² is 2 + 2b."""
    points = jax.random.normal(key, (rows, n + 1, 3), jnp.float64)
    points = points / jnp.linalg.norm(points, axis=2, keepdims=True)
    scores = jnp.einsum("rd,rnd->rn", points[:, 0], points[:, 1:])
    weights = jax.vmap(Relu(1.0, square / 2 - 1, "zero"))(scores)
    return {"empty": jnp.mean(jnp.all(weights == 0, axis=1).astype(jnp.float64))}


def gap_to_softmax(
    n: int, width: int, nu: float, key: Array, _: None, __: None
) -> dict[str, Array]:
    """The largest difference of weights between α-entmax and softmax, of dot products at s = 1."""
    query, keys = drawn(n, width, key, equal=False)[:2]
    own, limit = (attended(r, query, keys) for r in (FACTORIES["entmax"](nu=nu), "softmax"))
    return {"gap": jnp.max(jnp.abs(own - limit))}


def plane(n: int, equal: bool, key: Array, _: None, __: None) -> dict[str, Array]:
    """A row of sparsemax in the plane, to be drawn: dot products at s = 1."""
    query, keys = drawn(n, 2, key, equal)[:2]
    return {
        "keys": keys,
        "query": query,
        "attended": attended(FACTORIES["sparsemax"](), query, keys),
    }
