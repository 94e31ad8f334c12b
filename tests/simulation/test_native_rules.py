"""Weight rules in C++: every number of plain JAX, at once and in the engine."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import Heads
from sims.problem.kernels import gaussian_log
from sims.simulation import estimate
from sims.simulation.native import native_rule_sums, usable
from sims.weights import FACTORIES, WeightRule
from sims.weights.entmax import Entmax
from sims.weights.sparse import TopK
from tests.simulation.conftest import frames
from tests.simulation.reference import entmax

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
"""Of the largest sum of its kind. In float32 scores of some 20 have lost 1e-6 to rounding. Below
ν = 1 a weight near the threshold is a power ν of its distance, infinitely steep there: the
tolerance is raised to that power.
"""
SIZES = [(5, 8, 4, 1024), (3, 3, 1, 17), (2, 2, 7, 1)]
RULES = {
    "sparsemax": ("sparsemax", {}),
    **{f"entmax {nu:g}": ("entmax", {"nu": nu}) for nu in (0.3, 1.7, 2.0, 8.0, 1e3)},
    "relu_gap": ("relu_gap", {"gain": 0.7}),
    "relu": ("relu", {"gain": 0.7, "offset": 0.3}),
    "relu, narrow": ("relu", {"gain": 0.7, "offset": -0.9}),
    "relu, uniform": ("relu", {"gain": 0.7, "offset": -0.9, "empty": "uniform"}),
}

pytestmark = pytest.mark.skipif(
    not usable(FACTORIES["sparsemax"](), "cpu", np.inf), reason="no C++ compiler"
)


def weights(kind, options, z):
    """The rule's weights in plain NumPy."""
    if kind in ("sparsemax", "entmax"):
        return entmax(z, options.get("nu", 1.0))
    top = z.max(-1, keepdims=True)
    if kind == "relu_gap":
        parts = np.maximum((z - top) / options["gain"] + 1, 0)
    else:
        parts = np.maximum(z / options["gain"] + options["offset"], 0)
    total = parts.sum(-1, keepdims=True)
    nothing = 1 / z.shape[-1] if options.get("empty") == "uniform" else 0.0
    return np.where(total > 0, parts / np.where(total > 0, total, 1), nothing)


def draw_arrays(size, bandwidth, precision):
    """Queries, keys, columns and the bandwidth of every head."""
    count, heads, width, n = size
    rng = np.random.default_rng(0)
    shapes = [(count, width, heads), (width, heads, n), (2, n)]
    arrays = [rng.normal(size=shape) for shape in shapes]
    return [x.astype(precision) for x in (*arrays, bandwidth * np.linspace(1, 1.5, heads))]


def sums_by_numpy(kind, options, score, queries, keys, columns, bandwidth):
    if score == "dot":
        z = np.einsum("qph,phn->qhn", queries, keys)
    else:
        z = -((queries[..., None] - keys) ** 2).sum(1) / 2
    w = weights(kind, options, z / bandwidth[:, None] ** 2)
    return w @ np.vstack([columns, np.ones(keys.shape[-1])]).T, np.einsum("qhn,qgn->qhg", w, w)


@partial(jax.jit, static_argnums=0)
def native_sums_of(rule, sets):
    """Sums of several sets of arrays, in one program."""
    return [native_rule_sums(rule, *arrays) for arrays in sets]


def compared(kind, options, score, sizes, bandwidth, precision):
    """Largest error of the C++ sums, of the largest sum of its kind, beside float64 NumPy."""
    sets = [draw_arrays(size, bandwidth, precision) for size in sizes]
    errors = []
    sums = native_sums_of(FACTORIES[kind](**options, scores=score), sets)
    for arrays, found in zip(sets, sums, strict=True):
        expected = sums_by_numpy(kind, options, score, *(x.astype(float) for x in arrays))
        for value, exact in zip(found, expected, strict=True):
            assert value.dtype == jnp.float64
            errors.append(np.abs(value - exact).max() / max(np.abs(exact).max(), 1e-300))
    return max(errors)


@pytest.mark.parametrize("score", ["distance", "dot"])
@pytest.mark.parametrize("name", RULES)
def test_every_sum_is_that_of_plain_numpy(name, score):
    """Few keys attended to and all, of whole and broken blocks, in both precisions."""
    kind, options = RULES[name]
    for precision, tolerance in TOLERANCE.items():
        tolerance = tolerance ** min(options.get("nu", 1.0), 1.0)
        for bandwidth in (0.25, 1.0, 20.0):
            error = compared(kind, options, score, SIZES, bandwidth, precision)
            assert error <= tolerance, (precision, bandwidth)


@pytest.mark.parametrize("bandwidth", [0.1, 30.0])
def test_many_keys(bandwidth):
    """More than stay in the precision of the work; all of them are attended to at 30."""
    for precision, tolerance in TOLERANCE.items():
        sizes = [(1, 6, 2, 9001)]
        error = compared("entmax", {"nu": 2.0}, "distance", sizes, bandwidth, precision)
        assert error <= tolerance


@pytest.mark.parametrize("score", ["distance", "dot"])
def test_the_engine_gives_the_same_numbers(make, monkeypatch, score):
    """Draws included, with frames of the keys' own; the result says which it was."""
    task, heads, queries = make()
    rule = FACTORIES["entmax"](alpha=1.5, scores=score)
    heads = Heads(heads.frames, rule, [0.5, 0.8, 1.1], frames(3, 4, 2, seed=8))
    run = {"batches": 2, "replicates_per_batch": 4, "precision": "float64"}
    native = estimate(task, heads, 300, queries, 11, **run)
    monkeypatch.setenv("SIMS_NATIVE", "0")
    plain = estimate(task, heads, 300, queries, 11, **run)
    assert (native.attrs["kernel_sums"], plain.attrs["kernel_sums"]) == ("C++", "XLA")
    assert native.attrs["empty_rate"] == plain.attrs["empty_rate"] == 0
    for name in ("bias", "signal_covariance", "noise_covariance"):
        scale = float(np.abs(plain[name]).max())
        np.testing.assert_allclose(native[name], plain[name], rtol=0, atol=1e-11 * scale)


def test_what_is_left_to_plain_jax():
    """Scores or weights of one's own, an accelerator, and no compiler."""
    assert usable(FACTORIES["relu"](), "cpu", np.inf)
    assert not usable(FACTORIES["relu"](), "gpu", np.inf)
    assert not usable(FACTORIES["top_k"](3), "cpu", np.inf)
    assert not usable(WeightRule("mine", gaussian_log, Entmax(1.0)), "cpu", np.inf)
    assert not usable(WeightRule("mine", FACTORIES["relu"]().scores, TopK(2, "softmax")), "cpu")


def test_without_a_compiler(make, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "false")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task, heads, queries = make()
    heads = Heads(heads.frames, "sparsemax", 0.7)
    assert not usable(heads.rule, "cpu", np.inf)
    result = estimate(task, heads, 20, queries, 0, batches=2, replicates_per_batch=2)
    assert result.attrs["kernel_sums"] == "XLA"
