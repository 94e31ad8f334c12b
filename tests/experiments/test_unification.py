"""The experiment `unification`: its agents, its estimators, verdicts that can fail."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from sims.experiment import load_experiment
from sims.results import Results

from sims.cli.steps import _module
from sims.report import render_caption

FOLDER = Path(__file__).parents[2] / "experiments" / "unification"
simulate, predict, analysis = (
    _module(FOLDER / f"{n}.py") for n in ("simulate", "predict", "analysis")
)


@pytest.fixture(scope="module")
def experiment():
    whole = load_experiment(FOLDER)
    run = whole.simulation.model_copy(update={"batches": 4})
    fidelities = {"smoke": whole.fidelities["smoke"].model_copy(update={"simulation": {}})}
    return whole.model_copy(update={"simulation": run, "fidelities": fidelities})


@pytest.fixture(scope="module")
def results(experiment):
    simulated = simulate.simulate(experiment, "smoke")
    predicted = predict.predict(experiment, "smoke")
    assert list(simulated) == list(predicted)
    return Results("unification", "smoke", {k: {} for k in simulated}, simulated, predicted, {})


def test_estimators_by_plain_loops():
    """Sample covariances and pooled variances of 3 agents, written out in NumPy."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(50, 4, 2)) + rng.normal(size=(50, 1, 2))
    s = simulate.sampled(y)
    by_hand = [[np.mean([np.cov(y[:, m, q], y[:, k, q])[0, 1] for q in (0, 1)]) for k in range(4)]
               for m in range(4)]  # fmt: skip
    np.testing.assert_allclose(s, by_hand)
    v, c = simulate.moments(s)
    assert v == pytest.approx(np.diag(s).mean())
    assert c == pytest.approx(s[~np.eye(4, dtype=bool)].mean())
    found = simulate.pooled((s, np.ones(4)), np.array([1, 2, 4]), True)
    pairs = [y[:, :2].mean(1), y[:, 2:].mean(1)]
    assert found[1] == pytest.approx(np.mean([p.var(0, ddof=1).mean() for p in pairs]))
    assert found[2] == pytest.approx(y.mean(1).var(0, ddof=1).mean())
    left = 0.5 ** np.arange(4)[::-1]
    first = (y[:, 0] + 2 * y[:, 1]) / 3
    found = simulate.pooled((s, left), np.array([2]), False)
    assert found[0] == pytest.approx(first.var(0, ddof=1).mean())


@pytest.mark.theory
@pytest.mark.parametrize("start", [0.2, 3.0])
def test_urn_by_enumeration(start):
    """Probability that two ants of the first three share a patch, over all sequences of K = 3."""
    import itertools

    same = {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0}
    for path in itertools.product(range(3), repeat=3):
        level, probability = np.full(3, start), 1.0
        for patch in path:
            probability *= level[patch] / level.sum()
            level[patch] += 1
        for i, j in same:
            same[i, j] += probability * (path[i] == path[j])
    system = {"initial": start, "evaporation": 0.0}
    (v, _), (c, _) = predict.ants(system, {"patches": 3, "reading_sd": 0.5})
    assert v == 1.25
    for value in same.values():  # every pair: the ants are exchangeable
        assert value == pytest.approx(c, rel=1e-12)


@pytest.mark.theory
def test_ants_are_the_urn():
    """4 standard errors; with evaporation the late ants crowd and have another covariance."""
    sizes = {"patches": 10, "reading_sd": 0.5}
    system = {"initial": 0.2, "evaporation": 0.0}
    batches = [simulate.ants(system, sizes)((1, b), 2000, 6)[0] for b in range(10)]
    (v, _), (c, _) = predict.ants(system, sizes)
    expected = np.full((6, 6), c) + (v - c) * np.eye(6)
    gap = np.mean(batches, axis=0) - expected
    error = np.std(batches, axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(gap) < 6 * error).all()  # t with 9 degrees of freedom, 21 entries: 0.4%
    fading = {"initial": 5.0, "evaporation": 0.3}
    late = simulate.ants(fading, sizes)((2,), 4000, 40)[0]
    assert late[30, 39] > 2 * late[0, 1]
    assert np.isnan(predict.ants(fading, sizes)).all()


