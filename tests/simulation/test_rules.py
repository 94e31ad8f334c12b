"""Weight rules that see all keys at once, against plain NumPy on the same draws."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from optax.projections import projection_simplex

from sims.problem import Heads
from sims.problem.kernels import gaussian_log
from sims.simulation import ensemble, estimate
from sims.simulation.plan import Plan
from sims.theory import predict
from sims.weights import FACTORIES, WeightRule
from tests.by_hand import refusals, refused
from tests.simulation.conftest import frames
from tests.simulation.reference import assert_close, entmax, reference

SPARSEMAX = WeightRule("sparsemax", gaussian_log, projection_simplex)
SMALL = {"replicates_per_batch": 6, "precision": "float64"}


def distance(q, k, b):
    return -((q - k) ** 2).sum(-1) / (2 * b**2)


CASES = {
    "entmax": (
        FACTORIES["entmax"](alpha=1.5, scores="distance"),
        lambda q, k, b: entmax(distance(q, k, b), 2),
    ),
    "sparsemax": (SPARSEMAX, lambda q, k, b: entmax(distance(q, k, b), 1)),
    # Negative weights, whose sum is not 1.
    "signed": (
        WeightRule("signed", gaussian_log, lambda z: (z - jnp.mean(z)) / 10),
        lambda q, k, b: (lambda z: (z - z.mean(-1, keepdims=True)) / 10)(distance(q, k, b)),
    ),
    # Most queries have no key in reach.
    "near": (
        WeightRule("near", gaussian_log, lambda z: jnp.where(z > -0.02, 0.3, 0.0)),
        lambda q, k, b: np.where(distance(q, k, b) > -0.02, 0.3, 0.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_plain_numpy(make, name):
    rule, weigh = CASES[name]
    task, heads, queries = make()
    heads = Heads(heads.frames, rule, [0.5, 0.8, 1.1], frames(3, 4, 2, seed=8))
    result = estimate(task, heads, 37, queries, 11, batches=2, **SMALL)
    assert_close(result, reference(task, heads, 37, queries, 11, 2, 6, weigh), 1e-11)
    empty = float(result["empty_rate"].mean())
    assert 0 < empty < 1 if name == "near" else empty == 0


def test_more_keys_than_a_block_of_draws(make):
    task, heads, queries = make(heads=2, count=2)
    heads = Heads(heads.frames, SPARSEMAX, 0.1)
    run = {"batches": 2, "replicates_per_batch": 2, "precision": "float64"}
    result = estimate(task, heads, 9001, queries, 5, **run)
    weigh = CASES["sparsemax"][1]
    assert_close(result, reference(task, heads, 9001, queries, 5, 2, 2, weigh), 1e-11)


def test_groups_of_queries_and_what_resumes(make, monkeypatch):
    """A run goes on as if whole, not from another rule, and groups of queries change nothing."""
    task, heads, queries = make()
    problem = (task, Heads(heads.frames, SPARSEMAX, 0.7), 40, queries, 2)
    whole = estimate(*problem, batches=6, **SMALL)
    short = estimate(*problem, batches=2, **SMALL)
    xr.testing.assert_identical(estimate(*problem, batches=6, **SMALL, resume=short), whole)
    other = (task, Heads(heads.frames, CASES["near"][0], 0.7), 40, queries, 2)
    with refused("resume"):
        estimate(*other, batches=6, **SMALL, resume=short)
    monkeypatch.setattr(ensemble, "make_plan", lambda *_, **__: Plan(2, 40, 1, 3, 0))
    groups = estimate(*problem, batches=6, **SMALL)
    assert_close(groups, {name: whole[name].values for name in ("mse", "noise_covariance")})


def test_what_needs_a_kernel_says_so(make):
    task, heads, queries = make()
    problem = (task, Heads(heads.frames, SPARSEMAX, 0.7), 40, queries)
    for order in ("first", "exact"):
        with refused(r"heads.kernel: got 'weight rule sparsemax'"):
            predict(*problem, order=order)
    with refused("control_variate"):
        estimate(*problem, 0, control_variate=True)


test_a_rule_of_ones_own_is_what_it_says = refusals(
    [
        (gaussian_log, lambda z: z[:-1], r"weights: got 'shape \(6,\) for \(7,\)'"),
        (gaussian_log, lambda z: jnp.log(z - 10), "weights: got 'NaN"),
        (gaussian_log, lambda z: jnp.sqrt(z), "weights: got 'NaN"),  # of some keys
        (lambda q, k, b: 1 / jnp.maximum(k[0], 0), projection_simplex, "scores: got 'NaN"),
        (gaussian_log, lambda z: np.sort(z), "weights: got 'TracerArrayConversionError"),
        (lambda q, k: q, projection_simplex, "scores: got 'TypeError"),
        (lambda q, k, b: (q - k) / b, projection_simplex, "scores: got 'shape"),
    ],
    lambda *parts: Heads(jnp.eye(3)[None, :, :2], WeightRule("mine", *parts), 0.7),
)
