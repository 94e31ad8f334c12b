"""Head weights: contracts over the registry, optimality conditions, brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sims.theory.weighting import WEIGHTINGS, non_negative, optimal, risk, uniform


def matrices(count: int, heads: int, seed: int = 0, rank: int | None = None):
    """Random risk matrices, heads of very different size among them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        root = rng.normal(size=(rank or heads, heads)) * np.exp(rng.normal(size=heads))
        yield root.T @ root


@pytest.mark.parametrize("name", WEIGHTINGS)
@given(seed=st.integers(0, 10_000), heads=st.integers(1, 9), rank=st.integers(1, 9))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_contract(name, seed, heads, rank):
    """Sum 1, scale-free, and each head's weight moves with the head."""
    matrix = next(matrices(1, heads, seed, rank))
    weights = WEIGHTINGS[name](matrix)
    assert weights.shape == (heads,)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert risk(weights, matrix) <= risk(uniform(matrix), matrix) * (1 + 1e-9) + 1e-12
    if rank >= heads:
        turned = np.random.default_rng(seed).permutation(heads)
        moved = WEIGHTINGS[name](matrix[np.ix_(turned, turned)])
        np.testing.assert_allclose(moved, weights[turned], atol=1e-6)


@given(seed=st.integers(0, 10_000), heads=st.integers(2, 9), rank=st.integers(1, 9))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_larger_sets_of_weights_have_less_risk(seed, heads, rank):
    matrix = next(matrices(1, heads, seed, rank))
    risks = [float(risk(rule(matrix), matrix)) for rule in WEIGHTINGS.values()]
    slack = 1e-9 * np.trace(matrix)
    assert all(b <= a + slack for a, b in itertools.pairwise(risks))


@pytest.mark.theory
def test_optimal_is_the_textbook_inverse():
    for matrix in matrices(50, 5):
        inverse = np.linalg.inv(matrix).sum(1)
        np.testing.assert_allclose(optimal(matrix), inverse / inverse.sum(), rtol=1e-6, atol=1e-8)


@pytest.mark.theory
def test_optimality_conditions_on_the_simplex():
    """Gradient equal on the support, no smaller off it (up to 1e-9 of the matrix' size)."""
    supports = set()
    for matrix in matrices(300, 6):
        weights = non_negative(matrix)
        slope = matrix @ weights - risk(weights, matrix)
        assert weights.min() >= 0
        assert slope.min() > -1e-9 * np.trace(matrix)
        np.testing.assert_allclose(slope[weights > 0], 0, atol=1e-9 * np.trace(matrix))
        supports.add(int((weights > 0).sum()))
    assert len(supports) >= 3  # the constraint bound, and not always


@pytest.mark.theory
@pytest.mark.parametrize("name", ["non_negative", "ordered"])
def test_brute_force_on_a_grid(name):
    """H = 3: no point of a fine grid is better, and one is nearly as good."""
    steps = 100
    grid = np.array(
        [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)], float
    )
    grid /= steps
    for matrix in matrices(40, 3, seed=2):
        allowed = grid
        if name == "ordered":
            sorted_grid = grid[:, np.argsort(np.diagonal(matrix))]
            allowed = grid[(np.diff(sorted_grid, axis=1) <= 1e-12).all(1)]
        best = risk(allowed, matrix).min()
        found = risk(WEIGHTINGS[name](matrix), matrix)
        assert found <= best + 1e-12 * np.trace(matrix)
        # The nearest grid point is within 1/100 a coordinate.
        assert best - found <= 4e-2 * np.linalg.norm(matrix @ WEIGHTINGS[name](matrix)) + (
            4e-4 * np.trace(matrix)
        )


def test_uniform_is_optimal_iff_row_sums_are_equal():
    ring = np.eye(5) + 0.3 * (np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0))
    for rule in WEIGHTINGS.values():
        np.testing.assert_allclose(rule(ring), 0.2, atol=1e-9)
    uneven = ring + np.diag([0, 0, 0, 0, 0.1])
    assert risk(optimal(uneven), uneven) < risk(uniform(uneven), uneven) * 0.9999


def test_aligned_heads_share_a_weight():
    """Two copies of one head: M is singular, and of all optima the even one is given."""
    matrix = np.array([[1.0, 1.0, 0.2], [1.0, 1.0, 0.2], [0.2, 0.2, 2.0]])
    np.testing.assert_allclose(optimal(matrix)[:2].sum(), 1.8 / 2.6, rtol=1e-9)
    np.testing.assert_allclose(*optimal(matrix)[:2], rtol=1e-9)
    np.testing.assert_allclose(optimal(np.zeros((3, 3))), 1 / 3)


@pytest.mark.theory
def test_cost_of_estimated_weights():
    """(σ² + R*)(H − 1)/(m − H) of docs/theory/averaging.md, by normal residuals; 4 errors."""
    rng, heads, noise = np.random.default_rng(0), 4, 1.3
    root = rng.normal(size=(heads, heads))
    matrix = root.T @ root
    best = float(risk(optimal(matrix), matrix))
    for m in (8, 12, 40):
        e = rng.normal(size=(2000, m, heads)) @ root + noise * rng.normal(size=(2000, m, 1))
        excess = [float(risk(optimal(r.T @ r / m), matrix)) - best for r in e]
        error = np.std(excess, ddof=1) / np.sqrt(len(excess))
        law = (noise**2 + best) * (heads - 1) / (m - heads)
        assert abs(np.mean(excess) - law) < 4 * error
