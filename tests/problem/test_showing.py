"""What objects look like where they are printed: one line, with the numbers that matter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import (
    DESIGNS,
    FRAMES,
    KERNELS,
    SEQUENCES,
    TARGETS,
    CustomDesign,
    Heads,
    Kernel,
    Task,
    TrigonometricSeries,
)
from sims.study.specification import Problem
from sims.weights import FACTORIES, WeightRule


def drawn(key, n, dtype):
    rows = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(n))
    return jax.vmap(lambda row: jax.random.normal(row, (2,), dtype))(rows)


WAVES = TrigonometricSeries([1.0, 0.5], [[3.0, 4.0], [0.0, 1.0]], [0.0, 1.0])
FRAMES_OF_TWO = FRAMES["equiangular"](4, 2, 2, angle=90)
SHOWN = [
    (DESIGNS["isotropic"](4, scale=2.0), "GaussianDesign(4 dimensions, variance 4)"),
    (DESIGNS["gaussian"](np.diag([1.0, 3.0])), "GaussianDesign(2 dimensions, variances 1 to 3)"),
    (DESIGNS["sphere"](4), "SphereDesign(4 dimensions, radius 2)"),
    (DESIGNS["cube"](3, half_width=0.5), "CubeDesign(3 dimensions, half width 0.5)"),
    (
        DESIGNS["mixture"]([0.25, 0.75], np.zeros((2, 3)), np.stack([np.eye(3)] * 2)),
        "MixtureDesign(2 components in 3 dimensions, weights 0.25 to 0.75)",
    ),
    (CustomDesign(2, drawn), "CustomDesign(2 dimensions, drawn by drawn, no log-density)"),
    (
        SEQUENCES["autoregressive"](2, 0.9),
        "SequenceDesign(2 dimensions, variance 1, roots 0 to 0.9)",
    ),
    (WAVES, "TrigonometricSeries(2 waves in 2 dimensions, amplitudes 0.5 to 1, "
        "frequencies 1 to 5)"),
    (KERNELS["gaussian"], "Kernel('gaussian')"),
    (Kernel("box", KERNELS["biweight"].log_value, support=2.0), "Kernel('box', support 2)"),
    (FACTORIES["entmax"](nu=2.0), "WeightRule('entmax (dot)', Entmax(nu=2.0))"),
    (FACTORIES["top_k"](3), "WeightRule('top_k (dot)', TopK(k=3, weighting='uniform'))"),
    (WeightRule("all", np.add, jax.nn.softmax), "WeightRule('all', softmax)"),
    (
        Heads(FRAMES_OF_TWO, "gaussian", [0.5, 0.7], key_frames=-FRAMES_OF_TWO),
        "Heads(2 of width 2 in 4 dimensions, Kernel('gaussian'), bandwidth 0.5 to 0.7, "
        "keys in frames of their own)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("shown", "text"), SHOWN, ids=lambda v: type(v).__name__)
def test_every_part_is_one_line(shown, text):
    assert repr(shown) == text


def test_a_problem_shows_its_parts_and_no_array():
    task = Task(DESIGNS["isotropic"](2), WAVES, 0.5)
    assert repr(task) == f"Task(GaussianDesign(2 dimensions, variance 1), {WAVES!r}, noise_sd 0.5)"
    heads = Heads(FRAMES["haar"](2, 1, 1), "softmax", 0.7)
    problem = Problem(task, heads, 1024, np.zeros((3, 2)))
    assert repr(problem) == f"Problem({task!r}, {heads!r}, n 1024, 3 queries)"
    long = FACTORIES["merged"](40)
    assert len(repr(long)) < 130


def test_what_is_traced_can_be_shown():
    seen = []

    @jax.jit
    def traced(bandwidth):
        heads = Heads(FRAMES_OF_TWO, "gaussian", bandwidth)
        seen.append(repr(heads))
        return heads.bandwidth.sum()

    traced(0.7)
    assert seen[0].endswith("bandwidth traced)")
    assert "matern" not in repr(TARGETS["matern"](3))
