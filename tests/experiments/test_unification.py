"""The experiment `unification`: agents by other routes."""

import itertools

import numpy as np
import pytest

from sims.montecarlo.draws import Draw
from sims.problem import Heads
from sims.problem.law import Law
from sims.study.experiment import load_experiment
from sims.study.loading import load_study
from sims.study.study import Fields
from sims.theory import predict as library

EXPERIMENT = load_experiment("unification")
simulate, predict, statistic = (
    EXPERIMENT.module(name) for name in ("simulate", "predict", "statistic")
)


def drawn(number=0, **changes):
    fields = Law(EXPERIMENT.spec.law | changes).draw(3, number)
    return load_study(EXPERIMENT).problem(Fields(fields, 3, number))


def test_moments_by_plain_loops():
    """Variances with ddof 1 and errors about the truth, of pools of three agents."""
    rng = np.random.default_rng(0)
    y, truth = rng.normal(size=(50, 2, 3, 4)) + rng.normal(size=(50, 2, 1, 4)), rng.normal(size=4)
    result = simulate.moments(y, truth)
    for pool in range(2):
        plain, each = y[:, pool].mean(1), [y[:, pool, agent] for agent in range(3)]
        expected = {
            "mse": np.mean((plain - truth) ** 2),
            "mean_head_mse": np.mean([np.mean((one - truth) ** 2) for one in each]),
            "ensemble_variance": plain.var(0, ddof=1).mean(),
            "variance": np.mean([one.var(0, ddof=1).mean() for one in each]),
        }
        assert {k: v[pool] for k, v in result.items()} == pytest.approx(expected)


@pytest.mark.theory
@pytest.mark.parametrize("start", [0.2, 3.0])
def test_urn_by_enumeration(start):
    """Two of the first three ants share a patch, over all sequences of K = 3: exchangeable."""
    same = {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0}
    for path in itertools.product(range(3), repeat=3):
        level, probability = np.full(3, start), 1.0
        for patch in path:
            probability *= level[patch] / level.sum()
            level[patch] += 1
        for i, j in same:
            same[i, j] += probability * (path[i] == path[j])
    law = {"kind": "ants", "patches": 3, "initial": start, "reading_sd": 0.5, "agents": 4}
    error, _ = predict.ants(drawn(**law, evaporates=False))
    for value in same.values():
        assert error == pytest.approx(value + (1.25 - value) / 4, rel=1e-12)
    assert np.isnan(predict.ants(drawn(**law, evaporates=True))).all()


@pytest.mark.theory
def test_ants_are_the_urn():
    """Of two pools, 5 standard errors; where pheromone evaporates late ants crowd."""
    law = {"kind": "ants", "patches": 5, "initial": 0.3, "more": 10, "agents": 4}
    problem = drawn(**law, evaporates=False)
    batches = [
        simulate.colonies(Draw.from_seed(1, (), 5000).draw(b), 5000, problem) for b in range(20)
    ]
    errors = np.array([batch["mse"] for batch in batches])
    gap = errors.mean(0) - predict.ants(problem)
    assert (np.abs(gap) < 5 * errors.std(0, ddof=1) / 20**0.5).all()
    fading = drawn(kind="ants", agents=40, patches=10, reading_sd=0.5)
    y = simulate.readings(np.random.default_rng(2), 4000, fading, 5.0, 0.3)
    covariance = np.cov(y.T)
    assert covariance[30, 39] > 2 * covariance[0, 1]


@pytest.mark.theory
@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_repeated_heads_are_the_few_and_their_noise_has_the_drawn_share(kernel):
    problem = drawn(kind="heads", kernel=kernel, agents=4, bandwidth=1.0)
    for (task, heads, n, queries), angle in zip(problem.heads, ("near", "apart"), strict=True):
        few = Heads(heads.frames[:4], heads.rule, heads.bandwidth[:4])
        cosines = np.linalg.svd(np.asarray(few.frames[0]).T @ few.frames[1], compute_uv=False)
        width = problem.drawn["width"]
        np.testing.assert_allclose(cosines[:width], np.cos(np.deg2rad(problem.drawn[angle])))
        one, many = (library(task, each, n, queries) for each in (few, heads))
        for name in simulate.NAMES:
            assert float(many[name]) == pytest.approx(float(one[name]))
    share = float(many["ensemble_variance"] / many["mse"])
    assert share == pytest.approx(problem.drawn["share"])


def test_trees_are_what_their_names_say():
    """Trees that are not bagged know all labels of their training set, bagged ones 63 % of them."""
    rng, known = np.random.default_rng(5), []
    x, y = rng.normal(size=(200, 5)).astype(np.float32), rng.normal(size=200)
    for options in (
        *drawn(kind="trees", bagging=True).forests,
        {"bootstrap": True, "max_features": 1},
    ):
        grown = [simulate.tree(x, y, seed, **options) for seed in range(8)]
        known.append(np.mean([np.isclose(t.tree_.predict(x)[:, 0], y) for t in grown]))
        assert {t.max_features_ for t in grown} == {options.get("max_features", 5)}
    assert known[0] == 1.0
    assert known[1:] == pytest.approx([0.632, 0.632], abs=0.03)
    problem = drawn(kind="trees", bagging=False, features=10, tried=0.3)
    assert [pool.get("max_features", 1.0) for pool in problem.forests] == [1.0, 3]


def test_a_forest_errs_about_the_target():
    """Without noise, on many points, trees know the target; an average knows it better than one."""
    problem = drawn(kind="trees", bagging=True, points=2000, lengthscale=8.0, features=5, noise=0.0)
    result = simulate.forests(Draw.from_seed(1, (), 2).draw(0), 2, problem)
    spread = np.var(simulate.values(problem, problem.queries))
    assert (result["mse"] < 0.1 * spread).all()
    assert result["mse"][1] < result["mean_head_mse"][1]
    points = problem.queries
    np.testing.assert_allclose(simulate.values(problem, points), problem.target(points))
