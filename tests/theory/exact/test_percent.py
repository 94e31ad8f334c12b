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
from tests.theory.exact.exact_problems import brute_force, flat

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
    "decay": (GaussianDesign(np.diag([2.0, 1.0, 0.7, 0.3])), None),
    "student": (DESIGNS["student"](D, 5.0), student),
    "sphere": (DESIGNS["sphere"](D), sphere),
    "mixture": (MixtureDesign(SHARES, CENTRES, SPREADS), mixture),
    "rows": (
        EmpiricalDesign(ROWS),
        lambda rng, shape: ROWS[rng.integers(300, size=shape)],
    ),
}


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
    task = Task(design, TARGET, 1.0)
    theory = predict(task, heads, n, QUERIES, order="exact", rtol=0.02)
    assert theory["converged"].all()
    assert theory["mse_error"] < 0.02 * theory["mse"]
    errors = theory[[f"{name}_error" for name in NAMES]]
    errors = errors.rename({f"{name}_error": name for name in NAMES})
    for q, x in enumerate(QUERIES):
        mean, mcse = brute_force(task, heads, n, x, 1, 150, draw=draw)
        gap = (flat(theory, q) - mean) / np.hypot(mcse, flat(errors, q) / 2.36)
        assert np.abs(gap).max() < 4.5


@pytest.mark.parametrize("n", [30, 10**6])
def test_finer_rungs(n):
    """Grids, and sums over rows: within twice the stated error, which is small."""
    heads = Heads(FRAMES, "gaussian", 0.5, KEY_FRAMES)
    for law in ("decay", "rows"):
        task = Task(LAWS[law][0], TARGET, 1.0)
        fine, rough = (
            predict(task, heads, n, QUERIES, order="exact", rtol=rtol) for rtol in (1e-3, 0.01)
        )
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
    unequal = {"order": "exact", "weights": [0.3, 0.7]}
    found = terms(task, heads, 40, queries, **unequal)
    expected = predict(task, heads, 40, QUERIES, rtol=0.1, **unequal)
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
