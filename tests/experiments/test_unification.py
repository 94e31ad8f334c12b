"""The experiment `unification`: agents by other routes."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import RandomForestRegressor

from experiments.unification import simulate
from sims.problem import Heads
from sims.study.running import Run
from sims.study.study import Fields
from sims.theory import predict as library
from tests.by_hand import waves
from tests.experiments.drawing import assert_effect, fall, fields_of, two_problems

STUDY = Run.load("unification").study


def drawn(number=0, **changes):
    return STUDY.problem(Fields(fields_of("unification", number, **changes), 3, number))


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
    """Two of the first three ants share a patch, over all sequences of K = 3: (1 + τ)/(1 + Kτ)."""
    same = {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0}
    for path in itertools.product(range(3), repeat=3):
        level, probability = np.full(3, start), 1.0
        for patch in path:
            probability *= level[patch] / level.sum()
            level[patch] += 1
        for i, j in same:
            same[i, j] += probability * (path[i] == path[j])
    for value in same.values():
        assert value == pytest.approx((1 + start) / (1 + 3 * start), rel=1e-12)


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


def nadaraya_watson(problem, replicates, rng):
    """Estimates (R, pool, M, Q) of heads and Σw² of the plain pool's, one key set at a time."""
    fields = problem.drawn
    size = fields["width"] ** 0.5 * fields["bandwidth"]
    b = size if fields["kernel"] == "gaussian" else fields["bandwidth"] ** 0.5
    estimates, squares = [], []
    for _ in range(replicates):
        keys = rng.normal(size=(fields["keys"], 32))
        labels = waves(problem.target, keys) + problem.noise_sd * rng.normal(size=len(keys))
        row = []
        for pool, (_, heads, _, queries) in enumerate(problem.heads):
            for frame in heads.frames[: fields["agents"]]:
                q, z = queries @ frame, keys @ frame
                score = q @ z.T
                if fields["kernel"] == "gaussian":
                    score = -((q[:, None] - z) ** 2).sum(2) / 2
                weights = softmax(score / b**2, axis=1)
                row.append(weights @ labels)
                squares.extend([(weights**2).sum(1).mean()] * (pool == 0))
        estimates.append(np.reshape(row, (2, fields["agents"], -1)))
    return np.array(estimates), np.mean(squares)


def forests_by_scikit_learn(problem, replicates, rng):
    """Estimates (R, pool, M, Q) of whole forests, by the library's class for them."""
    fields, estimates = problem.drawn, []
    for _ in range(replicates):
        x = rng.normal(size=(fields["points"], fields["features"]))
        y = waves(problem.target, x) + problem.noise_sd * rng.normal(size=len(x))
        few = max(1, round(fields["tried"] * fields["features"]))
        pools = [{"max_features": 1.0}, {"max_features": few}]
        if fields["bagging"]:
            pools = [{"bootstrap": False}, {"bootstrap": True}]
        row = []
        for options in pools:
            seed = int(rng.integers(2**31))
            forest = RandomForestRegressor(fields["agents"], random_state=seed, **options)
            forest.fit(x, y)
            row.append([tree.predict(problem.queries) for tree in forest.estimators_])
        estimates.append(row)
    return np.array(estimates)


def ants_by_hand(problem, replicates, rng):
    """Readings (R, pool, M, 1), ant by ant."""
    fields = problem.drawn
    rate = fields["evaporation"] * fields["evaporates"]
    estimates = np.empty((replicates, 2, fields["agents"], 1))
    for colony in estimates:
        for pool, start in enumerate((1, fields["more"])):
            truth = rng.normal(size=fields["patches"])
            trail = np.full(fields["patches"], fields["initial"] * start)
            for ant in range(fields["agents"]):
                patch = rng.choice(len(trail), p=trail / trail.sum())
                colony[pool, ant] = truth[patch] + fields["reading_sd"] * rng.normal()
                trail *= 1 - rate
                trail[patch] += 1
    return estimates


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "heads", "kernel": "gaussian", "keys": 32, "bandwidth": 0.5},
        {"kind": "heads", "kernel": "softmax", "keys": 32, "bandwidth": 0.8},
        {"kind": "trees", "points": 20, "bagging": True},
        {"kind": "trees", "points": 20, "bagging": False, "tried": 0.1},
        {"kind": "ants", "evaporates": True, "evaporation": 0.3, "initial": 1.0, "agents": 16},
    ],
)
def test_errors_of_both_pools_are_those_by_hand(tmp_path, changes):
    """Errors of a pool and of one member, their fall, and Σw² of heads: 5 joint standard errors.

    Of 25 numbers a false alarm comes once in 80,000 runs.
    """
    rng = np.random.default_rng(8)
    replicates = {"heads": 40, "trees": 8, "ants": 400}[changes["kind"]]
    law = {"agents": 4, "near": 20.0, "apart": 80.0, **changes}
    problems, simulated, effects = two_problems(tmp_path, "unification", 24, replicates, **law)
    problem = problems[0]
    truth = 0.0 if changes["kind"] == "ants" else waves(problem.target, problem.queries)
    if changes["kind"] == "heads":
        estimates, squares = nadaraya_watson(problem, 300, rng)
        noise = simulated["integrated_noise_covariance"].values.mean(0)[0]
        assert problem.noise_sd**2 * squares == pytest.approx(np.diag(noise).mean(), rel=0.05)
    elif changes["kind"] == "trees":
        estimates = forests_by_scikit_learn(problem, 100, rng)
    else:
        estimates = ants_by_hand(problem, 1500, rng)
    errors = ((estimates.mean(2) - truth) ** 2).mean(2)
    single = ((estimates - truth) ** 2).mean((2, 3))
    for name, values in (("mse", errors), ("mean_head_mse", single)):
        found = simulated[name].values
        joint = np.sqrt(values.var(0, ddof=1) / len(values) + found.var(0, ddof=1) / len(found))
        assert (np.abs(values.mean(0) - found.mean(0)) < 5 * joint).all(), name
        assert (joint < 0.1 * values.mean(0)).all()
    assert_effect(effects["fall"], 0, fall(errors[:, 1], errors[:, 0]))
