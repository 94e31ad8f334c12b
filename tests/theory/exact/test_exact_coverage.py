"""Exact theory of radial and compact kernels: direct quadrature, and one key."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries
from sims.problem.kernels import KERNELS
from sims.theory.exact import exact_terms

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("kernel", ["laplace", "student", "epanechnikov", "triweight"])
def test_two_keys_against_direct_quadrature(kernel):
    """E over (X_1, X_2) ∈ R × R by Gauss–Legendre between kinks, without any Laplace integral."""
    target = TrigonometricSeries([1.0, 0.6], [[1.1], [0.5]], [0.3, 1.2])
    task, x, b = Task(GaussianDesign(np.eye(1)), target, 0.5), 0.4, 0.9
    kernel = KERNELS[kernel]
    data = exact_terms(task, Heads(np.ones((1, 1, 1)), kernel, b), 2, [[x]], rtol=1e-7)
    # Kinks: the query and the support's edges.
    edges = sorted([-9.0, x - b, 0.0, x, x + b, 9.0])
    node, weight = np.polynomial.legendre.leggauss(80)
    grid = np.concatenate([a + (c - a) * (node + 1) / 2 for a, c in itertools.pairwise(edges)])
    mass = np.concatenate([(c - a) * weight / 2 for a, c in itertools.pairwise(edges)]) * norm.pdf(
        grid
    )
    k = np.exp(np.asarray(kernel.log_value(jnp.full((1, 1), x), grid[None], jnp.asarray(b))))
    total = k[:, None] + k
    w = np.where(total > 0, k[:, None] / np.where(total > 0, total, 1), 0.0)
    m = np.asarray(target(jnp.asarray(grid[:, None])))
    g = w * m[:, None] + w.T * m
    mean = mass @ g @ mass
    truth = float(target(jnp.asarray([x])))
    np.testing.assert_allclose(data["bias"].values.item(), mean - truth, atol=1e-6)
    signal = mass @ g**2 @ mass - mean**2
    np.testing.assert_allclose(data["signal_covariance"].values.item(), signal, rtol=1e-5)
    noise = 0.25 * (mass @ (w**2 + w.T**2) @ mass)
    np.testing.assert_allclose(data["noise_covariance"].values.item(), noise, rtol=1e-5)
    empty = float(mass[k == 0].sum()) ** 2
    np.testing.assert_allclose(data["empty_probability"].values.item(), empty, atol=1e-8)


@pytest.mark.parametrize("bandwidth", [0.8, 0.03, 0.001])
def test_one_key_of_a_compact_kernel_counts_zero_outside(bandwidth):
    """n = 1: f̂ = Y·1{K > 0}; here m = 1, so the noise is σ²P and the signal P(1 − P)."""
    task = Task(GaussianDesign(np.eye(1)), TrigonometricSeries([1.0], [[0.0]], [0.0]), 0.5)
    data = exact_terms(task, Heads(np.ones((1, 1, 1)), "biweight", bandwidth), 1, [[0.3]])
    inside = norm.cdf(0.3 + bandwidth) - norm.cdf(0.3 - bandwidth)
    np.testing.assert_allclose(data["bias"].values.item(), inside - 1, atol=1e-7)
    np.testing.assert_allclose(
        data["signal_covariance"].values.item(), inside * (1 - inside), rtol=1e-5
    )
    np.testing.assert_allclose(data["noise_covariance"].values.item(), 0.25 * inside, rtol=1e-5)


def test_two_keys_of_compact_heads_against_direct_quadrature():
    """Orthogonal heads of unlike centres, often without a key: Gauss–Legendre on each strip."""
    query, width = np.array([0.3, -0.9]), np.array([0.8, 0.5])
    target = TrigonometricSeries([1.0, 0.7], [[1.0, 0.6], [0.0, 0.0]], [0.4, 0.0])
    task = Task(GaussianDesign(np.eye(2)), target, 0.5)
    heads = Heads(np.eye(2)[:, :, None], "epanechnikov", width)
    data = exact_terms(task, heads, 2, query[None], rtol=1e-6)
    nodes, share = np.polynomial.legendre.leggauss(10)
    axes, weights = [], []
    for q, b in zip(query, width, strict=True):
        edges = np.array([-7.0, -2.5, q - b, q + b, 2.5, 7.0])
        half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
        axes.append((middle + half * nodes).ravel())
        weights.append((half * share * norm.pdf(middle + half * nodes)).ravel())
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    density = np.outer(*weights).ravel()
    m, outputs = np.asarray(target(grid)), []
    for h in range(2):
        kernel = np.maximum(1 - ((grid[:, h] - query[h]) / width[h]) ** 2, 0)
        total = kernel[:, None] + kernel
        own = np.divide(kernel[:, None], total, out=np.zeros_like(total), where=total > 0)
        outputs.append(own * m[:, None] + own.T * m)
    mean = [density @ out @ density for out in outputs]
    bias = np.array(mean) - float(target(jnp.asarray(query)))
    np.testing.assert_allclose(data["bias"].values[0], bias, rtol=1e-4)
    for h in range(2):
        for g in range(2):
            signal = density @ (outputs[h] * outputs[g]) @ density - mean[h] * mean[g]
            found = data["signal_covariance"].values[0, h, g]
            assert found == pytest.approx(signal, rel=1e-3)
