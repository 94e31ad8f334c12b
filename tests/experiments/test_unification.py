"""The experiment `unification`: its agents, its estimators, verdicts that can fail."""

import itertools

import jax
import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from sims.montecarlo import run
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.simulation import draw, nw_weights
from sims.study.experiment import load_experiment
from sims.theory import noise_covariance_law
from tests.experiments.runs import small

simulate, predict, effects = (
    load_experiment("unification").module(name) for name in ("simulate", "predict", "effects")
)


@pytest.fixture(scope="module")
def experiment():
    return small("unification", batches=4)


def test_estimators_by_plain_loops():
    """Sample covariances and pooled variances of 4 agents, written out in NumPy."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(50, 4, 2)) + rng.normal(size=(50, 1, 2))
    truth = rng.normal(size=2)
    s, errors = simulate.sampled(y, truth)
    by_hand = [
        [np.mean([np.cov(y[:, m, q], y[:, k, q])[0, 1] for q in (0, 1)]) for k in range(4)]
        for m in range(4)
    ]
    np.testing.assert_allclose(s, by_hand)
    own = simulate.taken(simulate.moments(4), s, errors)
    assert own["variance"] == pytest.approx(np.diag(s).mean())
    assert own["covariance"] == pytest.approx(s[~np.eye(4, dtype=bool)].mean())
    every = simulate.taken(simulate.pooled({"unequal": 0.5}, np.array([1, 2, 4])), s, errors)
    pools = every["pooled"]
    pairs = [y[:, :2].mean(1), y[:, 2:].mean(1)]
    assert pools[0] == pytest.approx(np.diag(s).mean())
    assert pools[1] == pytest.approx(np.mean([p.var(0, ddof=1).mean() for p in pairs]))
    assert pools[2] == pytest.approx(y.mean(1).var(0, ddof=1).mean())
    fading = simulate.pooled({"evaporation": 0.5, "unequal": 0.5}, np.array([1, 2, 4]))
    first, last = (y[:, 0] + 2 * y[:, 1]) / 3, (y[:, 2] + 2 * y[:, 3]) / 3
    unequal = [p.var(0, ddof=1).mean() for p in (first, last)]
    assert every["unequal"][1] == pytest.approx(np.mean(unequal))
    pools = simulate.taken(fading, s, errors)["pooled"]
    assert pools[1] == pytest.approx(first.var(0, ddof=1).mean())


@pytest.mark.parametrize("evaporation", [0.0, 0.5])
def test_the_error_is_that_of_the_plain_average_of_the_first(evaporation):
    """Equal weights, evaporation or not, by loops over replicates, queries and agents."""
    rng = np.random.default_rng(1)
    y, truth = rng.normal(size=(20, 4, 2)) + np.arange(4)[:, None], np.array([0.5, -1.0])
    coefficients = simulate.pooled(
        {"evaporation": evaporation, "unequal": 0.3}, np.array([1, 2, 4])
    )
    found = simulate.taken(coefficients, *simulate.sampled(y, truth))["error"]
    for error, size in zip(found, (1, 2, 4), strict=True):
        total = 0.0
        for replicate in y:
            for q in range(2):
                average = sum(replicate[m, q] for m in range(size)) / size
                total += (average - truth[q]) ** 2
        assert error == pytest.approx(total / 40)


def test_trees_are_held_to_friedmans_function():
    points, labels = make_friedman1(20, 5, noise=0.0, random_state=1)
    np.testing.assert_allclose(simulate.friedman(points), labels)


@pytest.mark.theory
@pytest.mark.parametrize("start", [0.2, 3.0])
def test_urn_by_enumeration(start):
    """Probability that two ants of the first three share a patch, over all sequences of K = 3."""
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

    def covariance(name, replicates, count, rules):
        rng = np.random.default_rng(name)
        return simulate.sampled(simulate.colonies(rng, replicates, count, {**rules, **sizes}), 0.0)[
            0
        ]

    batches = [covariance((1, b), 2000, 6, system) for b in range(10)]
    (v, _), (c, _) = predict.ants(system, sizes)
    expected = np.full((6, 6), c) + (v - c) * np.eye(6)
    gap = np.mean(batches, axis=0) - expected
    error = np.std(batches, axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(gap) < 6 * error).all()  # t with 9 degrees of freedom, 21 entries: 0.4%
    fading = {"initial": 5.0, "evaporation": 0.3}
    late = covariance((2,), 4000, 40, fading)
    assert late[30, 39] > 2 * late[0, 1]
    assert np.isnan(predict.ants(fading, sizes)).all()


@pytest.mark.theory
def test_heads_tend_to_the_angle_law():
    """Exact less first order falls like 1/n, four times per four times the keys, and is seen."""
    gaps = []
    for n in (512, 2048):
        sizes = {"width": 1, "bandwidth": 0.6, "n": n, "scale": 0.4}
        exact = np.array(predict.heads({"angle": 60}, sizes))
        law = [float(noise_covariance_law(np.array([a]), n, 1.0, 0.6, 0.4)) for a in (1.0, 0.5)]
        assert (exact[:, 1] < 1e-3 * exact[:, 0]).all()
        gaps.append(exact[:, 0] / law - 1)
    assert (np.abs(gaps[1]) > 1e-4).any()
    np.testing.assert_allclose(gaps[0] / gaps[1], 4, rtol=0.1)


@pytest.mark.theory
def test_the_quadrature_over_queries_is_no_further_off_than_is_said(monkeypatch):
    """Queries spread so far that the nodes are too few for them; against a finer rule."""
    arguments = {"angle": 60}, {"width": 1, "bandwidth": 0.6, "n": 64, "scale": 1.0}
    stated = np.array(predict.heads(*arguments))
    monkeypatch.setattr(predict, "NODES", 8)
    fine = np.array(predict.heads(*arguments))
    assert (np.abs(stated[:, 0] - fine[:, 0]) <= stated[:, 1]).all()
    assert (np.abs(stated[:, 0] - fine[:, 0]) > 1e-4 * stated[:, 0]).all()


def test_measured_and_pooled_heads_have_frames_of_their_own():
    """At one angle: else v and ρ would be of the very heads that are pooled."""
    system = {"dimension": 4, "width": 2, "angle": 60.0, "bandwidth": 0.6}
    system |= {"n": 10, "queries": 1, "scale": 0.4}
    frames = [
        np.asarray(simulate.heads(system, part, 2, {}).constants[0].frames)
        for part in (simulate.MEASURED, simulate.POOLED)
    ]
    cosines = [np.linalg.svd(f[0].T @ f[1], compute_uv=False) for f in frames]
    np.testing.assert_allclose(cosines, 0.5)
    for first in frames[0]:
        for second in frames[1]:
            assert np.linalg.svd(first.T @ second, compute_uv=False).min() < 0.99


@pytest.mark.theory
def test_heads_noise_is_that_of_drawn_labels():
    """Σ w w against the sample covariance of estimates from labels; 5 standard errors."""
    task = Task(DESIGNS["isotropic"](4), TARGETS["constant"](4, value=0.0), 1.0)
    heads = Heads(FRAMES["equiangular"](4, 2, 2, angle=60), "gaussian", 0.6)
    key, every = jax.random.key(3), np.eye(4).reshape(2, 2, 2, 2)
    values = simulate.noise(key, (heads, task, 0.4, {"all": every}), None, n=30, queries=1)["all"]
    x, _ = draw(task, key, 30)
    query = 0.4 * jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (1, 4))
    labels = np.random.default_rng(0).normal(size=(30, 20_000))
    estimates = np.asarray(nw_weights(heads, query[0], x)) @ labels
    drawn = estimates @ estimates.T / 20_000
    np.testing.assert_allclose(values, drawn, atol=5 * drawn[0, 0] * np.sqrt(2 / 20_000))


@pytest.mark.parametrize(
    ("bootstrap", "features"), [(True, 1), (True, 3), (True, 1.0), (False, 1.0)]
)
def test_one_tree_is_scikit_learns(experiment, bootstrap, features):
    """A forest of the experiment predicts as its trees' mean does, by scikit-learn itself."""
    system = {**experiment.settings["trees"], "queries": 3}
    system |= {"bootstrap": bootstrap, "max_features": features}
    coefficients = simulate.pooled({"unequal": 0.5}, np.array([1, 2]))
    dims = dict.fromkeys(("pooled", "unequal", "error"), ("agents",))
    sampler = simulate.trees(system, simulate.POOLED, 2, coefficients, dims=dims)
    data = run(sampler, 0, replicates_per_batch=3, batches=2, stream=(simulate.POOLED,))
    queries = np.random.default_rng(0).random((3, 5), dtype=np.float32)
    for b in range(2):
        means = []
        for state in np.random.default_rng([0, simulate.POOLED, b]).integers(2**31, size=3):
            x, y = make_friedman1(system["n"], 5, noise=1.0, random_state=int(state))
            forest = RandomForestRegressor(
                2, max_features=features, bootstrap=bootstrap, random_state=int(state)
            )
            means.append(forest.fit(x, y).predict(queries))
        assert float(data["pooled"][b, 1]) == pytest.approx(np.var(means, axis=0, ddof=1).mean())


