"""Laws of a kept temperature against quadrature, brute force and drawn keys."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from sims.theory.neighbours import context

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("nu", [1, 1.5, 2, 3])
@pytest.mark.parametrize(("n", "scale"), [(40, 0.3), (3000, 0.05), (300, 2.0), (300, 0.01)])
def test_threshold_of_normal_scores_by_quadrature(n, scale, nu):
    u = context.score_threshold(n, scale, nu)

    def integrand(z):
        return ((z - u) / nu) ** nu * np.exp(-0.5 * (z / scale) ** 2) / (scale * (2 * np.pi) ** 0.5)

    mass = quad(integrand, max(u, -12 * scale), max(u, 0) + 12 * scale, limit=200, epsabs=1e-14)[0]
    assert n * mass == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("nu", [1, 2])
def test_attended_scores_of_drawn_keys(nu):
    """Thresholds of 2,000 drawn rows; 4 standard errors and the next order, 0.5 keys."""
    rng, n, scale, rows = np.random.default_rng(5), 2000, 0.25 if nu == 1 else 0.5, 2000
    counts = []
    for _ in range(rows):
        z = scale * rng.standard_normal(n)
        low, high = z.max() - nu, z.max()
        u = brentq(lambda t, z=z: np.sum(np.maximum((z - t) / nu, 0) ** nu) - 1, low, high)
        counts.append(np.sum(z > u))
    law = context.score_attended(n, scale, nu)
    assert abs(np.mean(counts) - law) < 4 * np.std(counts) / rows**0.5 + 0.5
    # The constant counts: without it the law would miss by about one key.
    from scipy.stats import norm

    bare = n * norm.sf(context.score_threshold(n, scale, nu) / scale)
    assert 0.5 < law - bare < 4
