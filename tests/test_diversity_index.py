"""The family of diversity indices: limits, symmetries, where they agree and where they do not."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from sims.problem import FRAMES
from sims.problem.diversity import (
    DEFINITIONS,
    correlation,
    geometric_gram,
)
from tests.by_hand import refused


def equicorrelated(heads, c):
    return (1 - c) * np.eye(heads) + c * np.ones((heads, heads))


def random_correlation(seed, heads=5):
    root = np.random.default_rng(seed).normal(size=(heads, heads + 2))
    return correlation(root @ root.T)


BOUNDED = {name: index for name, index in DEFINITIONS.items() if name != "inverse"}
"""The best weights may be negative, so that `inverse` has no upper end."""


@pytest.mark.parametrize("index", DEFINITIONS.values(), ids=DEFINITIONS)
class TestContract:
    def test_extremes(self, index):
        assert index(np.eye(3)) == pytest.approx(1, abs=1e-12)
        assert index(np.ones((3, 3))) == pytest.approx(0, abs=1e-12)

    def test_order_and_units_of_heads_do_not_matter(self, index):
        root = np.random.default_rng(1).normal(size=(4, 6))
        c, scale, order = root @ root.T, np.array([1.0, 10.0, 0.1, 3.0]), [2, 0, 3, 1]
        other = correlation((scale[:, None] * c * scale)[np.ix_(order, order)])
        assert index(other) == pytest.approx(index(correlation(c)), rel=1e-12)

    def test_falls_with_a_common_correlation(self, index):
        values = index(np.stack([equicorrelated(4, c) for c in np.linspace(0, 1, 21)]))
        assert (np.diff(values) < 0).all()

    def test_leading_axes(self, index):
        stack = np.stack([random_correlation(s) for s in range(6)]).reshape(2, 3, 5, 5)
        one_by_one = [[index(r) for r in row] for row in stack]
        np.testing.assert_allclose(index(stack), one_by_one)


@pytest.mark.parametrize("index", BOUNDED.values(), ids=BOUNDED)
def test_range_without_negative_correlations(index):
    rng = np.random.default_rng(2)
    for _ in range(200):
        root = np.abs(rng.normal(size=(4, rng.integers(1, 8))))
        assert -1e-9 <= index(correlation(root @ root.T)) <= 1 + 1e-9


@pytest.mark.theory
def test_closed_forms_of_an_equicorrelated_matrix():
    heads, c = 5, 0.3
    r = equicorrelated(heads, c)
    big, small = (1 + (heads - 1) * c) / heads, (1 - c) / heads
    entropy = -big * np.log(big) - (heads - 1) * small * np.log(small)
    expected = {
        "mean": 1 - c,
        "top": 1 - c,
        "entropy": (np.exp(entropy) - 1) / (heads - 1),
        "participation": (1 - c**2) / (1 + (heads - 1) * c**2),
        "inverse": (heads / (1 + (heads - 1) * c) - 1) / (heads - 1),
        "determinant": ((1 + (heads - 1) * c) * (1 - c) ** (heads - 1)) ** (1 / heads),
    }
    for name, index in DEFINITIONS.items():
        assert index(r) == pytest.approx(expected[name], rel=1e-12)


def test_gram_of_subspaces_is_the_mean_squared_cosine():
    frames = np.asarray(FRAMES["haar"](7, 3, 2, seed=4))
    gram = geometric_gram(frames)
    assert np.linalg.eigvalsh(gram)[0] > 0
    for h in range(3):
        for g in range(3):
            cosines = np.cos(subspace_angles(frames[h], frames[g]))
            assert gram[h, g] == pytest.approx(np.mean(cosines**2), abs=1e-10)


def test_a_head_without_variance_is_refused():
    with refused("variance > 0"):
        correlation(np.zeros((2, 2)))


def of_trace_heads(products):
    """The matrix of errors R, of trace H."""
    return products * len(products) / np.trace(products)


def random_errors(seed, heads=4):
    root = np.random.default_rng(seed).normal(size=(heads, heads + 1))
    return root @ root.T


@pytest.mark.theory
class TestErrors:
    """What the matrix of errors says of the ensemble, as docs/theory/diversity.md has it."""

    def test_mean_gives_the_error_and_the_bounds_hold(self):
        for seed in range(20):
            products = random_errors(seed)
            heads, mse = len(products), products.mean()
            mean = np.trace(products) / heads
            index = {name: of(of_trace_heads(products)) for name, of in DEFINITIONS.items()}
            assert mse == pytest.approx(mean * (1 - (1 - 1 / heads) * index["mean"]), rel=1e-12)
            assert mse <= mean * (1 - (1 - 1 / heads) * index["top"])
            assert mse >= mean / (1 + (heads - 1) * index["inverse"])

    def test_the_numerator_is_the_spread_of_outputs(self):
        rng = np.random.default_rng(3)
        outputs, truth = rng.normal(size=(500, 4)), rng.normal(size=500)
        gaps = outputs - truth[:, None]
        products = gaps.T @ gaps / 500
        index = DEFINITIONS["mean"](of_trace_heads(products))
        spread = ((outputs - outputs.mean(1, keepdims=True)) ** 2).sum(1).mean()
        assert 3 * np.trace(products) / 4 * index == pytest.approx(spread, rel=1e-10)

    def test_equal_row_sums_make_top_and_inverse_exact_and_no_other(self):
        """Two pairs at 0.35 against all pairs at 0.1: the first has the larger error."""
        pairs = np.kron(np.eye(2), equicorrelated(2, 0.35))
        even = equicorrelated(4, 0.1)
        for r in (pairs, even):
            assert r.mean() == pytest.approx(1 - 0.75 * DEFINITIONS["top"](r), rel=1e-12)
            assert r.mean() == pytest.approx(1 / (1 + 3 * DEFINITIONS["inverse"](r)), rel=1e-12)
        # The smaller error goes with the smaller entropy.
        lesser = np.kron(np.eye(2), equicorrelated(2, 0.29))
        assert lesser.mean() < even.mean()
        for name in ("entropy", "participation", "determinant"):
            assert DEFINITIONS[name](lesser) < DEFINITIONS[name](even)
