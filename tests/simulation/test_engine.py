"""The engine's numbers: what they equal, and what they do not depend on."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import sims.simulation
from sims import terms
from sims.errors import InputError
from sims.montecarlo import replicate_key, root_key
from sims.montecarlo.compiled import TRACES
from sims.normals import normal
from sims.problem import DESIGNS, TARGETS, Heads, Kernel, Task
from sims.simulation import Tuning, cosine, draw, efficiency_gain, estimate
from sims.simulation.draws import draw_block, target_values
from sims.simulation.native import native_sums, usable
from sims.simulation.sums import streamed_sums
from tests.simulation.conftest import frames
from tests.simulation.reference import assert_close, reference

SMALL = {"replicates_per_batch": 6, "precision": "float64"}


def same(left, right, tolerance=1e-12):
    assert_close(left, {name: value.values for name, value in right.data_vars.items()}, tolerance)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_equals_plain_numpy(make, kernel):
    task, heads, queries = make(kernel, bandwidth=[0.5, 0.8, 1.1])
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


@pytest.mark.parametrize("sums", [None, streamed_sums])
def test_key_frames_apart_from_query_frames(make, sums):
    """By the default road (C++ where there is a compiler) and by XLA."""
    task, heads, queries = make()
    heads = Heads(heads.frames, "softmax", 0.9, frames(3, 4, 2, seed=8))
    result = estimate(
        task, heads, 37, queries, 11, batches=2, tuning=Tuning(kernel_sums=sums), **SMALL
    )
    assert_close(result, reference(task, heads, 37, queries, 11, 2, 6))


def test_streams_over_blocks_of_keys(make):
    """More keys than one draw block, with a remainder of every kind."""
    task, heads, queries = make(heads=2, count=2)
    result = estimate(
        task, heads, 9001, queries, 5, batches=2, replicates_per_batch=2, precision="float64",
        tuning=Tuning(key_block=1000),
    )  # fmt: skip
    assert_close(result, reference(task, heads, 9001, queries, 5, 2, 2))


def test_compact_kernel_with_no_key_in_reach(make):
    def log_value(query, key, bandwidth):
        inside = jnp.all(jnp.abs(query - key) < bandwidth, axis=0)
        return jnp.where(inside, 0.0, -jnp.inf)

    task, heads, queries = make()
    heads = Heads(heads.frames, Kernel("box", log_value), 0.3)
    result = estimate(task, heads, 20, queries, 0, batches=2, tuning=Tuning(key_block=7), **SMALL)
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
    "how",
    [
        {"devices": 1},
        {"devices": 2, "replicates_at_once": 3},
        {"query_group": 3, "query_block": 2, "key_block": 13},
        {"memory_budget": 200_000},
        {"kernel_sums": streamed_sums},
        {"kernel_sums": native_sums, "key_block": 17, "replicates_at_once": 2},
    ],
    ids=lambda how: ",".join(how),
)
def test_numbers_do_not_depend_on_how(base, how):
    problem, expected = base
    if how.get("kernel_sums") is native_sums and not usable(problem[1].kernel, "cpu", np.inf):
        pytest.skip("no C++ compiler")
    if "devices" in how:
        if len(jax.devices()) < how["devices"]:
            pytest.skip("not that many devices")
        how = how | {"devices": jax.devices()[: how["devices"]]}
    same(estimate(*problem, batches=5, **SMALL, tuning=Tuning(**how)), expected)


def test_resume_and_longer_runs(base):
    problem, expected = base
    short = estimate(*problem, batches=2, **SMALL)
    for name in ("bias", "raw_bias_product", "mse"):
        np.testing.assert_array_equal(short[name], expected[name][:2])
    resumed = estimate(*problem, batches=5, resume=short, **SMALL)
    xr.testing.assert_identical(resumed, expected)
    with pytest.raises(InputError, match="resume"):
        estimate(*problem[:4], 4, batches=5, resume=short, **SMALL)
    task, heads, n, queries, seed = problem
    for other in ((n + 1, queries), (n, queries + 0.1)):
        with pytest.raises(InputError, match="resume"):
            estimate(task, heads, *other, seed, batches=5, resume=short, **SMALL)


def test_integrals_only(base, tmp_path):
    problem, expected = base
    short = estimate(*problem, batches=2, keep_queries=False, **SMALL)
    result = estimate(*problem, batches=5, keep_queries=False, resume=short, **SMALL)
    assert "query" not in result.dims
    for name in ("integrated_signal_covariance", "integrated_raw_bias_product", "mse", "raw_mse"):
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-12)


def test_labels_do_not_change_the_rest(base):
    problem, expected = base
    result = estimate(*problem, batches=5, raw_labels=False, **SMALL)
    assert not any(str(name).startswith("raw_") for name in result)
    same(result, expected[list(result.data_vars)])
    with pytest.raises(InputError, match="raw_labels"):
        efficiency_gain(result)


def test_one_compilation_serves_all_values(base):
    """Bandwidth, noise, frames, target, covariance, queries, seed and weights are traced."""
    (_, _, n, queries, _), _ = base
    before = sum(TRACES.values())
    for i in range(3):
        other = Task(
            DESIGNS["decaying_spectrum"](4, power=i),
            TARGETS["matern"](4, seed=i, features=6),
            0.1 * i,
        )
        chosen = Heads(frames(3, 4, 2, seed=i), "gaussian", 0.5 + i)
        estimate(other, chosen, n, queries + i, i, batches=2 + i, weights=[0.2, 0.3, 0.5], **SMALL)
    assert sum(TRACES.values()) == before


def test_float32_agrees_in_law(base):
    """Other draws, same terms: 5 joint MCSE on each of ten scalars (false alarm about 1e-5)."""
    (task, heads, n, queries, seed), _ = base
    run = {"batches": 40, "replicates_per_batch": 6}
    double = estimate(task, heads, n, queries, seed, precision="float64", **run)
    single = estimate(task, heads, n, queries, seed, precision="float32", **run)
    for name in terms.SCALARS:
        joint = np.hypot(single[f"{name}_mcse"], double[f"{name}_mcse"])
        assert abs(single[name].mean() - double[name].mean()) <= 5 * joint, name


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


def test_seeds_and_keys(make):
    task, _, _ = make()
    a, _ = draw(task, replicate_key(root_key(7), 0, 0), 3)
    b, _ = draw(task, replicate_key(root_key(jax.random.key(7)), 0, 0), 3)
    np.testing.assert_array_equal(a, b)


def test_attributes(base):
    attrs = base[1].attrs
    expected = {"seed": 3, "n": 60, "replicates": 30, "batches": 5, "stopped": "limit"}
    assert expected.items() <= attrs.items()
    assert attrs["device_count"] == len(jax.devices())
    assert attrs["precision"] == "float64"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"replicates_per_batch": 1}, "replicates_per_batch"),
        ({"batches": 1}, "batches"),
        ({"precision": "bfloat16"}, "precision"),
        ({"rel_mcse": 0.0}, "rel_mcse"),
        ({"rel_mcse": float("nan")}, "rel_mcse"),
        ({"tuning": Tuning(memory_budget=1000)}, "memory_budget"),
        ({"tuning": Tuning(devices=[])}, "devices"),
        ({"stream": (-1,)}, "stream"),
        ({"weights": [1.0, 1.0, 1.0]}, "weights"),
    ],
    ids=str,
)
def test_bad_input(base, change, field):
    with pytest.raises(InputError, match=field):
        estimate(*base[0], **({"batches": 2, **SMALL} | change))


def test_bad_tuning():
    with pytest.raises(InputError, match="key_block"):
        Tuning(key_block=0)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True, jax.random.key(0, impl="rbg")], ids=str)
def test_bad_seed(base, seed):
    with pytest.raises(InputError, match="seed"):
        estimate(*base[0][:4], seed)


def test_never_imports_theory():
    for path in Path(sims.simulation.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            allowed = (
                "sims.checks",
                "sims.errors",
                "sims.identity",
                "sims.montecarlo",
                "sims.normals",
                "sims.problem",
                "sims.runtime",
                "sims.simulation",
                "sims.terms",
                "sims.weights",
            )
            for name in names:
                assert not name.startswith("sims.") or name.startswith(allowed), (path, name)


def test_labels_in_single_precision_are_draws_with_whole_tails():
    """The second key of a block's two; :func:`sims.normals.normal` has a test of its own."""
    task, key = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2, value=0.0), 1.0), root_key(3)
    _, noise = draw_block(task, key, 2, 30, jnp.float32)
    second = jax.random.split(jax.random.fold_in(key, 2))[1]
    np.testing.assert_array_equal(noise, normal(second, (30,), "float32"))


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float64", 1e-13)])
def test_values_of_a_series_are_sums_of_its_cosines(precision, tolerance):
    """With phases of both signs; the amplitudes are of order 1."""
    target = TARGETS["matern"](3, nu=1.5, features=8)
    x = np.random.default_rng(2).normal(size=(30, 3)).astype(precision)
    waves, phase, amplitude = map(np.asarray, (target.frequency, target.phase, target.amplitude))
    expected = np.cos(np.asarray(x, float) @ waves.T + phase) @ amplitude
    np.testing.assert_allclose(target_values(target, jnp.asarray(x)), expected, atol=tolerance)
