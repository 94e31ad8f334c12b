"""The GPU kernel, run by Pallas' interpreter, against float64 NumPy; and that it lowers to Triton.

On a GPU tests/gpu runs the compiled kernel.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import KERNELS, Kernel
from sims.simulation import Tuning, estimate
from sims.simulation.pallas import Tile, pallas_sums
from tests.problem.test_task import FORMULAS
from tests.simulation.reference import assert_close

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
HEADS, WIDTH, KEYS = 2, 2, 37
"""37 keys are no multiple of a tile of 16."""


def interpreted(*arguments):
    return pallas_sums(*arguments, tile=Tile(queries=2, keys=16), interpret=True)


def problem(name, dtype, far=False, seed=0):
    """Three queries (no multiple of a tile of 2), keys and two columns, in the given precision."""
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(3, WIDTH, HEADS)), rng.normal(size=(WIDTH, HEADS, KEYS))
    queries = queries + 40.0 * far
    columns = np.stack([rng.normal(size=KEYS), np.ones(KEYS)])
    bandwidth = 1.0 if KERNELS[name].scaled else np.array([[0.6], [0.9]])
    arrays = [jnp.asarray(x, dtype) for x in (queries, keys, columns)]
    return [*arrays, bandwidth if KERNELS[name].scaled else jnp.asarray(bandwidth, dtype)]


def check(name, dtype, arrays, sums=interpreted):
    """All sums against NumPy's of the same rounded inputs, under the same shift."""
    found = jax.jit(partial(sums, KERNELS[name]))(*arrays)
    q, k, c = (np.asarray(x, float) for x in arrays[:3])
    b = np.broadcast_to(np.asarray(arrays[3], float), (HEADS, 1))[:, 0]
    log = np.array(
        [
            [[FORMULAS[name](x[:, h], k[:, h, i], b[h]) for i in range(KEYS)] for h in range(HEADS)]
            for x in q
        ]
    )
    peak, top = np.asarray(found.peak), log.max(-1)
    assert np.array_equal(np.isfinite(peak), np.isfinite(top))
    shift = np.where(np.isfinite(top), top, 0.0)
    u = np.exp(log - shift[..., None])
    factor = np.exp(np.where(np.isfinite(top), peak, 0.0) - shift)
    gram = found.gram * factor[..., None] * factor[:, None, :]
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(gram, u @ u.swapaxes(1, 2), rtol=tolerance, atol=tolerance / 10)
    linear = np.asarray(found.linear) * factor[..., None]
    size = u @ np.abs(c).T
    assert (np.abs(linear - u @ c.T) <= tolerance * (size + 1e-300)).all()
    return log


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_sums(name, dtype):
    check(name, dtype, problem(name, dtype))


@pytest.mark.parametrize("name", ["gaussian", "softmax", "laplace"])
def test_far_queries(name):
    """Without a shift every gaussian kernel value here is 0 in float32."""
    log = check(name, "float32", problem(name, "float32", far=True))
    assert name != "gaussian" or not np.exp(log.astype(np.float32)).any()


def test_shift_is_raised_step_by_step():
    """Keys in rising order of their exponents, hundreds apart: the last ones decide."""
    queries, keys, *rest = problem("softmax", "float64")
    rising = jnp.broadcast_to(jnp.linspace(-300.0, 300.0, KEYS), keys.shape)
    check("softmax", "float64", [jnp.abs(queries), rising, *rest])
    check("softmax", "float64", [jnp.abs(queries), rising[..., ::-1], *rest])


@pytest.mark.parametrize("name", ["epanechnikov", "triweight"])
def test_no_key_in_reach(name):
    queries, *rest = problem(name, "float32")
    arrays = [queries.at[0].add(100.0), *rest]
    log = check(name, "float32", arrays)
    assert not np.isfinite(log[0]).any()
    assert np.isfinite(log[1:]).any()
    found = jax.jit(partial(interpreted, KERNELS[name]))(*arrays)
    assert not np.asarray(found.gram[0]).any()
    assert not np.asarray(found.linear[0]).any()


@pytest.mark.parametrize("at_once", [1, 3])
def test_engine_on_it(make, at_once):
    """The whole engine says the same on the kernel as on plain JAX."""
    task, heads, queries = make("gaussian")
    options = {"precision": "float64", "batches": 2, "replicates_per_batch": 3}
    call = partial(estimate, task, heads, 75, queries[:3], 0, **options)
    tuning = Tuning(kernel_sums=interpreted, replicates_at_once=at_once, key_block=30)
    ours = call(tuning=tuning)
    plain = {name: value.values for name, value in call().data_vars.items()}
    assert_close(ours, plain, 1e-11)


@pytest.mark.skipif(
    tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 11),
    reason="since JAX 0.11 only where a GPU is, and there tests/gpu runs it",
)
@pytest.mark.parametrize("name", KERNELS)
def test_lowers_to_triton(name):
    """Needs no GPU. Eight heads of width 4, float32, as in the benchmark."""
    shapes = [(256, 4, 8), (4, 8, 4096), (3, 4096)]
    if not KERNELS[name].scaled:
        shapes.append((8, 1))
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    traced = jax.jit(partial(pallas_sums, KERNELS[name])).trace(*arrays)
    assert "triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_a_kernel_on_whole_points_falls_back():
    whole = Kernel("whole", lambda q, k, b: -0.5 * jnp.sum(((q - k) / b) ** 2, axis=0))
    queries, keys, columns, _ = problem("gaussian", "float64")
    found = pallas_sums(whole, queries, keys, columns)
    ours = interpreted(KERNELS["gaussian"], queries, keys, columns)
    scale = np.exp(np.asarray(ours.peak - found.peak))[..., None]
    np.testing.assert_allclose(ours.linear * scale, found.linear, rtol=1e-12)
