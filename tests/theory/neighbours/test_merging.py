"""First-order theory of merged heads: against quadrature, plain Monte Carlo and identities.

Monte Carlo is in NumPy, with chunks drawn from the Cholesky factor of their covariance; tolerances
are in its standard errors.
"""

import jax
import numpy as np
import pytest
from scipy.linalg import toeplitz

from sims.problem import (
    DESIGNS,
    FRAMES,
    SEQUENCES,
    TARGETS,
    GaussianDesign,
    Heads,
    SequenceDesign,
    Task,
    TrigonometricSeries,
)
from sims.problem.kernels import kernel_of
from sims.theory import predict
from sims.theory.neighbours import merging
from sims.weights import FACTORIES
from tests.by_hand import normal_rule, refused, waves

pytestmark = pytest.mark.theory
SIGMA = np.array([[1.2, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.0]])
TARGET = TrigonometricSeries(
    [1.0, 0.6, -0.4], [[0.9, 0.2, 0.0], [0.0, -1.1, 0.5], [0.3, 0.3, 1.2]], [0.3, 1.1, -0.4]
)
X = np.array([[0.6, -0.5, 0.4], [-0.2, 0.3, 0.9]])
TEMPERATURE = 1.3


def heads(gates, scores, dimension=3):
    own = np.asarray(FRAMES["equiangular"](4, 2, 2, angle=50))[:, :dimension]
    rule = FACTORIES["merged"](len(gates), gates=list(gates), scores=scores)
    return Heads(own, rule, TEMPERATURE**0.5)


def log_kernels(h, slots, scores):
    """log K of slots (…, d) at the queries: (Q, H, …)."""
    u = np.asarray(h.frames)
    k = np.einsum("...d,hdp->h...p", slots, u)
    q = np.einsum("qd,hdp->qhp", X[:, : u.shape[1]], u)
    if scores == "dot":
        return np.einsum("qhp,h...p->qh...", q, k) / TEMPERATURE
    q = q.reshape(*q.shape[:2], *[1] * (slots.ndim - 1), -1)
    return -((q - k[None]) ** 2).sum(-1) / (2 * TEMPERATURE)


def chunks(rho, stride, count, draws, rng):
    """Chunks (draws, count, s, d) of one stationary sequence, from its whole covariance."""
    root = np.linalg.cholesky(toeplitz(rho[: stride * count]))
    normal = rng.normal(size=(stride * count, draws * 3))
    x = (root @ normal).reshape(count, stride, draws, 3) @ np.linalg.cholesky(SIGMA).T
    return np.moveaxis(x, 2, 0)


@pytest.mark.parametrize("scores", ["dot", "distance"])
@pytest.mark.parametrize("gates", [[0.5, 0.5], [0.3, 0.9]])
@pytest.mark.parametrize("roots", [(0.0, 0.0), (0.7, 0.0), (0.6, 0.6)])
def test_limit_and_noise_by_quadrature(scores, gates, roots):
    """Gauss–Hermite in the four normal coordinates of a chunk of two keys in the plane."""
    sigma, n = SIGMA[:2, :2], 3000
    target = TrigonometricSeries(TARGET.amplitude, TARGET.frequency[:, :2], TARGET.phase)
    design, own = SequenceDesign(sigma, roots), heads(gates, scores, 2)
    theory = predict(Task(design, target, 0.7), own, n, X[:, :2])
    nodes, weights = normal_rule(20, 4)
    covariance = np.kron(toeplitz(design.autocorrelation(2)), sigma)
    x = (nodes @ np.linalg.cholesky(covariance).T).reshape(-1, 2, 2)
    kernels = np.exp(log_kernels(own, np.einsum("i,nid->nd", gates, x), scores))
    mass = kernels @ weights
    limit = kernels @ (weights * (waves(target, x) @ gates)) / mass
    np.testing.assert_allclose(theory["limit"], limit, rtol=1e-6)
    product = np.einsum("qhn,qgn,n->qhg", kernels, kernels, weights)
    overlap = product / (mass[:, :, None] * mass[:, None])
    noise = 0.7**2 * np.dot(gates, gates) * overlap / (n / 2)
    np.testing.assert_allclose(theory["noise_covariance"], noise, rtol=1e-6)


