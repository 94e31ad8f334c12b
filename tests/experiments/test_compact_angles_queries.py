"""Compact angles: simulated heads against exact theory at queries of the stated spread."""

import itertools

import numpy as np
import pytest

from sims.estimates import mean_and_error
from sims.montecarlo import run
from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.study.experiment import load_experiment
from sims.study.units import units_of
from sims.theory import predict

ANGLE, BANDWIDTH, SPREAD = 45, 1.1586, 0.5
"""Degrees; b at n_eff/n = 0.85; the standard deviation of queries N(0, 0.25 I)."""
NODES = 6
"""Of Gauss–Hermite's rule in each direction of a query."""


def exact(n: int) -> tuple[float, float]:
    """Noise variance of a softmax head on a line, and covariance of two, over queries."""
    turn = np.deg2rad(ANGLE)
    frames = np.array([[[1.0], [0.0]], [[np.cos(turn)], [np.sin(turn)]]])
    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2, value=0.0), 1.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    points = SPREAD * np.array(list(itertools.product(nodes, repeat=2)))
    products = np.outer(weights, weights).ravel() / weights.sum() ** 2
    half = points[:, 0] > 0  # queries of opposite signs have one law
    heads = Heads(frames, "softmax", BANDWIDTH)
    noise = predict(task, heads, n, points[half], "exact")["noise_covariance"].values
    own, cross = (2 * products[half] @ noise[:, 0, g] for g in (0, 1))
    return float(own), float(cross)


@pytest.mark.theory
def test_shared_noise_is_that_of_exact_theory_at_queries_of_the_stated_spread():
    """Four standard errors of 50 batches, two numbers: a false alarm in 2000."""
    unit = units_of(load_experiment("compact_angles", "smoke"))["mild, softmax, d_k=1"]
    n = int(unit.coordinates["n"])
    drawn = run(unit.sampler, 5, replicates_per_batch=8, batches=50, stream=unit.stream)
    both = drawn["own"], drawn["pair"].sel(angle=ANGLE)
    for values, expected in zip(both, exact(n), strict=True):
        mean, error = mean_and_error(values.values)
        assert mean == pytest.approx(expected, abs=4 * error)
        assert 4 * error < 0.03 * expected
