"""Laws of hidden scores by ways of their own: recursions, simulation, other arithmetic."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from sims.theory.neighbours import collapse, hidden

pytestmark = pytest.mark.theory
STARTS = ("zero", "copy")


@pytest.mark.parametrize("start", STARTS)
def test_shares_by_running_the_recursion(start):
    """Unit vectors for scores: the hidden scores are the shares."""
    h = np.eye(6)[0] * (1.0 if start == "copy" else 0.4)
    for layer in range(1, 6):
        h = 0.6 * h + 0.4 * np.eye(6)[layer]
    np.testing.assert_allclose(hidden.shares(5, 0.6, start), h, rtol=1e-14)


@pytest.mark.parametrize("start", STARTS)
def test_simplex_recursion_by_decimal_arithmetic(start):
    """Attention of explicit simplex tokens in 60 digits, row by row."""
    getcontext().prec = 60
    n, beta, w, alpha, memory = 3, Decimal("1.3"), Decimal("0.8"), Decimal("0.1"), Decimal("0.6")
    # e_i − 1/n, and m along one more direction
    size = Decimal("0.9")
    basis = [[Decimal(i == j) - 1 / Decimal(n) for j in range(n)] for i in range(n)]
    tokens = [[size * v for v in row] + [Decimal(1)] for row in basis]
    h = [[Decimal(0)] * n for _ in range(n)]
    law = np.exp(hidden.simplex_log_sizes(hidden.Simplex(n, 0.9, 1.3, 0.8), 6, 0.6, start, 0.1))
    for layer in range(6):
        share = Decimal(1) if layer == 0 and start == "copy" else 1 - memory
        dot = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in tokens] for x in tokens]
        h = [[memory * h[i][j] + share * beta * dot[i][j] for j in range(n)] for i in range(n)]
        new = []
        for i in range(n):
            e = [v.exp() for v in h[i]]
            mean = [
                sum(a * x[c] for a, x in zip(e, tokens, strict=True)) / sum(e) for c in range(n + 1)
            ]
            new.append([alpha * tokens[i][c] + (1 - alpha) * w * mean[c] for c in range(n + 1)])
        tokens = new
        found = float(tokens[0][0] - tokens[1][0])
        assert found == pytest.approx(law[layer + 1], rel=1e-10)


def test_late_rates_by_simulation():
    """Uniform attention, mean token alone; with norm the part of R along the new mean goes, too."""
    rng, d, skip, draws = np.random.default_rng(5), 16, 0.4, 4000
    c = (1 - skip) / skip
    m = np.zeros((draws, d))
    m[:, 0] = 1.0
    r = rng.normal(size=(draws, d))
    r /= np.linalg.norm(r, axis=1, keepdims=True)
    new = m + c * rng.normal(size=(draws, d)) / d**0.5
    growth = np.log((new**2).sum(1))
    error = growth.std() / draws**0.5
    assert growth.mean() == pytest.approx(collapse.growth(d, c**2), abs=4 * error)
    # R is orthogonal to the old mean after its norm.
    r[:, 0] = 0
    r /= np.linalg.norm(r, axis=1, keepdims=True)
    along = (r * new).sum(1) ** 2 / (new**2).sum(1)
    whole = growth - np.log1p(-along)
    found, error = whole.mean(), whole.std() / draws**0.5
    law = collapse.growth(d, c**2) + c**2 / ((1 + c**2) * d)
    assert found == pytest.approx(law, abs=4 * error + 0.01)
