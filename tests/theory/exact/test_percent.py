"""Exact theory at one per cent: against brute force and finer rungs; terms as JAX arrays."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.base.errors import InputError
from sims.problem import DESIGNS, EmpiricalDesign, GaussianDesign, Heads, Task, TrigonometricSeries
from sims.problem.design_laws import MixtureDesign
from sims.theory import predict, terms

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.theory
D, HEADS, WIDTH = 4, 2, 2
RNG = np.random.default_rng(0)
FRAMES = np.linalg.qr(RNG.normal(size=(HEADS, D, WIDTH)))[0]
KEY_FRAMES = np.linalg.qr(FRAMES + 0.5 * RNG.normal(size=FRAMES.shape))[0]
TARGET = TrigonometricSeries(RNG.normal(size=4), RNG.normal(size=(4, D)), RNG.uniform(0, 6, 4))
QUERIES = RNG.normal(size=(2, D))
ROWS, CENTRES = RNG.normal(size=(300, D)), RNG.normal(size=(3, D))
SHARES = np.array([0.2, 0.3, 0.5])
DECAY = np.array([2.0, 1.0, 0.7, 0.3])
NAMES = ("bias", "signal_covariance", "noise_covariance")


def student(rng, shape, freedom=5):
    chi = rng.chisquare(freedom, size=(*shape, 1)) / freedom
    return rng.normal(size=(*shape, D)) / np.sqrt(chi)


def sphere(rng, shape):
    z = rng.normal(size=(*shape, D))
    return 2 * z / np.linalg.norm(z, axis=-1, keepdims=True)


def mixture(rng, shape):
    centre = rng.choice(3, p=SHARES, size=shape)
    return CENTRES[centre] + (0.2 + 0.3 * centre[..., None]) * rng.normal(size=(*shape, D))


SPREADS = np.stack([(0.2 + 0.3 * c) ** 2 * np.eye(D) for c in range(3)])
LAWS = {
    "decay": (
        GaussianDesign(np.diag(DECAY)),
        lambda rng, shape: rng.normal(size=(*shape, D)) * DECAY**0.5,
    ),
    "student": (DESIGNS["student"](D, 5.0), student),
    "sphere": (DESIGNS["sphere"](D), sphere),
    "mixture": (MixtureDesign(SHARES, CENTRES, SPREADS), mixture),
    "rows": (
        EmpiricalDesign(ROWS),
        lambda rng, shape: ROWS[rng.integers(300, size=shape)],
    ),
}
LOGS = {
    "gaussian": lambda q, k, b: -0.5 * ((k - q) ** 2).sum(-1) / b**2,
    "softmax": lambda q, k, b: k @ q / b**2,
    "laplace": lambda q, k, b: -np.linalg.norm(k - q, axis=-1) / b,
}


def by_brute_force(heads, draw, n, replicates=3000, batches=20):
    """Bias, signal and noise covariance (σ = 1) at both queries, (batches, …)."""
    rng = np.random.default_rng(1)
    value = lambda x: np.cos(x @ TARGET.frequency.T + TARGET.phase) @ TARGET.amplitude  # noqa: E731
    batch = []
    for _ in range(batches):
        keys = draw(rng, (replicates // batches, n))
        rows = []
        for x in QUERIES:
            weights = []
            for u, v, b in zip(heads.frames, heads.of_keys, heads.bandwidth, strict=True):
                log = LOGS[heads.kernel.name](x @ np.asarray(u), keys @ np.asarray(v), float(b))
                weight = np.exp(log - log.max(1, keepdims=True))
                weights.append(weight / weight.sum(1, keepdims=True))
            weights = np.stack(weights)
            outputs = (weights * value(keys)).sum(-1) - value(x)
            noise = np.einsum("hrn,grn->hg", weights, weights) / len(keys)
            rows.append([outputs.mean(1), np.cov(outputs), noise])
        batch.append([np.stack(part) for part in zip(*rows, strict=True)])
    return [np.stack(part) for part in zip(*batch, strict=True)]


@pytest.mark.parametrize(
    ("law", "kernel", "bandwidth", "n"),
    [
        ("decay", "gaussian", 0.4, 40),
        ("decay", "laplace", 0.3, 40),
        ("decay", "softmax", 0.2, 40),  # almost the one key of largest score
        ("student", "softmax", 0.7, 200),  # E K = ∞
        ("student", "gaussian", 0.01, 40),  # almost the nearest key
        ("sphere", "gaussian", 0.3, 40),
        ("mixture", "softmax", 0.6, 40),
        ("rows", "gaussian", 0.15, 40),
    ],
)
def test_brute_force(law, kernel, bandwidth, n):
    design, draw = LAWS[law]
    heads = Heads(FRAMES, kernel, [bandwidth, 1.3 * bandwidth], KEY_FRAMES)
    theory = predict(Task(design, TARGET, 1.0), heads, n, QUERIES, order="exact", rtol=0.02)
    assert theory["converged"].all()
    assert theory["mse_error"] < 0.02 * theory["mse"]
    for name, values in zip(NAMES, by_brute_force(heads, draw, n), strict=True):
        mcse = values.std(0, ddof=1) / len(values) ** 0.5
        gap = theory[name].values - values.mean(0)
        assert np.abs(gap / np.hypot(mcse, theory[f"{name}_error"].values / 2.36)).max() < 4.5, name


@pytest.mark.parametrize("n", [30, 10**6])
def test_finer_rungs(n):
    """Grids, and sums over rows: within twice the stated error, which is small."""
    heads = Heads(FRAMES, "gaussian", 0.5, KEY_FRAMES)
    for law in ("decay", "rows"):
        task = Task(LAWS[law][0], TARGET, 1.0)
        fine = predict(task, heads, n, QUERIES, order="exact", rtol=1e-3)
        rough = predict(task, heads, n, QUERIES, order="exact", rtol=0.01)
        for name in (*NAMES, "squared_bias", "ensemble_variance", "mse"):
            gap = np.abs(rough[name].values - fine[name].values)
            allowed = 2 * rough[f"{name}_error"].values + fine[f"{name}_error"].values
            assert (gap <= allowed + 1e-3 * np.abs(fine[name].values).max()).all(), (law, name)


def test_a_billion_keys_keep_their_digits():
    task = Task(LAWS["decay"][0], TARGET, 1.0)
    heads = Heads(FRAMES, "softmax", 1.2)
    first = predict(task, heads, 10**9, QUERIES)
    exact = predict(task, heads, 10**9, QUERIES, order="exact", rtol=0.02)
    for name in ("squared_bias", "signal_variance", "noise_variance", "covariance"):
        np.testing.assert_allclose(exact[name], first[name], rtol=0.05, err_msg=name)


def test_terms_are_those_of_predict_and_have_derivatives():
    task = Task(LAWS["rows"][0], TARGET, 1.0)
    queries = jnp.asarray(QUERIES)

    def error(bandwidth):
        return terms(task, Heads(FRAMES, "gaussian", bandwidth), 40, queries, order="exact")["mse"]

    bandwidth = jnp.array([0.5, 0.6])
    value, gradient = jax.jit(jax.value_and_grad(error))(bandwidth)
    shifts = 1e-3 * jnp.concatenate([jnp.zeros((1, 2)), jnp.eye(2), -jnp.eye(2)])
    values = jax.jit(jax.vmap(error))(bandwidth + shifts)
    heads = Heads(FRAMES, "gaussian", bandwidth)
    expected = predict(task, heads, 40, QUERIES, order="exact", rtol=0.1)
    np.testing.assert_allclose([value, values[0]], float(expected["mse"]), rtol=1e-9)
    np.testing.assert_allclose(gradient, (values[1:3] - values[3:]) / 2e-3, rtol=2e-3)
    found = terms(task, heads, 40, queries, order="exact", weights=[0.3, 0.7])
    expected = predict(task, heads, 40, QUERIES, order="exact", rtol=0.1, weights=[0.3, 0.7])
    assert {name for name in expected if not name.endswith("_error")} - found.keys() == {
        "converged",
        "empty_probability",
    }
    for name in found.keys() - {"defect"}:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-8, atol=1e-12)
    normal = Task(LAWS["decay"][0], TARGET, 1.0)
    first = terms(normal, heads, 40, queries)
    np.testing.assert_allclose(first["mse"], predict(normal, heads, 40, QUERIES)["mse"], rtol=1e-9)
    with jax.enable_x64(False), pytest.raises(InputError, match="float64"):
        terms(normal, heads, 40, queries)


def test_the_example_finds_the_best_heads(capsys):
    example = runpy.run_path(str(ROOT / "docs/examples/best_heads.py"))
    example["main"]()
    *grid, last = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    below, best, above = grid  # the one in the middle by gradient
    assert best < min(below, above)
    assert last < 0.9 * best
