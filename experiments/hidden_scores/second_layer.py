"""The second layer's head as an estimator: errors at fixed queries, and over drawn problems."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.attention import hidden
from sims.montecarlo import Draw

STARTS: tuple[hidden.Start, ...] = ("zero", "copy")
Settings = Mapping[str, Any]


def second_layer(
    settings: Settings, view: Settings, kernel: str, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Squared bias, variance and mean squared error (start, memory), averages over the queries.

    Keys N(0, I_2) and labels are drawn anew; scores of the two layers are accumulated, softmaxed,
    and average the labels. The squared bias is unbiased by its own sampling variance.
    """
    rng, n, noise = draw.rng(), settings["n"], settings["noise_sd"]
    count = replicates * settings["draws"]
    keys = rng.normal(size=(count, n, 2))
    labels = target(settings, view, keys) + noise * rng.normal(size=(count, n))
    axis = np.array(settings["queries"], float)
    at = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    whole = scores(settings, view, kernel, at, keys[:, None])
    truth = target(settings, view, at)
    out: dict[str, list[float]] = {"squared_bias": [], "variance": [], "mse": []}
    for start in STARTS:
        for memory in settings["memory"]:
            weights = hidden.softmax(hidden.accumulate(whole, memory, start)[-1])
            found = np.einsum("rqn,rn->rq", weights, labels)
            variance = found.var(0, ddof=1)
            bias = found.mean(0) - truth
            out["squared_bias"].append(float(np.mean(bias**2 - variance / count)))
            out["variance"].append(float(np.mean(variance)))
            out["mse"].append(float(np.mean((found - truth) ** 2)))
    return {k: np.array(v).reshape(2, -1) for k, v in out.items()}


def drawn_heads(
    settings: Settings, view: Settings, kernel: str, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Variance and mean squared error (start, memory) over queries and phases of the target.

    Every problem has a query N(0, κ² I_2), a phase for each of the target's waves, and two sets of
    keys, whose estimates differ by twice the variance.
    """
    rng, n, noise = draw.rng(), settings["n"], settings["noise_sd"]
    count = replicates * settings["draws"] // 2
    at = settings["query_scale"] * rng.normal(size=(count, 1, 2))
    phase = rng.uniform(0, 2 * np.pi, (count, 1, len(view["target"])))
    keys = rng.normal(size=(count, 2, n, 2))
    labels = target(settings, view, keys, phase[:, None])
    labels += noise * rng.normal(size=labels.shape)
    whole = scores(settings, view, kernel, at, keys)
    truth = target(settings, view, at, phase)
    out: dict[str, list[float]] = {"variance": [], "mse": []}
    for start in STARTS:
        for memory in settings["memory"]:
            weights = hidden.softmax(hidden.accumulate(whole, memory, start)[-1])
            found = (weights * labels).sum(-1)
            out["variance"].append(float(np.mean((found[:, 0] - found[:, 1]) ** 2) / 2))
            out["mse"].append(float(np.mean((found - truth) ** 2)))
    return {k: np.array(v).reshape(2, -1) for k, v in out.items()}


def scores(
    settings: Settings, view: Settings, kernel: str, at: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """Scores (layer, …, n) of queries (…, 2) with keys (…, n, 2), each layer through its frame."""
    square, out = settings["bandwidth"][kernel] ** 2, []
    for direction in view["frames"]:
        frame = np.array(direction, float)
        query, key = (at @ frame)[..., None], keys @ frame
        dots = query * key
        if kernel == "gaussian":
            dots = dots - 0.5 * (query**2 + key**2)
        out.append(dots / square)
    return np.stack(out)


def target(
    settings: Settings, view: Settings, points: np.ndarray, phase: np.ndarray | float = 0.0
) -> np.ndarray:
    """``Σ cos(ω u·x + φ)`` over the directions u that the target depends on."""
    waves = settings["frequency"] * np.array(view["target"], float)
    return np.asarray(np.cos(points @ waves.T + phase).sum(-1))


def library(
    tokens: np.ndarray, query: np.ndarray, key: np.ndarray, value: np.ndarray
) -> np.ndarray:
    """Attention of one head by Equinox, in float64."""
    return np.asarray(_library(*(jnp.asarray(array) for array in (tokens, query, key, value))))


@jax.jit
def _library(tokens: Array, query: Array, key: Array, value: Array) -> Array:
    width, d = query.shape[1], tokens.shape[1]
    module = eqx.nn.MultiheadAttention(
        1, d, qk_size=width, vo_size=d, dtype=jnp.float64, key=jax.random.key(0)
    )
    weights = [query.T, key.T, value.T, jnp.eye(d)]
    module = eqx.tree_at(
        lambda m: [
            getattr(m, f"{name}_proj").weight for name in ("query", "key", "value", "output")
        ],
        module,
        weights,
    )
    return module(tokens, tokens, tokens)
