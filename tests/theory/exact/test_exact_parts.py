"""Node rules of product quadrature."""

import numpy as np
import pytest
from scipy.special import gamma

from sims.theory.exact.quadrature import ball_rule
from sims.theory.first_order.ball_rules import sphere_rule

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_sphere_rule_integrates_polynomials(dimension):
    """Moments of the uniform law on the sphere: E z² = 1/k, E z⁴ = 3/(k(k + 2))."""
    nodes, weights = sphere_rule(dimension, 12)
    area = 2 * np.pi ** (dimension / 2) / gamma(dimension / 2)
    np.testing.assert_allclose(weights.sum(), area)
    np.testing.assert_allclose(np.linalg.norm(nodes, axis=1), 1.0)
    for power, moment in ((2, 1 / dimension), (4, 3 / (dimension * (dimension + 2)))):
        average = weights @ nodes**power / weights.sum()
        np.testing.assert_allclose(average, moment, rtol=1e-12)


@pytest.mark.parametrize("grading", [1, 4])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_ball_rule_integrates_a_radial_function(dimension, grading):
    """∫_{‖y‖<1} (1 − ‖y‖²)^{3/2} dy = π^{k/2} Γ(5/2)/Γ(k/2 + 5/2): a boundary layer."""
    radius, _, weight = ball_rule(dimension, 40, 8, grading)
    value = np.pi ** (dimension / 2) * gamma(2.5) / gamma(dimension / 2 + 2.5)
    np.testing.assert_allclose(weight @ (1 - radius**2) ** 1.5, value, rtol=1e-6)
