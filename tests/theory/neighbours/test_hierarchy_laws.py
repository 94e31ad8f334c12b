"""Laws of hierarchical scores by drawing, quadrature and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from sims.theory.neighbours import hierarchy
from tests.by_hand import normal_rule

pytestmark = pytest.mark.theory


def test_probability_in_closed_form():
    assert hierarchy.psd_probability(1, 1) == pytest.approx(0.5)
    assert hierarchy.psd_probability(2, 2) == pytest.approx((4 - np.pi) / 8)
    assert hierarchy.psd_probability(2, 1) == 0
    for d in (1, 2, 3, 4, 5):  # uniform eigenvalues with repulsion, scaled from [½, 1] to [0, 1]
        assert hierarchy.psd_probability(d, d + 1) == pytest.approx(2.0 ** (-d * (d + 1) / 2))


@pytest.mark.parametrize(("d", "width"), [(3, 3), (2, 5)])
def test_probability_by_drawing(d, width):
    draws = 100_000
    query, key = np.random.default_rng(d).normal(size=(2, draws, d, width))
    form = query @ np.swapaxes(key, 1, 2)
    least = np.linalg.eigvalsh(form + np.swapaxes(form, 1, 2))[:, 0]
    p = hierarchy.psd_probability(d, width)
    # Four standard errors: a false alarm in 16000.
    assert np.mean(least >= 0) == pytest.approx(p, abs=4 * (p * (1 - p) / draws) ** 0.5)


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


def test_errors_of_levels_and_ranks_by_moments_of_coordinates():
    """d = 2: of ``M = s_1u_1v_1ᵀ + s_2u_2v_2ᵀ`` the errors of two levels at rank 1.

    Means over two tokens by Gauss–Hermite rules, over the angle between u and v by a trapezium.
    """
    values, target, model = np.array([3.0, 2.0]), [0.7, 0.3], [1.0, 0.0]
    nodes, mass = normal_rule(6, 4)
    grids = nodes.reshape(-1, 2, 2)
    means = np.zeros(3)
    for level, rows in enumerate((np.eye(2), np.array([[0.8, 0.0], [0.8, 0.0]]))):
        z, gap = rows @ grids, target[level] - model[level]
        for angle in np.arange(8) * np.pi / 4:
            v = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
            for part, shares in enumerate(([gap, gap], [0, model[level]], [gap, target[level]])):
                scores = z @ np.diag(shares * values) @ v @ z.swapaxes(1, 2)
                means[part] += mass @ (scores**2).sum((1, 2)) / 8
    moments = hierarchy.token_moments((0.8, 0.6), 2, 2)
    found = hierarchy.level_errors(target, model, values, 1, moments)
    np.testing.assert_allclose(found, means, rtol=1e-12)
