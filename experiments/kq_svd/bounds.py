"""Searches: where printed bounds break, and at what length; part of the simulation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize

from sims.attention.low_rank import kq_svd

STEPS = 150
"""Of the search's ascent."""
Numbers = dict[str, Any]
SMALL = 1e-3
"""Size of the finite perturbation with which a search's find is tried."""


def softmax(scores: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def spectral_search(rng: np.random.Generator, length: int) -> Numbers:
    """From a random start, the largest ``‖ΔP V‖₂/‖ΔS‖₂‖V‖₂`` of a self-attention of T tokens.

    To first order ``u·ΔP v = ⟨ΔS, diag(u) C⟩`` with ``C_ij = p_ij(v_j − Σ_k p_ik v_k)``, which is
    largest over ‖ΔS‖₂ ≤ 1 at the nuclear norm of diag(u) C. Ascent over the scores, u and v; starts
    are normal, about a row that looks at its own key and at one that all share, a sink. What is
    found is tried with a finite ΔS through softmax itself: that ratio is returned.
    """
    t = length
    start = rng.standard_normal((t + 2, t))
    start[:t] += 3 * np.eye(t)
    start[:t, 0] += 3

    def parts(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        table = flat.reshape(t + 2, t)
        return softmax(table[:t]), table[t], table[t + 1], table[:t]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        p, u, v, _ = parts(flat)
        away = v - (p @ v)[:, None]
        c = p * away
        left, s, right = np.linalg.svd(u[:, None] * c)
        w = left @ right
        value, nu, nv = s.sum(), np.linalg.norm(u), np.linalg.norm(v)
        if value == 0:  # a step so long that every row looks at one key
            return np.inf, np.zeros_like(flat)
        g = u[:, None] * w
        total = (g * p).sum(1)
        dp = g * away - total[:, None] * v
        dz = p * (dp - (dp * p).sum(1, keepdims=True))
        du = (w * c).sum(1) / value - u / nu**2
        dv = (p * (g - total[:, None])).sum(0) / value - v / nv**2
        return -np.log(value / (nu * nv)), -np.concatenate([(dz / value).ravel(), du, dv])

    best = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    p, u, v, scores = parts(best.x)
    left, _, right = np.linalg.svd(u[:, None] * p * (v - (p @ v)[:, None]))
    change = SMALL * left @ right
    moved = (softmax(scores + change) - p) @ v[:, None]
    return {"ratio": np.linalg.norm(moved, 2) / (SMALL * np.linalg.norm(v))}


def random_bounds(rng: np.random.Generator, own: Mapping[str, Any]) -> Numbers:
    """Ratio of error to bound in the spectral norm, of a random head's KQ-SVD."""
    t, d = own["random_length"], own["d"]
    keys, queries, values = rng.standard_normal((3, t, d)) * np.exp(rng.uniform(-1, 1, (3, 1, 1)))
    cache = kq_svd(keys, queries, int(rng.integers(1, d)))
    scores = queries @ keys.T / np.sqrt(d)
    moved = cache.scores(keys, queries).T / np.sqrt(d)
    error = np.linalg.norm((softmax(moved) - softmax(scores)) @ values, 2)
    return {"ratio": error / (np.linalg.norm(moved - scores, 2) * np.linalg.norm(values, 2))}


def row_bounds(rng: np.random.Generator, own: Mapping[str, Any]) -> Numbers:
    """Ratios of errors to the bounds row by row, largest of many random rows; and two keys."""
    t, d = int(rng.integers(2, own["row_length"])), own["d"]
    rows = own["rows"]
    scores = rng.standard_normal((rows, t)) * np.exp(rng.uniform(-2, 2))
    errors = rng.standard_normal((rows, t)) * np.exp(rng.uniform(-2, 2, (rows, 1)))
    values = rng.standard_normal((t, d)) * np.exp(rng.uniform(-1, 1, (t, 1)))
    change = softmax(scores + errors) - softmax(scores)
    reach = np.ptp(errors, axis=1)
    diameter = np.linalg.norm(values[:, None] - values[None], axis=-1).max()
    moved = np.linalg.norm(change @ values, axis=1)
    omega = np.exp(rng.uniform(-3, 2))
    two = softmax(np.array([[omega, -omega], [-omega, omega]]) / 4) @ np.array([0.0, 1.0])
    return {
        "tanh": (moved / (np.tanh(reach / 4) * diameter)).max(),
        "euclidean": (np.linalg.norm(change, axis=1) / np.linalg.norm(errors, axis=1)).max() * 2,
        "frobenius": 2
        * np.linalg.norm(change @ values)
        / (np.linalg.norm(errors) * np.linalg.norm(values, 2)),
        "attained": abs(two[1] - two[0]) / np.tanh(omega / 4),
    }


def masked_gain(rng: np.random.Generator, shared: tuple[Mapping[str, Any], int]) -> Numbers:
    """By how much factors fitted to the causal part of the scores are better on it than KQ-SVD.

    Keys and queries of small whole entries; alternating least squares from KQ-SVD's factors.
    Returns the share of KQ-SVD's error that goes away.
    """
    own, t = shared
    d, rank, entries = own["d"], own["rank"], own["entries"]
    mask = np.tril(np.ones((t, t), bool))
    while True:
        keys, queries = rng.integers(-entries, entries + 1, (2, t, d)).astype(float)
        scores = queries @ keys.T
        cache = kq_svd(keys, queries, rank)
        before = ((cache.scores(keys, queries).T - scores)[mask] ** 2).sum()
        # A draw that KQ-SVD compresses without loss says nothing.
        if before > 1e-9 * (scores**2).sum() > 0:
            break
    i, j = np.nonzero(mask)
    goal, b = scores[mask], cache.query_map
    after = before
    for _ in range(own["steps"]):
        # Σ_rc (k_j)_a A_ac (B_bc q_ib): linear in A given B, and the other way round.
        a = fit(keys[j], queries[i] @ b, goal)
        b = fit(queries[i], keys[j] @ a, goal)
        left = ((((queries @ b) @ (keys @ a).T)[mask] - goal) ** 2).sum()
        after = min(after, left)
    return {"removed": 1 - after / before}


def fit(rows: np.ndarray, seen: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The map M (d, r) with ``Σ rows_a M_ac seen_c`` nearest to the goal."""
    design = (rows[:, :, None] * seen[:, None, :]).reshape(len(goal), -1)
    return np.asarray(np.linalg.lstsq(design, goal, rcond=None)[0]).reshape(rows.shape[1], -1)
