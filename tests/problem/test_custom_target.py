"""Targets of one's own: what a function has to be, and what is known of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from sims.problem import (
    DESIGNS,
    FRAMES,
    TARGETS,
    CustomTarget,
    EmpiricalDesign,
    Heads,
    Task,
    gaussian_queries,
)
from sims.simulation import estimate
from tests.by_hand import refused

DESIGN = DESIGNS["isotropic"](3)


def ridge(x):
    return jnp.abs(x[..., 0]) + x[..., 1] * x[..., 2]


class Network:
    """A callable with arrays, which has no hash of its own."""

    __hash__ = None

    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x):
        return jnp.tanh(x @ self.weights).sum(-1)


def test_any_function_is_a_target():
    """Whatever the leading shape and precision; also an object that cannot be hashed."""
    for function in (ridge, Network(np.ones((3, 2)))):
        target = Task(DESIGN, function, 0.5).target
        assert isinstance(target, CustomTarget)
        assert target.dimension == 3
        x = np.random.default_rng(0).normal(size=(2, 5, 3))
        np.testing.assert_allclose(target(jnp.asarray(x)), function(x), rtol=1e-12)
        assert target(jnp.asarray(x, jnp.float32)).dtype == jnp.float32
        wide = target.padded(2)(jnp.pad(x, ((0, 0), (0, 0), (0, 2)), constant_values=9.0))
        np.testing.assert_allclose(wide, function(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.sin(x)[:, 0], "JAX cannot trace it"),
        (
            KNeighborsRegressor(1).fit([[0, 0]], [0]).predict,
            "trace it.* is for sims.montecarlo.HostRepl",
        ),
        (lambda x: x[..., 0] if x[0, 0] > 0 else x[..., 1], "JAX cannot trace it"),
        (lambda x: jnp.sin(x[0]), r"shape \(3,\) for \(6,\)"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: "label", "Value 'label' with dtype"),
        (lambda x: jnp.log(x[..., 0]), "NaN or infinity at"),
        (lambda x: x[..., 0] - x[..., 0].mean(), "depends on other rows"),
        (lambda x: x[..., 0] > 0, "bool values"),
        (3.0, "a function"),
    ],
)
def test_what_is_no_target_is_refused_in_one_line(function, words):
    with refused(f"^target: got .*{words}"):
        Task(DESIGN, function, 0.5)


def test_a_target_need_be_finite_only_where_keys_are():
    rows = np.random.default_rng(0).exponential(size=(20, 3)) + 0.1
    Task(EmpiricalDesign(rows), lambda x: jnp.log(x[..., 0]), 0.5)


def test_rounding_of_a_function_is_that_of_its_argument():
    """A wave of 10⁹ radians: the change of an angle by one unit; no more than ten times that."""
    fast = CustomTarget(1, lambda x: jnp.sin(1e9 * x[..., 0]))
    x = np.linspace(0.5, 1.5, 40)[:, None]
    unit = 1e9 * np.finfo(float).eps * x[:, 0] * np.abs(np.cos(1e9 * x[:, 0]))
    bound = fast.rounding(x)
    assert (bound >= unit).all()
    assert np.median(bound / (unit + 1e-16)) < 10
    slow = CustomTarget(1, lambda x: 3.0 + 0 * x[..., 0])
    assert (slow.rounding(x) <= 2 * np.finfo(float).eps * 3.0).all()
    assert slow.largest(x) == 3.0


def test_no_signs_that_are_drawn_hide_the_worst_ones():
    """Three summands of one unit each, exact, about 0: signs that disagree move it by one of them.

    At about a third of 400 points no draw of four has three signs that agree.
    """
    target = CustomTarget(3, lambda x: (x[..., 0] - 1) + (x[..., 1] - 1) + (x[..., 2] - 1))
    assert (target.rounding(np.ones((400, 3))) >= 3 * np.finfo(float).eps).all()


def test_simulation_takes_a_function_as_it_takes_the_series():
    """The same draws, so the same numbers to rounding, noise and raw labels included."""
    series = TARGETS["rbf"](3, seed=2, features=8)
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=50), "gaussian", 0.8)
    both = [
        estimate(
            Task(DESIGN, target, 0.5),
            heads,
            40,
            gaussian_queries(3, 3, 0.5),
            1,
            batches=3,
            replicates_per_batch=4,
            precision="float64",
        )
        for target in (series, lambda x: series(x))
    ]
    for name in ("mse", "signal_variance", "noise_variance"):
        np.testing.assert_allclose(both[0][name], both[1][name], rtol=1e-9)
    assert float(both[0]["signal_variance"].mean()) > 0


def test_a_task_of_a_function_can_be_made_inside_a_traced_one():
    def value(scale):
        task = Task(DESIGNS["isotropic"](2), lambda x: x[..., 0], scale)
        return task.target(jnp.ones((1, 2)))[0] * task.noise_sd

    assert float(jax.jit(value)(2.0)) == 2.0