@pytest.mark.theory
def test_heads_tend_to_the_angle_law():
    """Exact less first order falls like 1/n, four times per four times the keys, and is seen."""
    from sims.theory import noise_covariance_law

    gaps = []
    for n in (512, 2048):
        sizes = {"width": 1, "bandwidth": 0.6, "n": n, "scale": 0.4}
        found = np.array(predict.heads({"angle": 60}, sizes))
        law = [float(noise_covariance_law(np.array([a]), n, 1.0, 0.6, 0.4)) for a in (1.0, 0.5)]
        assert (found[:, 1] < 1e-3 * found[:, 0]).all()
        gaps.append(found[:, 0] / law - 1)
    assert (np.abs(gaps[1]) > 1e-4).any()
    np.testing.assert_allclose(gaps[0] / gaps[1], 4, rtol=0.1)


@pytest.mark.theory
def test_heads_noise_is_that_of_drawn_labels():
    """Σ w w against the sample covariance of estimates from labels; 5 standard errors."""
    from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
    from sims.simulation import draw, nw_weights

    task = Task(DESIGNS["isotropic"](4), TARGETS["constant"](4, value=0.0), 1.0)
    heads = Heads(FRAMES["equiangular"](4, 2, 2, angle=60), "gaussian", 0.6)
    key = jax.random.key(3)
    found = np.asarray(simulate._noise(heads, task, key[None], 30, 1, 0.4))
    x, _ = draw(task, key, 30)
    query = 0.4 * jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (1, 4))
    labels = np.random.default_rng(0).normal(size=(30, 20_000))
    estimates = np.asarray(nw_weights(heads, query[0], x)) @ labels
    drawn = estimates @ estimates.T / 20_000
    np.testing.assert_allclose(found, drawn, atol=5 * drawn[0, 0] * np.sqrt(2 / 20_000))


def test_one_tree_is_scikit_learns(results, experiment):
    """A forest of the experiment predicts as its trees' mean does, by scikit-learn itself."""
    from sklearn.datasets import make_friedman1
    from sklearn.ensemble import RandomForestRegressor

    sizes = experiment.settings["trees"] | {"queries": 3}
    agents = simulate.trees({"max_features": 1}, sizes)
    found, weights = agents((0, 0, 0, 0), 3, 2)
    states = np.random.default_rng([0, 0, 0]).integers(2**31, size=3)
    queries = np.random.default_rng(0).random((3, 5), dtype=np.float32)
    means = []
    for state in states:
        x, y = make_friedman1(sizes["n"], 5, noise=1.0, random_state=int(state))
        forest = RandomForestRegressor(2, max_features=1, random_state=int(state)).fit(x, y)
        means.append(forest.predict(queries))
    assert found.mean() == pytest.approx(np.var(means, axis=0, ddof=1).mean())
    assert weights.tolist() == [1, 1]


def test_every_claim_is_judged_and_drawn(results, experiment):
    verdicts = analysis.judge(results, experiment)
    assert {v.regime for v in verdicts} == {c.regime for c in experiment.claims}
    text = render_caption(
        FOLDER / "caption.md", experiment, results, verdicts, analysis.numbers(results)
    )
    assert "{{" not in text
    assert isinstance(analysis.figure(results), Figure)


def test_verdicts_can_go_both_ways(results, experiment):
    """Data made to obey the law are supported, and refuted once a pool's variance is off."""
    simulated = {}
    for name, data in results.simulation.items():
        m = data["agents"]
        v, c = (results.theory[name][k] for k in ("variance", "covariance"))
        v, c = (float(v), float(c)) if np.isfinite(v) else (1.0, 0.4)
        wobble = 1 + 1e-3 * np.array([-1.0, 1.0, 2.0, -2.0])
        simulated[name] = data.assign(
            variance=("batch", v * wobble),
            covariance=("batch", c * wobble),
            pooled=(("batch", "agents"), np.outer(wobble[::-1], c + (v - c) / m)),
        )
    lawful = replace(results, simulation=simulated)
    found = {v.regime: v.verdict for v in analysis.judge(lawful, experiment)}
    assert set(found.values()) == {"supported"}
    off = {k: d.assign(pooled=d["pooled"] * 1.3) for k, d in simulated.items()}
    found = {
        v.regime: v.verdict for v in analysis.judge(replace(results, simulation=off), experiment)
    }
    assert {r: found[r] for r in analysis.REGIMES} == dict.fromkeys(analysis.REGIMES, "refuted")
