"""Pilots and the laws that points are drawn from: their weights, and where they put the points."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import KERNELS, TARGETS, Heads, Task
from sims.problem.designs import isotropic
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.items import WIDEN, PairItem
from sims.theory.exact.laplace import Proposal
from sims.theory.exact.truncation import Extent, pilot

pytestmark = pytest.mark.theory


def test_weighted_points_have_the_moments_of_the_standard_normal_law():
    """Mass 1, means 0, variances 1 and covariance 0, each within 5 standard errors."""
    normal = np.random.default_rng(4).normal(size=(20_000, 2))
    law = Proposal(jnp.array([0.4, -0.3]), jnp.array([[0.9, 0.0], [0.3, 1.3]]))
    points, log_weight, used = law.draw(jnp.asarray(normal))
    x, weight = np.asarray(points), np.exp(np.asarray(log_weight)) * len(normal)
    assert used == len(normal)
    one, two = x.T
    for values, expected in (
        (np.ones(len(x)), 1), (one, 0), (two, 0), (one**2, 1), (two**2, 1), (one * two, 0),
    ):  # fmt: skip
        each = weight * values
        error = each.std() / len(x) ** 0.5
        assert error < 0.05
        assert abs(each.mean() - expected) < 5 * error


@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 2.0])
def test_a_pilot_finds_the_effective_number_of_keys(bandwidth):
    """``n (E K)²/E K²`` at the centre of one standard normal coordinate, to 1 %, in closed form."""
    task = Task(isotropic(1), TARGETS["constant"](1), 0.5)
    view = GaussianLaw(task.design, task.target).project(
        Heads(np.ones((1, 1, 1)), "gaussian", bandwidth), 0, np.zeros(1)
    )
    found = pilot(KERNELS["gaussian"], view, 100, 1e-9).effective_keys
    once, twice = (1 + 1 / bandwidth**2) ** -0.5, (1 + 2 / bandwidth**2) ** -0.5
    assert found == pytest.approx(100 * once**2 / twice, rel=0.01)


def extent(precision, shift):
    """A region where a kernel adds to the design's precision of 1, about a point."""
    return Extent(-1.0, 1.0, 1.0, 10.0, np.array([[precision]]), np.array([shift]))


def test_a_pair_is_proposed_where_both_heads_respond():
    """Mean and covariance of the product of three Gaussians in (ξ_h, v), on a grid.

    The design's, and each head's in what it sees: ξ_h, and 0.6 ξ_h + 0.8 v.
    """
    pair = SimpleNamespace(
        ranks=(1, 1),
        heads=tuple(SimpleNamespace(extent=extent(*two)) for two in ((3.0, 1.5), (6.0, -2.0))),
        projection=SimpleNamespace(correlation=np.array([0.6]), rotations=(np.eye(1), np.eye(1))),
    )
    found = PairItem.proposal(pair)
    x, v = np.meshgrid(*[np.linspace(-6, 6, 601)] * 2, indexing="ij")
    y = 0.6 * x + 0.8 * v
    log = -0.5 * (x**2 + v**2 + 2 * x**2 + 5 * y**2) + 1.5 * x - 2.0 * y
    mass = np.exp(log - log.max())
    mean = np.array([np.average(part, weights=mass) for part in (x, v)])
    covariance = np.cov(np.stack([x.ravel(), v.ravel()]), aweights=mass.ravel(), ddof=0)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    root = np.asarray(found.root) / WIDEN
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-6)
