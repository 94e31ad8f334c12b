"""Every way to compute the kernel sums against float64 NumPy, near and far, on ragged sizes."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import KERNELS
from sims.simulation.native import native_sums, usable
from sims.simulation.sums import streamed_sums

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def exact(kernel, queries, keys, columns):
    """Normalised sums ``Σ u c/Σ u`` and ``Σ u u/(Σ u Σ u)`` in float64, and log ΣK."""
    q, k = queries.transpose(1, 2, 0)[..., None], keys[:, :, None]
    log_k = -0.5 * ((q - k) ** 2).sum(0) if kernel == "gaussian" else (q * k).sum(0)
    peak = log_k.max(-1, keepdims=True)
    u = np.exp(log_k - peak).transpose(1, 0, 2)
    total = u.sum(-1, keepdims=True)
    w = u / total
    log_total = peak[..., 0].T + np.log(total[..., 0])
    return w @ columns.T, np.einsum("qhn,qgn->qhg", w, w), log_total, log_k.max(-1).T


def relative(found, linear, gram):
    """Largest error of the normalised sums, of each array's largest value."""
    total = found.linear[..., -1]
    pairs = found.gram / (total[..., None] * total[..., None, :])
    gaps = ((found.linear / total[..., None], linear), (pairs, gram))
    return max(np.abs(value - expected).max() / np.abs(expected).max() for value, expected in gaps)


@partial(jax.jit, static_argnums=(0, 1))
def _sums(sums, kernel, queries, keys, columns):
    return sums(KERNELS[kernel], queries, keys, columns, 1.0, len(queries))


def check(sums, kernel, precision, size, far):
    """Sums of random keys are those of float64 NumPy; far queries underflow unshifted."""
    count, heads, width, n = size
    rng = np.random.default_rng(n)
    keys = rng.normal(size=(width, heads, n)).astype(precision)
    columns = np.stack([*rng.normal(size=(2, n)), np.ones(n)]).astype(precision)
    queries = (far * rng.normal(size=(count, width, heads))).astype(precision)
    linear, gram, log_total, largest = exact(
        kernel, *(x.astype(float) for x in (queries, keys, columns))
    )
    if far > 1 and kernel == "gaussian" and n > 1:
        assert largest.min() < -104, "not a case of underflow"
    found = jax.device_get(_sums(sums, kernel, queries, keys, columns))
    assert all(x.dtype == jnp.float64 for x in found[:3])
    total, atol = found.linear[..., -1], 1e-4 if precision == "float32" else 1e-11
    np.testing.assert_allclose(
        found.peak + np.log(total), log_total, rtol=TOLERANCE[precision], atol=atol
    )
    assert relative(found, linear, gram) <= TOLERANCE[precision]


@pytest.mark.parametrize("size", [(5, 8, 4, 1000), (3, 3, 1, 17), (2, 1, 2, 1)])
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("sums", [streamed_sums, native_sums])
def test_against_plain_numpy(sums, kernel, precision, size, request):
    if sums is native_sums:
        request.getfixturevalue("compiler")
    for far in (1.0, 60.0):
        check(sums, kernel, precision, size, far)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("radius", "precision"), [(12.0, "float32"), (40.0, "float64")])
def test_native_keys_all_far_from_a_query_within_their_box(radius, precision):
    """On a circle about the queries: without a shift no product of two weights is a number."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, (2, 300))
    keys = radius * np.stack([np.cos(angle), np.sin(angle)]).astype(precision)
    columns = np.stack([rng.normal(size=300), np.ones(300)]).astype(precision)
    given = (0.1 * rng.normal(size=(3, 2, 2))).astype(precision), keys, columns
    linear, gram, _, largest = exact("gaussian", *(x.astype(float) for x in given))
    assert np.exp(2 * largest.astype(precision)).max() < np.finfo(precision).tiny
    found = native_sums(KERNELS["gaussian"], *map(jnp.asarray, given), 1.0, 1)
    assert relative(found, linear, gram) <= TOLERANCE[precision]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("precision", TOLERANCE)
def test_native_rescales_when_the_peak_moves(precision):
    """Keys that come nearer block by block: the shift must follow, and old sums with it.

    Also pairs ``Σ u_h (y − c_h) u_g (y − c_g)``, y the first column.
    """
    n = 2048
    keys = np.linspace(-300, 300, n).reshape(1, 1, n).repeat(2, 1).astype(precision)
    keys[:, 1] = keys[:, 1, ::-1] / 300  # the second head's peak comes first
    columns, centres = np.stack([np.cos(np.arange(n)), np.ones(n)]), np.array([[0.3, -0.7]])
    given = [x.astype(precision) for x in (np.ones((1, 1, 2)), keys, columns)]
    linear, gram, _, _ = exact("softmax", *(x.astype(float) for x in given))
    own = (jnp.asarray(x, precision) for x in (*given, centres))
    *arrays, at = own
    found = native_sums(KERNELS["softmax"], *arrays, 1.0, 1, at)
    assert relative(found, linear, gram) <= TOLERANCE[precision]
    u = np.exp((keys[0] - keys[0].max(1, keepdims=True)).astype(float))
    off = u * (columns[0] - centres[0, :, None])
    total = found.linear[0, :, -1]
    value = np.asarray(found.centred[0] / (total[:, None] * total))
    expected = off @ off.T / np.outer(u.sum(1), u.sum(1))
    error = np.abs(value - expected).max() / np.abs(expected).max()
    assert error <= 10 * TOLERANCE[precision]


def test_switched_off(monkeypatch):
    monkeypatch.setenv("SIMS_NATIVE", "0")
    assert not usable(KERNELS["gaussian"], "cpu", np.inf)


@pytest.mark.usefixtures("compiler")
def test_sums_load_the_library_themselves():
    """In a process that never asked whether they can be used."""
    program = (
        "import jax.numpy as jnp; from sims.problem import KERNELS; "
        "from sims.simulation.native import native_sums; one = jnp.ones((1, 1, 1)); "
        "print(native_sums(KERNELS['gaussian'], one, one, jnp.ones((2, 1)), 1.0, 1).gram)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[[[1.]]]\n", done.stderr
