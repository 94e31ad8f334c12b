"""The parts of the exact theory: node rules, responses, sizes that are compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma

from sims.problem.kernels import KERNELS
from sims.theory.exact.laplace import Head, Setting
from sims.theory.exact.quadrature import ball_rule, sphere_area, sphere_rule

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_sphere_rule_integrates_polynomials(dimension):
    """Moments of the uniform law on the sphere: E z² = 1/k, E z⁴ = 3/(k(k + 2))."""
    nodes, weights = sphere_rule(dimension, 12)
    np.testing.assert_allclose(weights.sum(), sphere_area(dimension))
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


def setting(kernel, size=64, step=0.4):
    """For one key."""
    return Setting(kernel, size, jnp.asarray(step), jnp.asarray(1.0))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_responses_keep_their_relative_accuracy(kernel):
    """From X = e^{−46} to far above 1, at −log K up to 700 and at K = 0."""
    kernel, step, count = KERNELS[kernel], 0.4, 192
    fields = {name: jnp.zeros(()) for name in Head._fields} | {"low": jnp.asarray(-30.0)}
    log_k = np.array([0.0, -3.7, -16.0, -700.0, -np.inf])
    responses = jax.jit(lambda log_k: setting(kernel, count, step).responses(Head(**fields), log_k))
    hit, once, x = map(np.asarray, responses(log_k))
    points = slice(None, -1) if kernel.support else slice(None)
    with np.errstate(over="ignore"):
        direct = np.exp(-30.0 + step * np.arange(count)[:, None] + log_k)[points]
    np.testing.assert_allclose(hit[points], -np.expm1(-direct), rtol=1e-13, atol=1e-290)
    inside = direct < 300
    np.testing.assert_allclose(x[points][inside], direct[inside], rtol=1e-12, atol=1e-290)
    expected = (direct * np.exp(-direct))[inside]
    np.testing.assert_allclose(once[points][inside], expected, rtol=1e-10, atol=1e-290)
    assert once[points][~inside].max() < 1e-100
    if kernel.support:  # the last point is u = ∞
        np.testing.assert_array_equal(hit[-1], [1, 1, 1, 1, 0])
        np.testing.assert_array_equal(once[-1], 0)
