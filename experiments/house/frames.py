"""Frames of the sets of heads of a problem."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import ortho_group

from sims.problem.diversity import geometric_gram, mean_index

from .sets import ALIGNED, HAAR, LADDER


def orthonormal(frames: np.ndarray) -> np.ndarray:
    """Frames (…, d, d_k) by QR with positive diagonal, so that they vary smoothly."""
    basis, triangle = np.linalg.qr(frames)
    signs = np.sign(np.diagonal(triangle, axis1=-2, axis2=-1))
    return basis * signs[..., None, :]


def draw_rotations(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Independent uniform rotations (count, 1, 1, d, d), which act on frames (S, H, d, d_k)."""
    rotations = ortho_group.rvs(dimension, size=count, random_state=rng)
    return rotations.reshape(count, 1, 1, dimension, dimension)


def haar_frames(rng: np.random.Generator, count: int, dimension: int, width: int) -> np.ndarray:
    """Independent uniform frames (count, d, d_k)."""
    return draw_rotations(rng, count, dimension)[:, 0, 0, :, :width]


def draw_key_frames(
    seed: int, dimension: int, heads: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Key frames of the Haar set that selects draws, (1, H, d, d_k), and of the sets but halves.

    A rung of the ladder mixes a common frame with those of a second Haar set, so that the mean
    index is the rung's share of that set's. Where orthogonal frames have no room the last set is
    Haar, too.
    """
    rng = np.random.default_rng(seed)
    base = haar_frames(rng, 1, dimension, width)
    first, second, third, last = (haar_frames(rng, heads, dimension, width) for _ in range(4))

    def mixed(share: float) -> np.ndarray:
        return orthonormal((1 - share) ** 0.5 * base + share**0.5 * second)

    def excess(share: float, rung: float) -> float:
        return float(mean_index(geometric_gram(mixed(share))) - rung * full)

    full = float(mean_index(geometric_gram(second)))
    rungs = [mixed(brentq(excess, 0, 1, args=(rung,), xtol=1e-4)) for rung in LADDER[:-1]]
    if heads * width <= dimension:
        columns = ortho_group.rvs(dimension, random_state=rng)[:, : heads * width]
        last = columns.reshape(dimension, heads, width).transpose(1, 0, 2)
    return first[None], np.stack([*rungs, second, third, last])


def draw_query_frames(key_frames: np.ndarray, overlap: float, seed: int) -> np.ndarray:
    """Query frames that share a part ω of the key frames, the rest the same in every set."""
    _, heads, dimension, width = key_frames.shape
    other = haar_frames(np.random.default_rng(seed), heads, dimension, width)
    return orthonormal(overlap**0.5 * key_frames + (1 - overlap) ** 0.5 * other)


def with_halves(sets: np.ndarray) -> np.ndarray:
    """Arrays of the sets, (S, H, …), and of the halves of both ends: their first heads twice."""
    ends = sets[[ALIGNED, HAAR], : sets.shape[1] // 2]
    return np.concatenate([sets, np.concatenate([ends, ends], axis=1)])
