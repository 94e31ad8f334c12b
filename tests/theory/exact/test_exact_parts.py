"""The parts of the exact theory: node rules, responses, sizes that are compiled."""

from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from exact_problems import flat
from scipy.special import gamma

from sims.problem import Heads, Task, TrigonometricSeries
from sims.problem.designs import isotropic
from sims.problem.frames import equiangular
from sims.problem.kernels import KERNELS
from sims.theory.exact import exact_terms, execution, rules
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.items import Identity, PairItem, head_arrays, program_kernel
from sims.theory.exact.laplace import Head, Setting
from sims.theory.exact.quadrature import ball_rule, sphere_area, sphere_rule
from sims.theory.exact.truncation import pilot

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_sphere_rule_integrates_polynomials(dimension):
    """Moments of the uniform law on the sphere: E z² = 1/k, E z⁴ = 3/(k(k + 2))."""
    nodes, weights = sphere_rule(dimension, 12)
    np.testing.assert_allclose(weights.sum(), sphere_area(dimension))
    np.testing.assert_allclose(np.linalg.norm(nodes, axis=1), 1.0)
    for power, moment in ((2, 1 / dimension), (4, 3 / (dimension * (dimension + 2)))):
        average = weights @ nodes**power / weights.sum()
        np.testing.assert_allclose(average, moment, rtol=1e-12)


@pytest.mark.parametrize("grading", [1, 4])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_ball_rule_integrates_a_radial_function(dimension, grading):
    """∫_{‖y‖<1} (1 − ‖y‖²)^{3/2} dy = π^{k/2} Γ(5/2)/Γ(k/2 + 5/2): a boundary layer."""
    radius, _, weight = ball_rule(dimension, 40, 8, grading)
    value = np.pi ** (dimension / 2) * gamma(2.5) / gamma(dimension / 2 + 2.5)
    np.testing.assert_allclose(weight @ (1 - radius**2) ** 1.5, value, rtol=1e-6)


def setting(kernel, size=64, step=0.4):
    """For one term of a target, and one key."""
    return Setting(kernel, size, jnp.asarray(step), jnp.asarray(1.0), jnp.zeros(1))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_responses_keep_their_relative_accuracy(kernel):
    """From X = e^{−46} to far above 1, at −log K up to 700 and at K = 0."""
    kernel, step, count = KERNELS[kernel], 0.4, 192
    fields = {name: jnp.zeros(()) for name in Head._fields} | {"low": jnp.asarray(-30.0)}
    log_k = np.array([0.0, -3.7, -16.0, -700.0, -np.inf])
    hit, once, x = setting(kernel, count, step).responses(Head(**fields), jnp.asarray(log_k))
    points = slice(None, -1) if kernel.support else slice(None)
    with np.errstate(over="ignore"):
        direct = np.exp(-30.0 + step * np.arange(count)[:, None] + log_k)[points]
    np.testing.assert_allclose(hit[points], -np.expm1(-direct), rtol=1e-13, atol=1e-290)
    inside = direct < 300
    np.testing.assert_allclose(x[points][inside], direct[inside], rtol=1e-12, atol=1e-290)
    expected = (direct * np.exp(-direct))[inside]
    np.testing.assert_allclose(once[points][inside], expected, rtol=1e-10, atol=1e-290)
    assert np.asarray(once[points])[~inside].max() < 1e-100
    if kernel.support:  # the last point is u = ∞
        np.testing.assert_array_equal(hit[-1], [1, 1, 1, 1, 0])
        np.testing.assert_array_equal(once[-1], 0)


def test_few_sizes_are_compiled():
    assert [execution.bucket(count) for count in (1, 64, 65, 97, 129, 2048)] == [
        64, 64, 96, 128, 192, 2048,
    ]  # fmt: skip
    assert execution.merged([60] * 70 + [70]) == [64] * 70 + [96]
    # Few items take the next larger size, but not one that is many times too large.
    assert execution.merged([60, 70, 80, 2000]) == [96, 96, 96, 2048]
    assert execution.merged([60, 90, 120]) == [128] * 3
    small, large = (rules.PRODUCT.nodes((2, 2), level, 64, 1) for level in (0, 2))
    assert [np.shape(a) for r in small for a in r] == [np.shape(a) for r in large for a in r]
    assert int(small[0][2]) < int(large[0][2])