@pytest.mark.parametrize(
    ("bootstrap", "features", "tried"),
    [(True, 5, 1.0), (True, 5, 1), (False, 5, 1.0), (True, 10, 3)],
)
def test_a_forest_is_scikit_learns_to_the_bit(experiment, bootstrap, features, tried):
    system = {**experiment.settings["trees"], "features": features, "bootstrap": bootstrap}
    queries = np.random.default_rng(1).random((9, features), dtype=np.float32)
    found = simulate.forest(None, (system | {"max_features": tried}, 8, queries), 7)["predictions"]
    x, y = make_friedman1(system["n"], features, noise=1.0, random_state=7)
    rule = RandomForestRegressor(8, max_features=tried, bootstrap=bootstrap, random_state=7)
    expected = [tree.predict(queries) for tree in rule.fit(x, y).estimators_]
    np.testing.assert_array_equal(found, expected)


def test_the_systems_of_trees_are_what_their_names_say(experiment):
    """Trees that are not bagged know all labels of their training set, bagged ones 63 % of them."""
    systems = {s["name"]: s for s in experiment.settings["systems"] if s["kind"] == "trees"}
    names = ("bagged trees", "bagged trees, one feature", "bagged trees, three features")
    assert set(systems) == {"trees, not bagged", *names}
    state = 5
    x, y = make_friedman1(50, 5, noise=1.0, random_state=state)
    points = x.astype(np.float32)
    at_labels = {}
    for name, system in systems.items():
        shared = ({**experiment.settings["trees"], **system}, 4, points)
        predictions = simulate.forest(None, shared, state)["predictions"]
        at_labels[name] = np.isclose(predictions, y).mean()
    assert at_labels["trees, not bagged"] == 1.0
    for name in names:
        assert 0.5 < at_labels[name] < 0.75  # the share drawn by a bootstrap sample: 0.63
    # To scikit-learn 1.0 is all features, and 1 is one.
    tried = [system["max_features"] for system in systems.values()]
    kinds = [(value, type(value)) for value in tried]
    assert kinds == [(1.0, float), (1.0, float), (1, int), (3, int)]


def test_systems_of_trees_are_grown_on_the_same_training_sets():
    """As many of them, so that two systems differ by their trees alone."""
    units = simulate.units(load_experiment("unification"))
    names = [f"bagged trees{rest}" for rest in ("", ", one feature", ", three features")]
    for stream, suffix in {simulate.POOLED: "", simulate.MEASURED: ", measured"}.items():
        drawn = [units[name + suffix] for name in (*names, "trees, not bagged")]
        assert {(unit.stream, unit.replicates) for unit in drawn} == {((stream,), 12 * 2)}


def test_systems_of_ants_have_draws_of_their_own(experiment):
    """Two parts of one system are independent; heads share theirs with other heads."""
    units = simulate.units(load_experiment("unification"))
    streams = {name: unit.stream for name, unit in units.items()}
    assert streams["heads at 30°"] == streams["heads at 90°"] == (simulate.POOLED,)
    assert streams["heads at 30°, measured"] == (simulate.MEASURED,)
    ants = [stream for name, stream in streams.items() if name.startswith("ants")]
    assert len(set(ants)) == len(ants) == 7
    assert units["ants, weak trails"].replicates == 1500 * 2
    assert units["ants, weak trails, measured"].replicates == 16 * 1500 * 2
