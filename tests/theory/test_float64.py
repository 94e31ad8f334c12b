"""Constant parts in both orders of theory, and what float64 cannot hold."""

import jax
import numpy as np
import pytest

from sims.problem import (
    DESIGNS,
    FRAMES,
    TARGETS,
    Heads,
    Task,
    TrigonometricSeries,
)
from sims.theory import first_order_arrays, predict, rounding
from tests.by_hand import refused, with_wave

pytestmark = pytest.mark.theory

FRAME = FRAMES["equiangular"](2, 2, 1, angle=60)
QUERIES = np.array([[0.3, -0.8], [1.1, 0.4]])


def task(amplitude=0.0, frequency=0.0, noise=0.5):
    """Three waves and one more, of that frequency along the first axis."""
    series = with_wave(TARGETS["rbf"](2, seed=3, lengthscale=1.5, features=3), amplitude, frequency)
    return Task(DESIGNS["isotropic"](2), series, noise)


@pytest.mark.parametrize("order", ["first", "exact"])
@pytest.mark.parametrize("mean", [1e6, 1e12, -1e30])
def test_weights_of_sum_one_do_not_see_a_constant(order, mean):
    """Once a negative MSE at 1e12."""
    heads = Heads(FRAME, "gaussian", 0.7)
    plain, lifted = (predict(task(a), heads, 60, QUERIES, order) for a in (0.0, mean))
    for name in plain.data_vars:
        np.testing.assert_array_equal(lifted[name], plain[name], err_msg=name)
    assert lifted.attrs["rounding"] < 1e-10


def test_limits_are_those_of_the_whole_target():
    heads = Heads(FRAME, "gaussian", 0.7)
    plain, lifted = (first_order_arrays(task(a), heads, 60.0, QUERIES) for a in (0.0, 1e3))
    np.testing.assert_allclose(lifted.limit, plain.limit + 1e3, rtol=1e-15)
    np.testing.assert_allclose(lifted.bias, plain.bias, rtol=1e-12)
    by_mean = jax.grad(lambda a: first_order_arrays(task_of(a), heads, 60.0, QUERIES).limit.sum())
    assert float(by_mean(2.0)) == pytest.approx(4.0)  # two heads at two queries


def task_of(mean):
    whole = task()
    return jax.tree.map(
        lambda leaf: leaf.at[-1].set(mean) if leaf is whole.target.amplitude else leaf, whole
    )


def test_a_compact_kernel_sees_the_constant_where_nothing_is_in_reach():
    """E f̂ = c P(not empty) + E f̂ of the rest."""
    heads = Heads(FRAME, "epanechnikov", 0.2)
    plain, lifted = (predict(task(a), heads, 12, QUERIES, "exact") for a in (0.0, 50.0))
    empty = plain["empty_probability"]
    assert 0.05 < float(empty.mean()) < 0.9
    np.testing.assert_allclose(
        lifted["bias"], plain["bias"] - 50 * empty, atol=float(lifted["bias_error"].max()) + 1e-9
    )
    own = np.diagonal(lifted["signal_covariance"].values, axis1=1, axis2=2)
    np.testing.assert_allclose(own, 50**2 * empty * (1 - empty), rtol=0.1)


@pytest.mark.parametrize("bandwidth", [1e-7, 1e-8, 1e-12])
def test_a_bandwidth_too_narrow_for_the_closed_forms_is_named(bandwidth):
    """Once a LinAlgError below 1e-8, and an n_eff 40 % off at 1e-8, without a word."""
    line = rf"heads.bandwidth: got {bandwidth}; allowed: about 2\.1e-07 or more here"
    with refused(line):
        predict(task(), Heads(FRAME, "gaussian", bandwidth), 60, QUERIES)


@pytest.mark.parametrize("bandwidth", [3e-7, 1e-5, 1e-3])
def test_stated_rounding_of_narrow_kernels(bandwidth):
    """n_eff/b is constant to b² there: its change from b = 1e-3 on is rounding."""
    narrow, wide = (
        predict(task(), Heads(FRAME, "gaussian", b), 60, QUERIES) for b in (bandwidth, 1e-3)
    )
    ratio = narrow["n_eff"] / wide["n_eff"] * (1e-3 / bandwidth)
    assert float(abs(ratio - 1).max()) <= narrow.attrs["rounding"] + 1e-5
    # Unit frames and keys: 2ε/b², and what moved input shows beside it.
    assert narrow.attrs["rounding"] >= 2 * np.finfo(float).eps / bandwidth**2


def test_a_fast_wave_that_a_head_sees_whole_is_named():
    """Its residual variance, 0, would come out as ± 1e2: exp(50) times the wave."""
    heads = Heads([[[1.0], [0.0]]], "gaussian", 0.3)
    with refused(r"target\.frequency: got 'a wave of 1e\+09 radians"):
        predict(task(1.0, 1e9), heads, 60, QUERIES, "exact")


@pytest.mark.parametrize("order", ["first", "exact"])
@pytest.mark.parametrize(
    ("amplitude", "frequency"), [(1.0, 1e16), (1e14, 1e-8)], ids=["angles", "cancellation"]
)
def test_what_float64_cannot_hold_is_refused_in_one_line(order, amplitude, frequency):
    match = rf"(problem, theory of order {order} in float64|target.frequency): got .*; allowed: "
    with refused(match):
        predict(task(amplitude, frequency), Heads(FRAME, "gaussian", 0.7), 60, QUERIES, order)


def test_lost_bias_and_signal_under_noise_are_a_fault():
    """The MSE is the noise's, to all digits; what the keys make of it is rounding."""
    slow = TrigonometricSeries([1.0], [[1e-12, 0.0]], [0.0])
    noisy = Task(DESIGNS["isotropic"](2), slow, 0.5)
    data = predict(noisy, Heads(FRAME, "gaussian", 0.7), 60, QUERIES)
    assert "lost in rounding" in data.attrs["faults"]
    assert "faults" not in predict(task(), Heads(FRAME, "gaussian", 0.7), 60, QUERIES).attrs


def test_rounding_of_gram_matrices_is_that_of_the_worst_head():
    """``2ε‖V_hᵀΣV_h‖/b_h²`` of the head where it is largest, be another one the narrowest."""
    seen, bandwidth = np.array([[[1e-6]], [[1e4]]]), np.array([0.5, 2.0])
    worst = 2 * np.finfo(float).eps * 1e4 / 2.0**2
    assert rounding.gram_rounding(seen, bandwidth) == pytest.approx(worst)
    with refused("bandwidth"):
        rounding.gram_rounding(seen * 1e12, bandwidth)


def test_rounding_of_a_target_by_hand():
    """Of 3 cos(2 x_1 − 1) at x_1 = ½ the angle is known to 2ε and the wave to (2 + 2)·3ε = 12ε.

    At a squared error of 4 by keys that moves 2·2·12ε, and differences of squares of 3 another 9ε
    times the weight ½: 52.5ε of 4 by keys.
    """
    eps = np.finfo(float).eps
    wave, x = TrigonometricSeries([3.0], [[2.0, 0.0]], [-1.0]), np.array([[0.5, 7.0]])
    np.testing.assert_allclose(wave.rounding(x), 12 * eps)
    numbers = (np.array([[number]]) for number in (4.0, 1.0, 0.5))
    found = rounding.rounding_attributes("first", wave, x, *numbers)
    assert found == {"rounding": pytest.approx(52.5 * eps / 4, rel=1e-9, abs=0)}
