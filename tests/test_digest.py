"""What a result is of: functions by their code, arrays by their values."""

import functools
import importlib
import sysconfig

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.base.identity import digest, known_by_name
from sims.problem import DESIGNS, FRAMES, KERNELS, TARGETS, Heads, Kernel, Task, gaussian_queries
from sims.problem.kernels import gaussian_log, laplace_log
from sims.simulation import estimate
from sims.theory import noise_correlation_law, predict

FACTOR = 2.0


def helper(x):
    return FACTOR * x


def problem(kernel):
    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 1.0)
    heads = Heads(FRAMES["equiangular"](2, 1, 1, angle=0), kernel, 0.7)
    return task, heads, 32, gaussian_queries(2, 2, 0.3)


def test_functions_are_told_apart_by_code_constants_defaults_closures_and_what_they_call(
    monkeypatch,
):
    def scaled(c):
        return lambda x: c * x

    def default(c):
        def inner(x, factor=c):
            return factor * x

        return inner

    ones = [scaled(1.0), default(1.0), functools.partial(np.add, 1.0), lambda x: x + 1]
    others = [scaled(2.0), default(2.0), functools.partial(np.add, 2.0), lambda x: x + 2]
    for one, other in zip(ones, others, strict=True):
        assert digest(one) != digest(other)
    assert digest(scaled(1.0)) == digest(scaled(1.0))
    before = digest(lambda x: helper(x))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert digest(lambda x: helper(x)) != before


def test_arrays_are_told_apart_by_value_shape_and_type():
    values = [np.zeros(2), np.zeros((2, 1)), np.ones(2), np.zeros(2, np.float32)]
    assert len({digest(v) for v in values}) == len(values)
    assert digest(np.zeros(2)) == digest(np.zeros(2))


def test_installed_objects_are_known_by_where_they_stand():
    from scipy.stats import gamma, norm

    assert digest(norm) != digest(gamma)
    assert digest(lambda u: norm.ppf(u)) != digest(lambda u: gamma.ppf(u))
    assert digest(np.poly1d([1, 2])) != digest(np.poly1d([1, 3]))


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
    with pytest.raises(InputError, match="identity"):
        digest(memoryview(b""))


def test_another_function_under_a_known_name_is_another_kernel():
    """No closed form, no native code, no angle law: all of these belong to the object."""
    impostor = Kernel("gaussian", laplace_log)
    with pytest.raises(InputError, match="first order"):
        predict(*problem(impostor))
    with pytest.raises(InputError, match="kernel"):
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


def test_resuming_with_another_function_of_the_same_name_is_refused():
    def kernel(power):
        return Kernel("mine", lambda q, k, b: power * gaussian_log(q, k, b))

    options = {"replicates_per_batch": 4}
    done = estimate(*problem(kernel(1.0)), 0, batches=2, **options)
    with pytest.raises(InputError, match="resume"):
        estimate(*problem(kernel(2.0)), 0, batches=4, resume=done, **options)
    assert estimate(*problem(kernel(1.0)), 0, batches=4, resume=done, **options).sizes["batch"] == 4


def test_what_is_installed_is_known_by_name_behind_a_link(tmp_path):
    link = tmp_path / "environment"
    link.symlink_to(sysconfig.get_path("purelib"))
    assert known_by_name(str(link / "numpy" / "__init__.py"))
    assert not known_by_name(str(tmp_path / "own.py"))
