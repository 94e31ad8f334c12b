"""Constant parts, the rounding that is measured, and what float64 cannot hold."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import (
    TARGETS,
    EmpiricalDesign,
    GaussianDesign,
    Heads,
    Task,
)
from sims.simulation import engine, estimate, replicate
from sims.simulation.draws import draw_block
from sims.simulation.rounding import Shares, rounding
from sims.weights import WeightRule
from tests.by_hand import refused, with_wave
from tests.simulation.conftest import BOX, box
from tests.simulation.reference import assert_close, reference

SMALL_RUN = {"batches": 2, "replicates_per_batch": 6}


def half(scores):
    """Weights of sum 1/2."""
    return jnp.full_like(scores, 0.5 / len(scores))


def lifted_by(task, amplitude, frequency=0.0):
    """The task with one more wave in its target."""
    return Task(task.design, with_wave(task.target, amplitude, frequency), task.noise_sd)


@pytest.mark.parametrize(("mean", "precision"), [(-1e8, "float32"), (1e30, "float64")])
def test_weights_of_sum_one_do_not_see_a_constant(make, mean, precision):
    """Once: 0.000405 ± 0.000003 for 0.000325 at 1e6, 18.4 ± 0.6 for 0.0170 at 1e8, in float32."""
    task, heads, queries = make()
    plain, lifted = (
        estimate(lifted_by(task, a), heads, 60, queries, 3, precision=precision, **SMALL_RUN)
        for a in (0.0, mean)
    )
    for name in plain.data_vars:
        np.testing.assert_array_equal(lifted[name], plain[name], err_msg=name)
    assert lifted.attrs["precision"] == precision


@pytest.mark.parametrize("rule", ["box", "half"])
def test_the_constant_comes_back_where_weights_do_not_sum_to_one(make, rule):
    """f̂ = c Σw + f̂ of the rest: empty neighbourhoods, and a rule whose weights have another sum."""
    task, heads, queries = make()
    task = lifted_by(task, 300.0)
    if rule == "box":
        heads = Heads(heads.frames, BOX, 0.3)
        expected = reference(task, heads, 20, queries, 0, 2, 6)
        assert 0 < expected["empty_rate"].mean() < 1
    else:
        heads = Heads(heads.frames, WeightRule("half", box, half), 0.3)
        weigh = lambda q, k, b: np.full((len(q), 3, 20), 0.5 / 20)  # noqa: E731
        expected = reference(task, heads, 20, queries, 0, 2, 6, weigh)
    data = estimate(task, heads, 20, queries, 0, precision="float64", **SMALL_RUN)
    assert_close(data, expected, 1e-12)


def test_float64_takes_over_where_float32_does_not_resolve_angles(make):
    """Once 47.8 ± 0.02 for 1.05: angles of 1e8 are whole turns to float32."""
    task, heads, queries = make()
    task = Task(task.design, TARGETS["rbf"](4, lengthscale=1e-8), 0.5)
    asked = estimate(task, heads, 60, queries, 3, precision="float64", **SMALL_RUN)
    data = estimate(task, heads, 60, queries, 3, **SMALL_RUN)
    assert data.attrs["precision"] == "float64"
    assert "float64 in place of float32" in data.attrs["cautions"]
    assert data.attrs["rounding"] < 1e-5
    for name in data.data_vars:
        np.testing.assert_array_equal(data[name], asked[name])
    resumed = estimate(task, heads, 60, queries, 3, resume=data, **(SMALL_RUN | {"batches": 3}))
    np.testing.assert_array_equal(resumed["mse"][:2], data["mse"])


@pytest.mark.parametrize(
    ("amplitude", "frequency"), [(1e16, 1e-9), (1.0, 1e17), (1e100, 1e-9)], ids=str
)
def test_what_float64_cannot_hold_is_refused_in_one_line(make, amplitude, frequency):
    """Waves of 1e16 and 1e100 that are as slow as a constant, and angles of 1e17."""
    task, heads, queries = make()
    with refused(r"problem, simulated in float64: got .*; allowed: "):
        estimate(lifted_by(task, amplitude, frequency), heads, 60, queries, 3, **SMALL_RUN)


@pytest.mark.parametrize(("kernel", "slow"), [("gaussian", 0.0), ("laplace", 1e4)])
def test_the_measured_rounding_is_that_of_the_engine(make, monkeypatch, kernel, slow):
    """Both precisions on the same float32 draws: within the stated bound, and not far below it."""
    task, heads, queries = make(kernel, bandwidth=1.5, noise=0.0)
    task = lifted_by(task, slow, 1e-3)
    shares = rounding(task, heads, 200, np.asarray(queries), "float32")
    monkeypatch.setattr(
        engine, "choose_precision", lambda t, h, n, q, precision: (precision, shares)
    )

    def same(task, key, block, size, dtype):
        return tuple(part.astype(dtype) for part in draw_block(task, key, block, size, jnp.float32))

    monkeypatch.setattr(replicate, "draw_block", same)
    run = partial(estimate, task, heads, 200, queries, 5, batches=8, replicates_per_batch=16)
    single, double = run(precision="float32"), run(precision="float64")
    moved = abs(single["mean_head_mse"].mean() / double["mean_head_mse"].mean() - 1)
    assert moved <= 1.5 * shares.by_keys
    # Deviations themselves, which do not cancel over batches: Cauchy–Schwarz is not far off.
    change = np.sqrt(float(((single["bias"] - double["bias"]) ** 2).mean()))
    size = np.sqrt(float(double["mean_head_mse"].mean()))
    assert 2 * change / size >= shares.by_keys / 50


def test_rounding_beside_the_mcse_is_a_fault(make, monkeypatch):
    task, heads, queries = make()
    monkeypatch.setattr(
        engine,
        "choose_precision",
        lambda t, h, n, q, precision: (precision, Shares(1e-6, 1e-6, 0.5)),
    )
    faults = estimate(task, heads, 60, queries, 3, **SMALL_RUN).attrs["faults"]
    assert len(faults.splitlines()) == 1
    assert "rounding by up to 0.5 of noise variance" in faults


def test_nothing_seen_is_no_certainty(make):
    """Once an MCSE of 0 that ended a run as precise."""
    task, heads, queries = make(scale=0.0)
    heads = Heads(heads.frames, "epanechnikov", 1e-6)
    data = estimate(
        task,
        heads,
        20,
        queries,
        0,
        rel_mcse=0.1,
        max_batches=16,
        batches=8,
        replicates_per_batch=2,
    )
    assert float(data["mse_mcse"]) == 0
    assert data.attrs["stopped"] == "limit"
    assert data.attrs["batches"] == 16
    assert data.attrs["empty_rate"] == 1
    assert "no key was ever in reach at 15 of 15 (query, head)" in data.attrs["faults"]
    integrals = estimate(task, heads, 20, queries, 0, keep_queries=False, **SMALL_RUN)
    assert "no key was ever in reach at 3 of 3" in integrals.attrs["faults"]


def test_few_effective_keys_are_a_caution(make):
    task, heads, queries = make()
    usual = estimate(task, heads, 200, queries, 0, **SMALL_RUN).attrs
    assert "cautions" not in usual
    assert "faults" not in usual
    narrow = Heads(heads.frames, "gaussian", 1e-3)
    data = estimate(task, narrow, 200, queries, 0, **SMALL_RUN)
    assert data.attrs["least_n_eff"] == pytest.approx(1, abs=0.05)
    assert "a head attends to" in data.attrs["cautions"]
    rows = Task(EmpiricalDesign(np.eye(task.dimension)), task.target, 0.5)
    for bandwidth, said in ((1e3, True), (1.0, False), (1e-3, True)):
        data = estimate(
            rows, Heads(heads.frames, "gaussian", bandwidth), 9, queries, 0, **SMALL_RUN
        )
        assert ("bandwidths apart in head 0" in data.attrs.get("cautions", "")) == said
    # σ² E Σ w² by its definition.
    worst = np.diagonal(data["noise_covariance"].mean("batch").values, axis1=1, axis2=2).max()
    assert data.attrs["least_n_eff"] == pytest.approx(0.25 / worst)


def test_a_rare_empty_neighbourhood_is_no_certainty_either(make):
    """P(empty) about 1e-5: 12 replicates see none, and yet c² P is most of the MSE at c = 1e5."""
    task, heads, queries = make(scale=0.0)
    heads = Heads(heads.frames, "epanechnikov", 1.5)
    calm = estimate(task, heads, 30, queries, 0, **SMALL_RUN)
    assert calm.attrs["empty_rate"] == 0
    assert "faults" not in calm.attrs
    data = estimate(lifted_by(task, 1e5), heads, 30, queries, 0, **SMALL_RUN)
    assert "no empty neighbourhood was seen" in data.attrs["faults"]


@pytest.mark.parametrize(
    ("scale", "lengthscale", "at"),
    [(1e30, 1.0, 1.0), (1.0, 1e-30, 1.0), (1.0, 1e-18, 0.0), (1e17, 10.0, 1.0)],
)
def test_waves_without_a_digit_left_are_refused(scale, lengthscale, at):
    """Beyond 2⁵³ turns both evaluations see whole turns: once an MSE of 128 without a fault."""
    design = GaussianDesign(np.eye(2) * scale**2)
    task = Task(design, TARGETS["rbf"](2, lengthscale=lengthscale, features=8), 0.5)
    heads = Heads(np.eye(2)[None], "gaussian", min(scale, 1e12))
    with refused(r"rounding by \S+ of the MSE"):
        estimate(task, heads, 64, [[0.3 * at, -0.2 * at]], 0, **SMALL_RUN)
