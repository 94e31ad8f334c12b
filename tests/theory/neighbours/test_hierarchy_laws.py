"""Laws of hierarchical scores by counting, drawing, quadrature and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from sims.theory.neighbours import hierarchy

pytestmark = pytest.mark.theory


def test_costs_by_counting():
    for tokens, levels in ((16, 3), (64, 4)):
        pairs = sum(
            1
            for level in range(levels)
            for i in range(tokens // 2**level)
            for j in range(tokens // 2**level)
        )
        assert hierarchy.relative_cost(levels) == pytest.approx(pairs / tokens**2)
        assert hierarchy.relative_cost_rounded(tokens, levels) == pytest.approx(pairs / tokens**2)
    assert hierarchy.relative_cost(3) == 1.3125
    assert hierarchy.relative_cost_rounded(2, 3) == 1.5
    assert hierarchy.relative_cost_rounded(5, 3) == (25 + 9 + 4) / 25


def test_cost_of_a_layer_summand_by_summand():
    tokens, d, levels = 32, 8, 3
    sizes = [tokens // 2**level for level in range(levels)]
    cost = sum(n * n * d for n in sizes) + tokens**2 * d  # scores, averages
    cost += 2 * tokens * d * d + sum(2 * n * d * d for n in sizes)  # values, outputs; queries, keys
    plain = 2 * tokens**2 * d + 4 * tokens * d * d
    assert hierarchy.relative_layer_cost(tokens / d, levels) == pytest.approx(cost / plain)


def test_probability_in_closed_form():
    assert hierarchy.psd_probability(1, 1) == pytest.approx(0.5)
    assert hierarchy.psd_probability(2, 2) == pytest.approx((4 - np.pi) / 8)
    assert hierarchy.psd_probability(2, 1) == 0
    for d in (1, 2, 3, 4, 5):  # uniform eigenvalues with repulsion, scaled from [½, 1] to [0, 1]
        assert hierarchy.psd_probability(d, d + 1) == pytest.approx(2.0 ** (-d * (d + 1) / 2))
    assert hierarchy.psd_probability(2, 3, levels=2) == pytest.approx(1 / 64)


@pytest.mark.parametrize(("d", "width"), [(3, 3), (2, 5)])
def test_probability_by_drawing(d, width):
    draws = 100_000
    query, key = np.random.default_rng(d).normal(size=(2, draws, d, width))
    form = query @ np.swapaxes(key, 1, 2)
    least = np.linalg.eigvalsh(form + np.swapaxes(form, 1, 2))[:, 0]
    p = hierarchy.psd_probability(d, width)
    # Four standard errors: a false alarm in 16000.
    assert np.mean(least >= 0) == pytest.approx(p, abs=4 * (p * (1 - p) / draws) ** 0.5)


def test_pairs_in_exact_fractions():
    """Rank over the rationals of all Z_l E Z_lᵀ, for eight whole-numbered tokens."""
    rng, d, levels, tokens = np.random.default_rng(3), 2, 2, 8
    level = [[Fraction(int(v)) for v in row] for row in rng.integers(-9, 10, size=(tokens, d))]
    copies = [level]
    coarse = [
        [3 * level[2 * t][c] + (2 * level[2 * t - 1][c] if t else 0) for c in range(d)]
        for t in range(tokens // 2)
    ]
    copies.append([coarse[i // 2] for i in range(tokens)])

    def rank(rows):
        rows, found = [list(row) for row in rows], 0
        for column in range(len(rows[0])):
            pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
            if pivot is None:
                continue
            rows[found], rows[pivot] = rows[pivot], rows[found]
            for r in range(found + 1, len(rows)):
                ratio = rows[r][column] / rows[found][column]
                rows[r] = [a - ratio * b for a, b in zip(rows[r], rows[found], strict=True)]
            found += 1
            if found == len(rows):
                break
        return found

    def products(sign):
        return [
            [
                z[i][a] * z[j][b] + sign * z[j][a] * z[i][b]
                for i in range(tokens)
                for j in range(tokens)
            ]
            for z in copies
            for a in range(d)
            for b in range(d)
        ]

    assert hierarchy.pair_count(d, levels) == (
        rank(products(0)),
        rank(products(1)),
        rank(products(-1)),
    )


def test_tail_weight():
    assert hierarchy.tail_weight(0.5 ** np.arange(40), 3) == pytest.approx(1 / 8)


def test_mixtures_by_quadrature():
    """C and the correlation as integrals of products of kernels over keys of uniform density."""
    h = (0.5, 1.3)

    def product(a, b):
        return quad(
            lambda x: np.exp(-(x**2) / 2 * (1 / a**2 + 1 / b**2)) / (2 * np.pi * a * b),
            -np.inf,
            np.inf,
        )[0]

    c = np.array([[product(a, b) for b in h] for a in h])
    share = np.array([0.3, 0.7])
    square, functional = hierarchy.output_mixture(share, h, 1)
    assert functional == pytest.approx(share @ c @ share)
    assert square == pytest.approx(0.3 * 0.25 + 0.7 * 1.69)
    assert hierarchy.noise_correlation(*h, 1) == pytest.approx(c[0, 1] / (c[0, 0] * c[1, 1]) ** 0.5)
    assert hierarchy.noise_correlation(*h, 3) == pytest.approx(
        hierarchy.noise_correlation(*h, 1) ** 3
    )
    assert hierarchy.single_variance(1.69, 1) == pytest.approx(c[1, 1])
    assert hierarchy.output_mixture([0.0, 1.0], h, 1)[1] == pytest.approx(c[1, 1])
    x = 0.83
    weights = 0.3 * x**2 / (2 * h[0] ** 2) + 0.7 * x**2 / (2 * h[1] ** 2)
    both = hierarchy.score_mixture_bandwidth(share, h)
    assert x**2 / (2 * both**2) == pytest.approx(weights)


def test_maps_to_copies_by_unit_tokens():
    """tr K and tr K² of copies made token by token from unit vectors, T = 5."""
    taps, tokens = (0.8, -0.6, 0.3), 5
    found = hierarchy.token_moments(taps, tokens, 3)
    rows = [[Fraction(int(i == j)) for j in range(tokens)] for i in range(tokens)]
    exact = [Fraction(str(tap)) for tap in taps]
    for level in range(3):
        copy = [rows[i >> level] for i in range(tokens)]
        gram = [
            [sum(row[i] * row[j] for row in copy) for j in range(tokens)] for i in range(tokens)
        ]
        trace = sum(gram[i][i] for i in range(tokens))
        square = sum(entry**2 for row in gram for entry in row)
        np.testing.assert_allclose(found[level], [float(trace), float(square)], rtol=1e-12)
        rows = [
            [
                sum(tap * rows[2 * t - k][j] for k, tap in enumerate(exact) if 2 * t - k >= 0)
                for j in range(tokens)
            ]
            for t in range((len(rows) + 1) // 2)
        ]


def test_rank_error_by_moments_of_coordinates():
    """d = 2, one singular value left out: directions at angles, fourth moments of G by rules.

    ``‖ZuvᵀZᵀ‖² = (uᵀGu)(vᵀGv)``; its mean over G by Gauss–Hermite rules of two tokens, over the
    angle between u and v by a trapezium.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    weights = weights / weights.sum()
    values, means = (3.0, 2.0), []
    moments = hierarchy.token_moments((0.8, 0.6), 2, 2)
    for rows in (np.eye(2), np.array([[0.8, 0.0], [0.8, 0.0]])):
        total = 0.0
        for angle in np.arange(8) * np.pi / 4:
            u, v = np.array([1.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])
            grids = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), -1).reshape(-1, 2, 2)
            mass = np.prod(np.stack(np.meshgrid(*[weights] * 4, indexing="ij"), -1), -1).ravel()
            z = rows @ grids
            total += mass @ (((z @ u) ** 2).sum(1) * ((z @ v) ** 2).sum(1)) / 8
        means.append(values[1] ** 2 * total)
    law = hierarchy.rank_error([0.7, 0.3], np.array(values), 1, moments)
    assert law == pytest.approx(0.49 * means[0] + 0.09 * means[1], rel=1e-12)