@pytest.mark.parametrize("scores", ["dot", "distance"])
@pytest.mark.parametrize("roots", [(0.7, 0.0), (0.6, 0.6)])
def test_pairs_of_slots_by_monte_carlo(scores, roots):
    """Two chunks, k apart: E K K' (G − m)(G' − m) by importance weights, 5 standard errors."""
    g, rng = np.array([0.2, 0.5, 0.6]), np.random.default_rng(8)
    design = SequenceDesign(SIGMA, roots)
    own, rho = heads(g, scores), design.autocorrelation(12)
    x = chunks(rho, 3, 3, 150_000, rng)
    kernels = np.exp(log_kernels(own, np.einsum("i,ncid->ncd", g, x), scores))
    label = waves(TARGET, x) @ g
    kernel = kernel_of(own.rule.scores.score)
    numpy_heads = jax.tree.map(np.asarray, Heads(own.frames, kernel, TEMPERATURE**0.5))
    slots = merging.Slots(numpy_heads, kernel, SIGMA, X)
    alone = merging.lag(g, rho, 0)
    for k in (1, 2):
        between = merging.lag(g, rho, k)
        covariance = np.array([[alone.slots, between.slots], [between.slots, alone.slots]])
        rows = (
            np.stack([alone.first, between.first], 1),
            np.stack([between.second, alone.first], 1),
        )
        tilt = slots.tilt(covariance, [0, 1], [0, 1])
        first, second, product = merging.pair_moments(
            jax.tree.map(np.asarray, TARGET), SIGMA, g, between.tokens, (covariance, tilt), rows
        )
        both = kernels[:, 0, :, 0] * kernels[:, 1, :, k]
        mass = np.exp(tilt.log_mass)
        for value, theory in (
            (both, mass),
            (both * label[:, 0], mass * first),
            (both * label[:, k], mass * second),
            (both * label[:, 0] * label[:, k], mass * product),
        ):
            error = value.std(-1) / len(x) ** 0.5
            assert (np.abs(value.mean(-1) - theory) < 5 * error).all()