def problem(width, angles):
    rng = np.random.default_rng(3)
    target = TrigonometricSeries(rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=3))
    heads = Heads(equiangular(4, 2, width, angle=angles), "gaussian", 0.7)
    return Task(isotropic(4), target, 0.5), heads, 20, 0.5 * rng.normal(size=(3, 4))


def test_no_number_depends_on_how_many_threads_there_are(monkeypatch):
    results = []
    for count in (1, 3):
        with ThreadPoolExecutor(count) as pool:
            monkeypatch.setattr(execution, "host_devices", lambda n=count: n)
            monkeypatch.setattr(execution, "_workers", lambda p=pool: p)
            results.append(flat(exact_terms(*problem(1, 60))))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("width", [1, 2])
def test_a_padded_head_has_its_own_kernel(kernel, width):
    """The kernel that both share, on coordinates that padding adds, against the kernel itself."""
    task, heads, n, queries = problem(width, 60)
    heads = Heads(heads.frames, kernel, 0.7)
    view = GaussianLaw(task.design, task.target).project(heads, 0, queries[0])
    own = KERNELS[kernel]
    head = head_arrays(own, view, pilot(own, view, n, 1e-9), 2)
    nodes = np.random.default_rng(0).normal(size=(5, view.rank))
    padded = np.pad(nodes, ((0, 0), (0, 2 - view.rank)))
    shared = setting(program_kernel(own)).log_kernel(head, jnp.asarray(padded))
    keys = view.map @ nodes.T
    direct = own.log_value(view.query[:, None], keys, jnp.asarray(view.bandwidth))
    np.testing.assert_allclose(shared, direct, rtol=1e-12)
    assert head.centre.shape == (2,)


def test_copies_have_the_same_frames_of_queries_and_of_keys():
    task, heads, _, queries = problem(1, 60)
    one, other = np.asarray(heads.frames)
    law = GaussianLaw(task.design, task.target)
    for frames, key_frames, copies in (
        ([one, one], [other, other], True),
        ([one, one], [one, other], False),
        ([one, other], [one, one], False),
    ):
        identity = Identity(law, Heads(frames, "gaussian", 0.7, key_frames), queries)
        assert (identity.single(0, 0) == identity.single(0, 1)) == copies


def test_directions_that_both_heads_share_need_one_point(monkeypatch):
    """One shared direction and one orthogonal one, with and without the points that add nothing."""
    arguments = problem(2, [0, 90])
    few = exact_terms(*arguments)
    monkeypatch.setattr(PairItem, "frozen", 0)
    many = exact_terms(*arguments)
    assert "hermite" in few.attrs["method"]
    np.testing.assert_allclose(flat(few), flat(many), rtol=1e-7)
    points, _, used = rules.HERMITE.nodes((2, 2), 0, 64, 1, 1)[1]
    assert used < 20
    np.testing.assert_array_equal(points[:, 0], 0)


@pytest.mark.parametrize(
    ("kernel", "ranks", "correlation", "concentric", "expected"),
    [
        ("gaussian", (1, 1), [0.5], False, ["product", "sobol"]),
        ("gaussian", (1, 1), [0.999], False, ["hermite", "sobol"]),
        ("gaussian", (2, 2), [0.5, 0.3], False, ["product", "sobol"]),
        ("gaussian", (2, 2), [0.95, 0.95], False, ["hermite", "sobol"]),
        ("gaussian", (3, 3), [0.95, 0.5, 0.1], False, ["sobol"]),
        ("epanechnikov", (1, 1), [0.999], False, ["product", "sobol"]),
        ("epanechnikov", (1, 1), [0.9999], False, ["sobol"]),
        ("epanechnikov", (1, 1), [0.9999], True, ["hermite"]),
    ],
)
def test_narrow_conditional_laws_get_the_rules_that_resolve_them(
    kernel, ranks, correlation, concentric, expected
):
    """Of width √(1 − ρ²): 0.87 at ρ = 0.5, 0.045 at 0.999, 0.014 at 0.9999, 0.31 at 0.95."""
    found = rules.rules_for_pair(KERNELS[kernel], ranks, np.array(correlation), concentric)
    assert [rule.name for rule in found] == expected
