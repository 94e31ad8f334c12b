"""The engine on a GPU: every number against that of a CPU."""

import os
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

from sims.problem import KERNELS
from sims.simulation import estimate
from sims.simulation.native import cuda
from tests.simulation.conftest import problem

pytestmark = pytest.mark.gpu
ROUNDING = {"float64": 1e-11, "float32": 1e-4}
"""Largest difference of the two devices, relative to the largest entry of each array."""


@pytest.fixture(autouse=True)
def gpu():
    if jax.devices()[0].platform != "gpu":
        pytest.skip("no GPU here")


def engine(kernel, precision):
    """All terms of a small problem, by name."""
    task, heads, queries = problem(kernel, bandwidth=0.9)
    run = {"batches": 3, "replicates_per_batch": 8, "precision": precision}
    found = estimate(task, heads, 300, queries, 0, **run)
    return {name: value.values for name, value in found.data_vars.items()}


def on_a_cpu(path):
    """What a CPU computes, into a file: called in a process of its own."""
    for name in KERNELS:
        for precision in ROUNDING:
            np.savez(f"{path}/{name}-{precision}.npz", **engine(name, precision))


@pytest.fixture(scope="module")
def of_a_cpu(tmp_path_factory):
    path = tmp_path_factory.mktemp("cpu")
    program = f"from tests.gpu.test_engine_on_gpu import on_a_cpu; on_a_cpu({str(path)!r})"
    cpu = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=cpu)
    return path


def check(ours, name, precision, of_a_cpu):
    """Terms are those of a CPU, to rounding."""
    with np.load(of_a_cpu / f"{name}-{precision}.npz") as theirs:
        assert set(theirs.files) == set(ours)
        for key in theirs.files:
            gap = np.abs(ours[key] - theirs[key]).max() / (np.abs(theirs[key]).max() or 1.0)
            assert gap <= ROUNDING[precision], (key, gap)


@pytest.mark.parametrize("precision", ROUNDING)
@pytest.mark.parametrize("name", KERNELS)
def test_numbers_are_those_of_a_cpu(name, precision, of_a_cpu):
    """The same seed gives the same draws on both devices, and so the same terms to rounding."""
    check(engine(name, precision), name, precision, of_a_cpu)


@pytest.mark.parametrize("precision", ROUNDING)
@pytest.mark.parametrize("name", ["gaussian", "softmax"])
def test_numbers_of_cuda_sums_are_those_of_a_cpu(name, precision, of_a_cpu, monkeypatch):
    """Compiled however little there is to do; they are another library than plain XLA."""
    if not (shutil.which("nvcc") or cuda.has_nvrtc()):
        pytest.skip("neither nvcc nor NVRTC")
    plain = engine(name, precision)
    monkeypatch.setattr(cuda, "LEAST_WORK", 0)
    ours = engine(name, precision)
    assert any(not np.array_equal(ours[key], plain[key], equal_nan=True) for key in ours)
    check(ours, name, precision, of_a_cpu)


@pytest.mark.parametrize("precision", ROUNDING)
def test_bits_repeat(precision):
    one, other = (engine("softmax", precision) for _ in range(2))
    assert all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)