def test_signal_and_ratio_bias_by_exact_sums():
    """The whole estimator, drawn: signal covariance and bias of n = 900 tokens, 5 MCSE.

    Two heads and queries: eight numbers and four; with the remainder of first order, of 1/n_eff.
    """
    g, rng, n, draws = np.full(3, 1 / 3), np.random.default_rng(2), 900, 8_000
    design = SequenceDesign(SIGMA, (0.7, 0.0))
    own = heads(g, "dot")
    theory = predict(Task(design, TARGET, 0.7), own, n, X)
    out = []
    for _ in range(8):
        x = chunks(design.autocorrelation(n), 3, n // 3, draws // 8, rng)
        kernels = np.exp(log_kernels(own, np.einsum("i,ncid->ncd", g, x), "dot"))
        total = kernels.sum(-1).transpose(2, 0, 1)
        out.append(np.einsum("qhnc,nc->nqh", kernels, waves(TARGET, x) @ g) / total)
    found = np.concatenate(out)
    truth = waves(TARGET, X)[:, None]
    error = found.std(0) / draws**0.5
    remainder = 0.05 * np.abs(theory["bias"].values - theory["limit"].values + truth)
    gap = np.abs(found.mean(0) - truth - theory["bias"].values)
    assert (gap < 5 * error + remainder).all()
    # Of the ratio's bias itself there is enough to be seen.
    assert (np.abs(theory["bias"] - theory["limit"] + truth).values > 2.5 * error).any()
    apart = found - found.mean(0)
    products = apart[:, :, :, None] * apart[:, :, None]
    signal = theory["signal_covariance"].values
    error = products.std(0) / draws**0.5
    scale = np.sqrt(np.einsum("qhh,qgg->qhg", signal, signal))
    assert (np.abs(products.mean(0) - signal) < 5 * error + 0.03 * scale).all()


def plain(kernel, roots=(0.0, 0.0), temperature=TEMPERATURE):
    frames = np.asarray(heads([1.0], "dot").frames)
    return Task(SequenceDesign(SIGMA, roots), TARGET, 0.7), Heads(frames, kernel, temperature**0.5)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_iid_keys_without_merging_are_first_order_theory(kernel):
    task, own = plain(kernel)
    merged = Heads(
        own.frames,
        FACTORIES["merged"](1, scores="dot" if kernel == "softmax" else "distance"),
        own.bandwidth,
    )
    iid = Task(GaussianDesign(SIGMA), TARGET, 0.7)
    expected = predict(iid, own, 500, X)
    for found in (
        predict(task, own, 500, X),
        predict(iid, merged, 500, X),
        predict(task, merged, 500, X),
    ):
        for name in ("bias", "signal_covariance", "noise_covariance", "n_eff", "n_third"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("roots", [(0.0, 0.0), (0.8, 0.0), (0.5, 0.5)])
def test_two_merged_keys_are_a_temperature(roots):
    """τ/v restores nothing but the limit, and noise at τv is inflated by r^{1/v − 1}."""
    task, own = plain("softmax", roots)
    rho = task.design.autocorrelation(2)
    pair = np.array([0.5, 0.5])
    v = merging.lag(pair, rho, 0).slots
    assert v == pytest.approx((1 + rho[1]) / 2, rel=1e-15)
    merged = predict(task, heads(pair, "dot"), 400, X)
    unmerged = predict(*plain("softmax", roots, TEMPERATURE / v), 400, X)
    np.testing.assert_allclose(merged["limit"], unmerged["limit"], rtol=1e-13)
    retuned = Heads(own.frames, FACTORIES["merged"](2), (TEMPERATURE * v) ** 0.5)
    again, before = predict(task, retuned, 400, X), predict(task, own, 400, X)
    np.testing.assert_allclose(again["limit"], before["limit"], rtol=1e-13)
    for h in (0, 1):
        overlap = 400 / before["n_eff"][:, h].values
        ratio = (again["noise_covariance"] / before["noise_covariance"])[:, h, h]
        np.testing.assert_allclose(ratio, overlap ** (1 / v - 1), rtol=1e-12)


def test_gaussian_heads_of_merged_iid_keys_never_sharpen():
    """b → 0: E m(x + √(1 − 1/s) Σ^½ Z), a wave shrinks by exp(−ω²(1 − 1/s)/2)."""
    target = TrigonometricSeries([1.0], [[1.4]], [0.0])
    task = Task(GaussianDesign(np.eye(1)), target, 0.5)
    query = np.array([[0.3]])
    for stride in (2, 4):
        rule = FACTORIES["merged"](stride, scores="distance")
        limit = predict(task, Heads(np.ones((1, 1, 1)), rule, 1e-4), 4000, query)["limit"].values
        shrunk = np.exp(-(1.4**2) * (1 - 1 / stride) / 2) * np.cos(1.4 * 0.3)
        assert float(limit[0, 0]) == pytest.approx(shrunk, rel=1e-6)


def test_gates_that_do_not_sum_to_one_scale_a_constant():
    constant = TARGETS["constant"](3, value=2.0)
    task = Task(SEQUENCES["smooth"](3, 0.5), constant, 0.5)
    theory = predict(task, heads([0.5] * 3, "dot"), 300, X)
    np.testing.assert_allclose(theory["limit"], 3.0, rtol=1e-13)
    np.testing.assert_allclose(theory["signal_covariance"], 0, atol=1e-12)


def test_what_theory_does_not_cover():
    task, own = plain("laplace")
    with refused(r"heads.kernel.*laplace"):
        predict(task, own, 30, X)
    with refused("multiple of the stride 3"):
        predict(task, heads([0.5] * 3, "dot"), 31, X)
    with refused("iid keys"):
        predict(*plain("gaussian"), 30, X, order="exact")
    cube = Task(DESIGNS["cube"](3), TARGET, 0.5)
    with refused("design"):
        predict(cube, heads([0.5] * 3, "dot"), 30, X)
