"""The engine's numbers: what they equal, and what they do not depend on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo import replicate_key, root_key
from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.simulation import cosine, draw, ensemble, estimate
from sims.simulation.plan import Plan
from tests.by_hand import refused
from tests.simulation.conftest import BOX, frames
from tests.simulation.reference import assert_close, reference

SMALL = {"replicates_per_batch": 6, "precision": "float64"}


def same(left, right, tolerance=1e-12):
    assert_close(left, {name: value.values for name, value in right.data_vars.items()}, tolerance)


def test_equals_plain_numpy(make):
    task, heads, queries = make("gaussian", bandwidth=[0.5, 0.8, 1.1])
    result = estimate(task, heads, 37, queries, 11, batches=2, **SMALL)
    assert_close(result, reference(task, heads, 37, queries, 11, 2, 6))


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_cosine_of_turns(dtype, error):
    """Against NumPy in float64, where it folds too; whole turns more change nothing."""
    turns = np.concatenate([np.linspace(-1.5, 1.5, 2401), [7.25, -60.5, 1000.125]]).astype(dtype)
    found = np.asarray(cosine(jnp.asarray(turns)))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.cos(2 * np.pi * turns.astype(float)), atol=error + 4e-13)
    quarters = cosine(jnp.asarray([0.0, 0.25, 0.5], dtype))
    np.testing.assert_allclose(quarters, [1.0, 0.0, -1.0], atol=error)


@pytest.mark.parametrize("native", ["1", "0"])
def test_key_frames_apart_from_query_frames(make, monkeypatch, native):
    """By the default path (C++ where there is a compiler) and by XLA."""
    monkeypatch.setenv("SIMS_NATIVE", native)
    task, heads, queries = make()
    heads = Heads(heads.frames, "softmax", 0.9, frames(3, 4, 2, seed=8))
    result = estimate(task, heads, 37, queries, 11, batches=2, **SMALL)
    assert_close(result, reference(task, heads, 37, queries, 11, 2, 6))


def cut(monkeypatch, *sizes):
    """The work is cut so: queries of a group, key and query block, replicates at once."""
    monkeypatch.setattr(ensemble, "make_plan", lambda *_, **__: Plan(*sizes, 0))


def test_streams_over_blocks_of_keys(make, monkeypatch):
    """More keys than one draw block, with a remainder of every kind."""
    cut(monkeypatch, 2, 1000, 2, 1)
    task, heads, queries = make(heads=2, count=2)
    result = estimate(
        task, heads, 9001, queries, 5, batches=2, replicates_per_batch=2, precision="float64"
    )
    assert_close(result, reference(task, heads, 9001, queries, 5, 2, 2))


def test_compact_kernel_with_no_key_in_reach(make, monkeypatch):
    cut(monkeypatch, 5, 7, 5, 1)

    task, heads, queries = make()
    heads = Heads(heads.frames, BOX, 0.3)
    result = estimate(task, heads, 20, queries, 0, batches=2, **SMALL)
    assert 0 < float(result["empty_rate"].mean()) < 1
    assert all(np.all(np.isfinite(value)) for value in result.data_vars.values())
    assert_close(result, reference(task, heads, 20, queries, 0, 2, 6))


@pytest.fixture(scope="module")
def base(request):
    """One problem, run plainly: five batches over all devices."""
    task = Task(DESIGNS["isotropic"](4), TARGETS["rbf"](4, lengthscale=2.0, features=6), 0.5)
    heads = Heads(frames(3, 4, 2), "gaussian", 0.7)
    queries = 0.5 * jax.random.normal(jax.random.key(9), (5, 4), jnp.float64)
    problem = (task, heads, 60, queries, 3)
    return problem, estimate(*problem, batches=5, **SMALL)


@pytest.mark.parametrize(
    ("native", "devices", "sizes"),
    [
        ("1", 1, None),
        ("1", 2, (5, 60, 5, 3)),
        ("1", 2, (5, 17, 5, 2)),
        ("0", 2, None),
        ("0", 2, (4, 13, 2, 1)),
    ],
)
def test_numbers_do_not_depend_on_how(base, monkeypatch, native, devices, sizes):
    """Sums in C++ and in XLA, devices, and blocks of queries, keys and replicates."""
    problem, expected = base
    monkeypatch.setenv("SIMS_NATIVE", native)
    if sizes is not None:
        cut(monkeypatch, *sizes)
    same(estimate(*problem, batches=5, **SMALL, devices=jax.devices()[:devices]), expected)


def test_resume_and_longer_runs(base):
    problem, expected = base
    short = estimate(*problem, batches=2, **SMALL)
    for name in ("bias", "mse"):
        np.testing.assert_array_equal(short[name], expected[name][:2])
    resumed = estimate(*problem, batches=5, resume=short, **SMALL)
    xr.testing.assert_identical(resumed, expected)
    with refused("resume"):
        estimate(*problem[:4], 4, batches=5, resume=short, **SMALL)
    task, heads, n, queries, seed = problem
    for other in ((n + 1, queries), (n, queries + 0.1)):
        with refused("resume"):
            estimate(task, heads, *other, seed, batches=5, resume=short, **SMALL)


def test_integrals_only(base, tmp_path):
    problem, expected = base
    short = estimate(*problem, batches=2, keep_queries=False, **SMALL)
    result = estimate(*problem, batches=5, keep_queries=False, resume=short, **SMALL)
    assert "query" not in result.dims
    for name in ("integrated_signal_covariance", "mse"):
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-12)


def test_one_compilation_serves_all_values(base, caplog):
    """Bandwidth, noise, frames, target, covariance, queries, seed and weights are traced."""
    (_, _, n, queries, _), _ = base
    weights = [0.2, 0.3, 0.5]
    with jax.log_compiles():
        for i in range(3):
            other = Task(
                DESIGNS["decaying_spectrum"](4, power=i),
                TARGETS["matern"](4, seed=i, features=6),
                0.1 * i,
            )
            chosen = Heads(frames(3, 4, 2, seed=i), "gaussian", 0.5 + i)
            estimate(other, chosen, n, queries + i, i, batches=2 + i, weights=weights, **SMALL)
    assert "Compiling jit(run_batches)" not in caplog.text  # see tests/montecarlo/test_compiled.py


def test_draws_extend(make):
    task, _, _ = make()
    key = replicate_key(root_key(0), 1, 2)
    for dtype in (jnp.float32, jnp.float64):
        short, long = draw(task, key, 40, dtype), draw(task, key, 5000, dtype)
        for a, b in zip(short, long, strict=True):
            # Equal but for rounding in the product with the square root of the covariance.
            np.testing.assert_allclose(a, b[:40], rtol=0, atol=20 * float(jnp.finfo(dtype).eps))
    x, noise = long
    assert len(np.unique(np.asarray(x))) == x.size
    assert abs(np.mean(noise)) < 6 / np.sqrt(5000)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"precision": "bfloat16"}, "precision"),
        ({"memory_budget": 1000}, "memory_budget"),
        ({"weights": [1.0, 1.0, 1.0]}, "weights"),
    ],
    ids=str,
)
def test_bad_input(base, change, field):
    with refused(field):
        estimate(*base[0], **({"batches": 2, **SMALL} | change))


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True, jax.random.key(0, impl="rbg")], ids=str)
def test_bad_seed(base, seed):
    with refused("seed"):
        estimate(*base[0][:4], seed)
