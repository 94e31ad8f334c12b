"""Top-k by its radius's law, against plain simulation, SciPy's quadrature and scikit-learn."""

import numpy as np
import pytest
from exact_problems import (
    AMPLITUDE,
    FRAMES,
    PHASE,
    QUERY,
    TASK,
    WAVES,
    adaptive_gaps,
    adaptive_values,
    simulated,
    target,
    two_frames,
)
from scipy.integrate import quad
from scipy.stats import beta, norm

from sims.base.errors import InputError
from sims.problem import Heads
from sims.theory import predict
from sims.weights import FACTORIES

CASES = [(1, 15, None, 50), (1, 15, 0.1, 50), (2, 12, 0.3, 60), (2, 20, None, 60), (1, 1, 0.2, 12)]
"""d_k, k, temperature (None: uniform weights), n."""


def heads_of(width, k, temperature, count=1):
    name = "top_k" if temperature is None else "top_k_softmax"
    rule = FACTORIES[name](k, scores="distance")
    return Heads(two_frames(width)[:count], rule, (temperature or 1.0) ** 0.5)


def weighing(k, temperature):
    def weigh(square):
        edge = np.sort(square, axis=1)[:, k - 1 : k + 1]
        e = (square <= edge[:, :1]) * 1.0
        if temperature is not None:
            e *= np.exp(-(square - square.min(1, keepdims=True)) / (2 * temperature))
        return e / e.sum(1, keepdims=True), edge[:, 1] ** 0.5, np.full(len(e), k)

    return weigh


@pytest.mark.theory
@pytest.mark.parametrize(("width", "k", "temperature", "n"), CASES)
def test_exact_terms_by_simulation(width, k, temperature, n):
    """Within 4.5 MCSE each: a false alarm in all below 2e-4."""
    heads = heads_of(width, k, temperature)
    exact = predict(TASK, heads, n, QUERY, order="exact").isel(query=0)
    found = simulated(np.asarray(heads.frames), n, weighing(k, temperature))
    for name, value in adaptive_values(exact).items():
        mean, error = found[name]
        assert abs(value - mean) < 4.5 * error + 1e-6, (name, value, mean, error)
    assert bool(exact["converged"].all())


@pytest.mark.theory
def test_uniform_weights_by_quadrature_over_the_beta_law():
    """d_k = 1: mean and variance in the ball by the normal law's own integrals, to 1e-7."""
    n, k = 40, 9
    exact = predict(TASK, heads_of(1, k, None), n, QUERY, order="exact", rtol=1e-9)
    q = float(FRAMES[:, 0] @ QUERY[0])
    along = WAVES @ FRAMES[:, 0]
    rest = WAVES @ WAVES.T - np.outer(along, along)

    def mean(t):
        return np.cos(t * along + PHASE) @ (AMPLITUDE * np.exp(-np.diag(rest) / 2))

    def square(t):
        angle, total = t * along + PHASE, 0.0
        for i in range(2):
            for j in range(2):
                for sign in (1, -1):
                    spread = rest[i, i] + rest[j, j] + 2 * sign * rest[i, j]
                    wave = np.cos(angle[i] + sign * angle[j]) * np.exp(-spread / 2)
                    total += 0.5 * AMPLITUDE[i] * AMPLITUDE[j] * wave
        return total

    def inside(function, h):
        return quad(lambda t: function(t) * norm.pdf(t), q - h, q + h)[0]

    def averaged(of_ball):
        def integrand(h):
            mass = norm.cdf(q + h) - norm.cdf(q - h)
            density = norm.pdf(q + h) + norm.pdf(q - h)
            return beta.pdf(mass, k + 1, n - k) * density * of_ball(h, mass)

        return quad(integrand, 1e-4, 6.0, points=[0.2, 0.5, 1.0], limit=200)[0]

    first = averaged(lambda h, p: inside(mean, h) / p)
    both = averaged(
        lambda h, p: inside(square, h) / p / k + (1 - 1 / k) * (inside(mean, h) / p) ** 2
    )
    assert float(exact["bias"][0, 0] + target(QUERY)[0]) == pytest.approx(first, abs=1e-7)
    signal = float(exact["signal_covariance"][0, 0, 0])
    assert signal == pytest.approx(both - first**2, abs=1e-7)
    assert float(exact["noise_covariance"][0, 0, 0]) == pytest.approx(1 / k, rel=1e-12)


@pytest.mark.theory
@pytest.mark.parametrize(("width", "temperature"), [(1, None), (1, 0.1), (2, 0.3)])
def test_first_order_is_its_limit(width, temperature):
    """At k/n = 1/4 the gaps of first-order to exact terms fall like 1/n."""
    gaps = [
        adaptive_gaps(heads_of(width, n // 4, temperature), n, noise=temperature is not None)[0]
        for n in (400, 800)
    ]
    np.testing.assert_allclose(np.array(gaps[0]) / gaps[1], 2.0, rtol=0.15)


@pytest.mark.theory
@pytest.mark.parametrize(
    ("width", "k", "temperature"), [(1, 60, None), (1, 60, 0.15), (2, 80, 0.4)]
)
def test_pairs_to_first_order_by_simulation(width, k, temperature):
    """Within 4.5 MCSE (false alarm below 1e-4 in all) and a remainder of 2/n_eff."""
    heads, n = heads_of(width, k, temperature, count=2), 240
    theory = predict(TASK, heads, n, QUERY).isel(query=0)
    found = simulated(np.asarray(heads.frames), n, weighing(k, temperature))
    rest = 2 / float(theory["n_eff"].min())
    for name, words in (("signal_covariance", "cross signal"), ("noise_covariance", "cross noise")):
        value, scale = float(theory[name][0, 1]), float(theory[name][0, 0])
        mean, error = found[words]
        assert abs(value - mean) < 4.5 * error + rest * scale, (name, value, mean, error)


@pytest.mark.parametrize(
    ("heads", "n", "order", "words"),
    [
        (heads_of(1, 5, None, count=2), 40, "exact", "heads.count: got 2"),
        (heads_of(1, 40, None), 40, "exact", "heads.kernel.k: got 40; allowed: below n = 40"),
        (heads_of(1, 40, None), 40, "first", "heads.kernel.k: got 40; allowed: below n = 40"),
        (heads_of(1, 50, None), 40, "first", "50"),
    ],
)
def test_what_is_not_covered_is_one_line(heads, n, order, words):
    with pytest.raises(InputError, match=words) as caught:
        predict(TASK, heads, n, QUERY, order=order)
    assert "\n" not in str(caught.value)
