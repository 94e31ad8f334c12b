"""What both roads take: second moments of keys and queries, and ensembles of compressed heads."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sims.problem import TARGETS, GaussianDesign, Heads, Task, compressed, gaussian_queries
from sims.study.experiment import Experiment


class Moments(NamedTuple):
    """Second moments of keys and queries, (d, d) each."""

    keys: np.ndarray
    queries: np.ndarray


def moments(d: int, decay: float, angle: float | str, seed: int) -> Moments:
    """Keys with variances i^{−2·decay} along the axes, queries turned against them.

    Args:
        d: width.
        decay: of the standard deviations of the keys; the queries' fall twice as fast.
        angle: degrees by which the queries' principal axes i and d + 1 − i are turned into one
            another: 0 keeps the keys' order, 90 reverses it. ``random`` is a random rotation,
            ``isotropic`` gives queries no direction.
        seed: of that rotation.
    """
    order = np.arange(1.0, d + 1)
    keys = np.diag(order ** (-2 * decay))
    if angle == "isotropic":
        return Moments(keys, np.eye(d))
    if angle == "random":
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    else:
        turn = np.radians(float(angle))
        basis = (
            np.cos(turn) * np.eye(d)
            + np.sin(turn) * np.diag(np.where(order <= d / 2, 1.0, -1.0))[:, ::-1]
        )
    return Moments(keys, basis * order ** (-4 * decay) @ basis.T)


def cache_points(experiment: Experiment) -> dict[str, tuple[float, float | str]]:
    """Name of every cache's point to decay and angle."""
    own = experiment.settings["caches"]
    return {
        f"cache decay={decay:g} {angle}": (decay, angle)
        for decay in own["decays"]
        for angle in own["angles"]
    }


class Compressed(NamedTuple):
    """An ensemble of compressed softmax heads, as both roads take it."""

    task: Task
    heads: Heads
    n: int
    queries: np.ndarray


def ensembles(experiment: Experiment) -> dict[str, Compressed]:
    """Softmax heads at every rank in every regime, by name of the point: one problem for all."""
    own = experiment.settings["ensemble"]
    return {
        ensemble_name(name, rank): problem
        for name, regime in own["regimes"].items()
        for rank, problem in compressed_heads(own, regime, own["seed"]).items()
    }


def compressed_heads(
    own: Mapping[str, Any], regime: Mapping[str, Any], seed: int
) -> dict[int, Compressed]:
    """One problem by rank: frames, target and queries are drawn from the seed.

    The tilt of head h at x has mean ``Σ^{1/2}R_hDR_hᵀΣ^{−1/2}x``, D falling like a power: a head
    looks near x along its first directions, and at the middle of the keys along its last.
    """
    d, count, temperature = own["d"], own["heads"], float(np.sqrt(own["d"]))
    rng = np.random.default_rng(seed)
    spread = np.arange(1.0, d + 1) ** -own["key_decay"]
    gains = np.arange(1.0, d + 1) ** -own["gain_decay"]
    turns = np.linalg.qr(rng.standard_normal((count, d, d)))[0]
    frames = np.sqrt(temperature) / spread[:, None] * turns * np.sqrt(gains)
    queries = np.asarray(gaussian_queries(d, own["queries"], own["scale"], seed)) * spread
    full = Heads(frames, "softmax", np.sqrt(temperature), key_frames=frames)
    target = TARGETS["rbf"](d, lengthscale=regime["lengthscale"], seed=seed)
    task = Task(GaussianDesign(np.diag(spread**2)), target, noise_sd=regime["noise_sd"])
    seen = queries.T @ queries / len(queries)
    return {
        rank: Compressed(
            task,
            full if rank == d else compressed(full, rank, np.diag(spread**2), seen),
            regime["n"],
            queries,
        )
        for rank in own["ranks"]
    }


def ensemble_name(regime: str, rank: int) -> str:
    """The point of a regime and rank."""
    return f"heads {regime} r={rank}"


def gaussian_triangle(rng: np.random.Generator, draws: int, n: int, d: int) -> np.ndarray:
    """Triangular factors (draws, d, d) of n ≥ d normal rows: what a factorisation sees of them.

    Bartlett's decomposition: normal above the diagonal, and on it roots of χ² of n, …, n − d + 1
    degrees of freedom.
    """
    factor = np.triu(rng.standard_normal((draws, d, d)), 1)
    factor[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(n - np.arange(d), (draws, d)))
    return factor


def root_of(moment: np.ndarray) -> np.ndarray:
    """The symmetric root of a second moment."""
    values, vectors = np.linalg.eigh(moment)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T)


def centred(scores: np.ndarray) -> np.ndarray:
    """Scores (T, T') less each query's mean over keys."""
    return np.asarray(scores - scores.mean(0))


def outputs(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Attention's outputs (T', d_v) for scores (T, T') of keys with queries."""
    weights = np.exp(scores - scores.max(0))
    return np.asarray((weights / weights.sum(0)).T @ values)


def with_moment(rng: np.random.Generator, rows: int, moment: np.ndarray) -> np.ndarray:
    """Rows (T, d) whose second moment is exactly T times the one given."""
    values, vectors = np.linalg.eigh(moment)
    frame = np.linalg.qr(rng.standard_normal((rows, len(moment))))[0]
    return np.asarray(np.sqrt(rows) * frame * np.sqrt(np.maximum(values, 0)) @ vectors.T)
