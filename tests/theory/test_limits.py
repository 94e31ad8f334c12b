"""The error as n → ∞: by quadrature, by drawn queries, and as the limit of exact theory."""

import numpy as np
import pytest

from sims.base.errors import Uncovered
from sims.problem import DESIGNS, GaussianDesign, Heads, Task, TrigonometricSeries
from sims.theory import predict
from sims.theory.limits import limit_bias, limit_error, unseen

pytestmark = pytest.mark.theory
RNG = np.random.default_rng(5)
D, HEADS, WIDTH = 3, 2, 1
SIGMA = np.diag([1.5, 1.0, 0.5]) + 0.2
TARGET = TrigonometricSeries(
    RNG.normal(size=4), RNG.normal(size=(4, D)), RNG.uniform(0, 2 * np.pi, 4)
)
FRAMES, KEY_FRAMES = np.linalg.qr(RNG.normal(size=(2, HEADS, D, WIDTH)))[0]
TASK = Task(GaussianDesign(SIGMA), TARGET, 0.5)


def heads_of(kernel, maps=2, bandwidth=(0.6, 0.9)):
    return Heads(FRAMES, kernel, bandwidth, KEY_FRAMES if maps == 2 else None)


def limits_by_quadrature(heads, queries, nodes=24):
    """E[K m]/E K of every head at every query, by Gauss–Hermite in three dimensions, (Q, H)."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[z] * D), -1).reshape(-1, D)
    weight = np.prod(np.meshgrid(*[w] * D), axis=0).ravel()
    keys = grid @ np.linalg.cholesky(SIGMA).T
    values = TARGET.values(keys)
    rows = []
    for u, v, b in zip(heads.frames, heads.of_keys, heads.bandwidth, strict=True):
        q, k = queries @ np.asarray(u), keys @ np.asarray(v)
        if heads.kernel.name == "softmax":
            score = q @ k.T / float(b) ** 2
        else:
            score = -((q[:, None] - k) ** 2).sum(2) / (2 * float(b) ** 2)
        kernel = weight * np.exp(score - score.max(1, keepdims=True))
        rows.append(kernel @ values / kernel.sum(1))
    return np.transpose(rows)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("maps", [1, 2])
def test_the_bias_by_quadrature_and_its_mean_square_by_drawn_queries(kernel, maps):
    """With unequal weights; the mean square within four standard errors of 20,000 queries."""
    heads, alpha = heads_of(kernel, maps), np.array([0.3, 0.7])
    bias = limit_bias(TASK, heads, alpha, factor=1.2)
    wider = heads_of(kernel, maps, 1.2 * np.array([0.6, 0.9]))
    points = np.random.default_rng(1).normal(size=(5, D)) * 0.7
    by_hand = limits_by_quadrature(wider, points) @ alpha - TARGET.values(points)
    np.testing.assert_allclose(bias.values(points), by_hand, rtol=1e-3, atol=1e-3)
    queries = np.random.default_rng(2).multivariate_normal(np.zeros(D), SIGMA, size=20_000)
    squares = bias.values(queries) ** 2
    found = limit_error(TASK, heads, alpha, factor=1.2)
    assert abs(squares.mean() - found) < 4 * squares.std() / 20_000**0.5


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_it_is_the_limit_of_exact_theory(kernel):
    """At n = 10^7 and 10^9 the squared bias at the same queries is within theory's error."""
    heads = heads_of(kernel, bandwidth=(1.0, 1.3))
    points = np.random.default_rng(3).normal(size=(4, D)) * 0.7
    limit = (limit_bias(TASK, heads).values(points) ** 2).mean()
    for n in (10**7, 10**9):
        exact = predict(TASK, heads, n, points, order="exact", rtol=0.01)
        # Beyond theory's error there is a difference of order 1/n_eff, below 1e-3 here.
        assert abs(exact["squared_bias"] - limit) < exact["squared_bias_error"] + 1e-3 * limit
        assert exact["ensemble_variance"] < 0.01 * limit


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_it_is_the_least_error_over_temperatures(kernel):
    found = unseen(TASK, heads_of(kernel))
    errors = [limit_error(TASK, heads_of(kernel), factor=f) for f in np.geomspace(0.05, 20, 200)]
    assert found.error == pytest.approx(min(errors), rel=1e-3)
    assert limit_error(TASK, heads_of(kernel), factor=found.factor) == pytest.approx(found.error)
    queries = np.random.default_rng(4).multivariate_normal(np.zeros(D), SIGMA, size=100_000)
    assert found.variance == pytest.approx(TARGET.values(queries).var(), rel=0.03)
    assert 0 < found.coverage < 1


def test_of_narrow_gaussian_heads_with_one_map_it_is_what_projections_do_not_tell():
    """E Var(m | Uᵀx) of one head, which sees the first of two independent coordinates."""
    target = TrigonometricSeries([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], [0.3, 0.3])
    task = Task(GaussianDesign(np.eye(2)), target, 0.0)
    sees = [Heads(np.eye(2)[None, :, [place]], "gaussian", 1.0) for place in (0, 1)]
    first, second = (unseen(task, heads) for heads in sees)
    assert first.error + second.error == pytest.approx(first.variance, rel=1e-2)
    assert first.error == pytest.approx(4 * second.error, rel=1e-2)
    none = Heads(np.array([[[0.0], [1.0]]]), "gaussian", 1.0)
    alone = TrigonometricSeries([1.0], [[1.0, 0.0]], [0.3])
    blind = unseen(Task(GaussianDesign(np.eye(2)), alone, 0.0), none)
    assert blind.coverage == pytest.approx(0, abs=1e-9)


def test_other_designs_are_refused_in_a_line():
    task = Task(DESIGNS["sphere"](D), TARGET, 0.5)
    with pytest.raises(Uncovered, match="GaussianDesign"):
        limit_bias(task, heads_of("gaussian"))
