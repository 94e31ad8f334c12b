"""What a result is of: functions by their code, arrays by their values."""

import functools
import importlib
import operator
import sys
import sysconfig
from collections import deque
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma, norm

from sims.base.identity import digest, rounded_digest
from sims.base.members import known_by_name
from sims.problem import DESIGNS, FRAMES, KERNELS, TARGETS, Heads, Kernel, Task, gaussian_queries
from sims.problem.kernels import gaussian_log, laplace_log
from sims.simulation import estimate
from sims.theory import noise_correlation_law, predict
from tests.by_hand import refused

FACTOR = 2.0


def helper(x):
    return FACTOR * x


def problem(kernel):
    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 1.0)
    heads = Heads(FRAMES["equiangular"](2, 1, 1, angle=0), kernel, 0.7)
    return task, heads, 32, gaussian_queries(2, 2, 0.3)


def scaled(c):
    return lambda x: c * x


def default(c):
    def inner(x, factor=c):
        return factor * x

    return inner


SHARED = np.arange(3.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (scaled(1.0), scaled(2.0)),
        (default(1.0), default(2.0)),
        (functools.partial(np.add, 1.0), functools.partial(np.add, 2.0)),
        (lambda x: x + 1, lambda x: x + 2),
        (np.zeros(2), np.ones(2)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.ma.array(SHARED, mask=[0, 0, 1]), np.ma.array(SHARED)),
        (pd.Series(SHARED, index=[0, 1, 2]), pd.Series(SHARED, index=[1, 2, 3])),
        (np.array([helper, 1], object), np.array([helper, 2], object)),
        ({"a": 1}.get, {"a": 2}.get),
        (operator.itemgetter(0), operator.itemgetter(1)),
        (deque([1]), deque([2])),
        (norm, gamma),
        (lambda u: norm.ppf(u), lambda u: gamma.ppf(u)),
        (np.poly1d([1, 2]), np.poly1d([1, 3])),
    ],
)
def test_whatever_differs_is_told_apart(one, other):
    """Functions by code, defaults and closures; arrays by values, shape and type; objects."""
    assert digest(one) != digest(other)
    assert digest(scaled(1.0), np.zeros(2)) == digest(scaled(1.0), np.zeros(2))


class Base:
    scale = 1.0


class Scaled(Base):
    offset = np.zeros(1)
    parts = ("a",)

    def __call__(self, x):
        return self.scale * jnp.tanh(x[..., 0]) + self.offset[0]


class Table(dict):
    default = 0.0


def by_global(x):
    return FACTOR * jnp.tanh(x[..., 0])


compiled = jax.jit(by_global)
by_attribute = Scaled()


@pytest.mark.parametrize(
    ("value", "owner", "name", "changed"),
    [
        (by_attribute, Scaled, "parts", ("b",)),
        (by_attribute, Scaled, "offset", np.ones(1)),
        (by_attribute, Base, "scale", 2.0),
        (by_attribute.__call__, Base, "scale", 2.0),
        (by_attribute, by_attribute, "further", 1.0),
        (Table(a=1.0), Table, "default", 1.0),
        (jax.vmap(by_global), sys.modules[__name__], "FACTOR", 3.0),
        (compiled, sys.modules[__name__], "FACTOR", 3.0),
        (by_global, by_global, "note", "more"),
        (lambda x: helper(x), sys.modules[__name__], "FACTOR", 3.0),
    ],
)
def test_whatever_a_result_may_depend_on_is_part_of_the_identity(
    monkeypatch, value, owner, name, changed
):
    before = digest(value)
    monkeypatch.setattr(owner, name, changed, raising=False)
    assert digest(value) != before


ROW = Heads(np.array([[[1.0]]]), "gaussian", 0.5)
POWERED = Kernel("powered", lambda q, k, b: FACTOR * gaussian_log(q, k, b))
POWERED_ROW = Heads(np.array([[[1.0]]]), POWERED, 0.5)


@pytest.mark.parametrize(
    ("make", "heads", "owner", "name"),
    [
        (lambda: lambda x: compiled(x), ROW, sys.modules[__name__], "FACTOR"),
        (lambda: by_attribute, ROW, Base, "scale"),
        (
            lambda: lambda x: x[..., 0],
            POWERED_ROW,
            sys.modules[__name__],
            "FACTOR",
        ),
    ],
)
def test_no_compiled_program_outlives_what_it_was_traced_from(
    monkeypatch, make, heads, owner, name
):
    def numbers():
        task = Task(DESIGNS["isotropic"](1), make(), 0.5)
        options = {"batches": 2, "replicates_per_batch": 4, "precision": "float64"}
        simulated = estimate(task, heads, 16, [[0.3]], 0, **options)
        predicted = predict(task, heads, 16, [[0.3]], order="exact")
        return [float(simulated["mse"].mean()), float(predicted["mse"])]

    numbers()
    monkeypatch.setattr(owner, name, 7.0)
    kept = numbers()
    jax.clear_caches()
    assert kept == numbers()


def test_own_classes_are_known_by_their_code_wherever_it_stands(tmp_path, monkeypatch):
    source = "class Rule:\n    def __call__(self, x):\n        return {} * x\n"

    def rule(name, factor):
        path = tmp_path / f"{name}.py"
        path.write_text(source.format(factor))
        monkeypatch.syspath_prepend(str(tmp_path))
        return importlib.import_module(name).Rule

    first, moved, other = rule("first", 2), rule("moved", 2), rule("other", 3)
    assert digest(first()) == digest(moved())
    assert digest(first()) != digest(other())


def test_what_cannot_be_known_is_refused():
    with refused("identity"):
        digest(memoryview(b""))


def test_another_function_under_a_known_name_is_another_kernel():
    """No closed form, no native code, no angle law: all of these belong to the object."""
    impostor = Kernel("gaussian", laplace_log)
    with refused("first order"):
        predict(*problem(impostor))
    with refused("kernel"):
        noise_correlation_law([0.5], 0.7, 0.5, impostor)
    options = {"batches": 2, "replicates_per_batch": 4, "precision": "float64"}
    found, laplace, gaussian = (
        estimate(*problem(kernel), 0, **options)["noise_covariance"].values
        for kernel in (impostor, KERNELS["laplace"], KERNELS["gaussian"])
    )
    np.testing.assert_allclose(found, laplace, rtol=1e-9)
    assert np.abs(found / gaussian - 1).max() > 0.01
    exact = {"order": "exact", "rtol": 1e-6}
    values = [
        float(predict(*problem(k), **exact)["noise_variance"])
        for k in (impostor, KERNELS["laplace"])
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_what_is_installed_is_known_by_name_behind_a_link(tmp_path):
    link = tmp_path / "environment"
    link.symlink_to(sysconfig.get_path("purelib"))
    assert known_by_name(str(link / "numpy" / "__init__.py"))
    assert not known_by_name(str(tmp_path / "own.py"))


def class_of_problems(factor):
    """A class of problems, as a file has it before and after an edit of a method."""

    @dataclass(frozen=True)
    class Problem:
        width: float
        frames: np.ndarray

        def area(self):
            return factor * self.width

    return Problem


def test_an_edit_beside_a_problem_leaves_its_digest():
    """Whoever edits a figure or a sampler between the two methods has the same problem."""
    before, after = class_of_problems(1)(0.5, np.eye(2)), class_of_problems(2)(0.5, np.eye(2))
    assert digest(before) != digest(after)
    assert rounded_digest(before) == rounded_digest(after)
    assert rounded_digest(before) != rounded_digest(class_of_problems(1)(0.6, np.eye(2)))
