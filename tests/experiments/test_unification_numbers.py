"""Agents of any kind, by other routes: the error of forests, heads with a target, softmax heads."""

import itertools

import jax
import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from sims.montecarlo import replicate_key, root_key, run
from sims.problem import DESIGNS, FRAMES, TARGETS, Task
from sims.simulation import draw
from sims.study.experiment import load_experiment
from tests.experiments.by_hand import families

EXPERIMENT = load_experiment("unification")
simulate, predict, effects = (
    EXPERIMENT.module(name) for name in ("simulate", "predict", "effects")
)


@pytest.mark.parametrize("features", [5, 10])
def test_the_error_of_a_forest_is_about_friedmans_function(features):
    """By scikit-learn's predictions, and by that function written out; the first tree's, too.

    Beyond the five features that matter there may be others that do not.
    """
    settings = EXPERIMENT.settings["trees"] | {"queries": 5, "max_features": 1}
    settings |= {"features": features}
    coefficients = simulate.pooled({"unequal": 0.5}, np.array([1, 2]))
    dims = dict.fromkeys(("pooled", "unequal", "error"), ("agents",))
    sampler = simulate.trees(settings, simulate.POOLED, 2, coefficients, dims=dims)
    data = run(sampler, 3, replicates_per_batch=3, batches=2, stream=(simulate.POOLED,))
    x = np.random.default_rng(0).random((5, features), dtype=np.float32)
    truth = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    truth += 10 * x[:, 3] + 5 * x[:, 4]
    for b in range(2):
        squares = []
        for state in np.random.default_rng([3, simulate.POOLED, b]).integers(2**31, size=3):
            training = make_friedman1(50, features, noise=1.0, random_state=int(state))
            rule = RandomForestRegressor(2, max_features=1, random_state=int(state))
            rule.fit(*training)
            estimates = rule.estimators_[0].predict(x), rule.predict(x)
            squares.append([np.mean((estimate - truth) ** 2) for estimate in estimates])
        np.testing.assert_allclose(data["error"][b], np.mean(squares, axis=0), rtol=1e-6)


@pytest.mark.theory
def test_softmax_heads_on_lines_tend_to_their_own_law():
    """``Σ w_h w_g`` tends to ``exp(x'P_h P_g x/b⁴)/n``, averaged over x ~ N(0, s² I) in the plane.

    What exact theory has beyond it falls like 1/n, four times per four times the keys. The
    bandwidth is the system's own, not that of the kind.
    """
    b, s, lines, gaps = 1.1, 0.25, [np.array([1.0, 0.0]), np.array([0.5, 0.75**0.5])], []
    projections = [np.outer(line, line) for line in lines]

    def averaged(one, other):
        """E exp(x'Sx/b⁴) for the symmetric part S of the product."""
        both = (one @ other + other @ one) / 2
        return np.linalg.det(np.eye(2) - 2 * s**2 / b**4 * both) ** -0.5

    law = np.array([averaged(projections[0], other) for other in projections])
    system = {"angle": 60, "kernel": "softmax", "bandwidth": b}
    for n in (128, 512):
        sizes = {"width": 1, "bandwidth": 0.4, "n": n, "scale": s}
        exact = np.array(predict.heads(system, sizes))
        assert (exact[:, 1] < 1e-3 * exact[:, 0]).all()
        gaps.append(exact[:, 0] * n / law - 1)
    assert (np.abs(gaps[0]) < 1e-3).all()
    assert (np.abs(gaps[1]) > 2e-5).all()
    np.testing.assert_allclose(gaps[0] / gaps[1], 4, rtol=0.1)


def test_an_integral_over_queries_is_as_uncertain_as_theory_at_its_nodes(monkeypatch):
    """Noise that is the same everywhere leaves no error of the rule: what is stated is theory's."""

    def constant(task, heads, n, points, order):
        pairs = ("query", "head", "head2")
        value, error = ([[2.0, 1.0], [1.0, 4.0]], [[0.2, 0.03], [0.03, 0.4]])
        each = {"noise_covariance": value, "noise_covariance_error": error}
        return xr.Dataset({k: (pairs, np.tile(v, (len(points), 1, 1))) for k, v in each.items()})

    monkeypatch.setattr(predict, "theory", constant)
    sizes = {"width": 1, "bandwidth": 0.6, "n": 64, "scale": 0.4}
    v, c = predict.heads({"angle": 60}, sizes)
    assert v == pytest.approx((3.0, 0.3))
    assert c == pytest.approx((1.0, 0.03))


def weights(frames, kernel, b, x, at):
    """Of each head (H, Q, n), the plain way."""
    out = []
    for u in frames:
        keys, queries = x @ u, at @ u
        if kernel == "softmax":
            scores = queries @ keys.T / b**2
        else:
            scores = -((queries[:, None] - keys) ** 2).sum(-1) / (2 * b**2)
        k = np.exp(scores)
        out.append(k / k.sum(1, keepdims=True))
    return np.array(out)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_errors_of_heads_are_about_a_target_of_every_replicates_own(kernel):
    """By NumPy from the keys, queries and target of each replicate: squared bias and noise.

    The targets of a batch are those of one draw with as many waves as all of them have.
    """
    family = {"kind": "matern", "nu": 1.5, "lengthscale": 3.0, "features": 4}
    system = {"dimension": 8, "width": 2, "angle": 30, "kernel": kernel, "bandwidth": 0.8}
    system |= {"n": 20, "queries": 3, "scale": 0.4, "target": family}
    agents = np.array([1, 2, 4])
    sampler = simulate.heads(
        system, simulate.POOLED, 4, simulate.errors(agents), dims={"error": ("agents",)}
    )
    data = run(sampler, 5, replicates_per_batch=2, batches=2, stream=(simulate.POOLED,))
    task = Task(DESIGNS["isotropic"](8), TARGETS["constant"](8, value=0.0), 1.0)
    frames = np.asarray(FRAMES["equiangular"](8, 4, 2, seed=simulate.POOLED, angle=30), float)
    root = jax.random.fold_in(root_key(5), simulate.POOLED)
    for b in range(2):
        seed, errors = np.random.default_rng([5, simulate.POOLED, b]).integers(2**31), []
        whole = TARGETS["matern"](8, seed=int(seed), nu=1.5, lengthscale=3.0, features=8)
        frequency, phase = np.asarray(whole.frequency), np.asarray(whole.phase)
        for r in range(2):
            own = slice(4 * r, 4 * r + 4)
            key = replicate_key(root, b, r)
            x = np.asarray(draw(task, key, 20)[0])
            at = 0.4 * np.asarray(jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (3, 8)))
            w = weights(frames, kernel, 0.8, x, at)

            def m(points, frequency=frequency[own], phase=phase[own]):
                # A target of unit variance.
                return np.sqrt(2 / 4) * np.cos(points @ frequency.T + phase).sum(1)

            for size in agents:
                pool = w[:size].mean(0)
                bias = pool @ m(x) - m(at)
                errors.append(np.mean(bias**2 + (pool**2).sum(1)))
        np.testing.assert_allclose(data["error"][b], np.reshape(errors, (2, 3)).mean(0), rtol=1e-6)


def test_the_wave_that_heads_have_in_common():
    """One direction at either angle, seen alike by all heads; m is its sine, not its cosine."""
    frames = [FRAMES["equiangular"](16, 8, 2, seed=1, angle=angle) for angle in (30, 90)]
    waves = [simulate.common_wave(own) for own in frames]
    directions = [np.asarray(wave.frequency)[0] for wave in waves]
    np.testing.assert_allclose(*directions, atol=1e-12)
    for own, wave, squared in zip(
        frames, waves, ((1 + 7 * np.cos(np.pi / 6)) / 8, 1 / 8), strict=True
    ):
        u = np.asarray(wave.frequency)[0]
        np.testing.assert_allclose(
            ((np.asarray(own, float).transpose(0, 2, 1) @ u) ** 2).sum(1), squared
        )
        points = np.random.default_rng(0).normal(size=(5, 16))
        np.testing.assert_allclose(wave(points), np.sin(points @ u), atol=1e-12)


def test_heads_that_look_along_the_target_are_better_than_heads_apart():
    """With sin(u·x) and labels that are drawn: the mean squared error by brute force, 5 errors."""
    system = {"dimension": 8, "width": 1, "angle": 30, "bandwidth": 0.8}
    system |= {"n": 20, "queries": 1, "scale": 0.4, "target": "common direction"}
    sampler = simulate.heads(
        system,
        simulate.POOLED,
        4,
        simulate.errors(np.array([4])),
        dims={"error": ("agents",)},
    )
    data = run(sampler, 3, replicates_per_batch=50, batches=40, stream=(simulate.POOLED,))
    error = data["error"].values[:, 0]
    frames = np.asarray(FRAMES["equiangular"](8, 4, 1, seed=simulate.POOLED, angle=30), float)
    u = frames[:, :, 0].sum(0) / np.linalg.norm(frames[:, :, 0].sum(0))
    rng, brute = np.random.default_rng(0), []
    for _ in range(4000):
        x, at = rng.normal(size=(20, 8)), 0.4 * rng.normal(size=(1, 8))
        y = np.sin(x @ u) + rng.normal(size=20)
        pool = weights(frames, "gaussian", 0.8, x, at).mean(0)
        brute.append((pool @ y - np.sin(at @ u))[0] ** 2)
    spread = np.hypot(error.std(ddof=1) / 40**0.5, np.std(brute) / 4000**0.5)
    assert abs(error.mean() - np.mean(brute)) < 5 * spread
    assert spread < 0.1 * error.mean()


def test_pools_have_their_falls():
    """Of the error alone, 1 − 0.6/0.8 at the largest number of agents."""
    wobble = 0.01 * np.random.default_rng(0).normal(size=8)
    pair = {"name": "apart", "plain": "near", "changed": "far"}
    estimates = {
        name: xr.Dataset(
            {"error": (("batch", "agents"), np.outer(1 + wobble, [2.0, last]))}, {"agents": [1, 2]}
        )
        for name, last in (("near", 0.8), ("far", 0.6))
    }
    estimates |= {"heads": estimates["near"].assign(pooled=estimates["near"]["error"])}
    estimates["heads"] = estimates["heads"].assign(unequal=estimates["near"]["error"])
    values = {"variance": ("batch", 1 + wobble), "covariance": ("batch", 1 - wobble)}
    estimates["heads, measured"] = xr.Dataset(values)
    settings = {
        "systems": [{"name": "heads", "kind": "heads"}],
        "mechanisms": [],
        "unequal": 0.5,
        "evaporation": dict.fromkeys(("name", "plain", "changed"), "heads"),
        "pool_mechanisms": [pair],
    }
    predictions = {"heads, measured": xr.Dataset({"variance": np.nan})}
    found = families("unification", estimates, predictions, settings=settings)
    (fall,) = found["fall of the error"]
    assert fall.value == pytest.approx(0.25)
    assert fall.at == {"mechanism": "apart"}
    assert fall.points == ("near", "far")


def grown(agents, errors):
    """Errors of pools that are made up, (batch, M)."""
    return xr.Dataset({"error": (("batch", "agents"), errors)}, {"agents": agents})


def test_the_error_of_ever_more_trees_is_the_mean_product_of_two_trees_errors():
    """Of two training sets: of the first all trees err by 3, of the second by 1, −1, 5 and −1."""
    errors = np.array([[3.0, 3.0, 3.0, 3.0], [1.0, -1.0, 5.0, -1.0]])
    # By the definition, over every order of the trees: which is the first, and which are pooled.
    orders = errors[:, list(itertools.permutations(range(4)))]
    of_one = (orders[:, :, 0] ** 2).mean(1)
    of_four = (orders.mean(2) ** 2).mean(1)
    pairs = [np.mean([a * b for a, b in itertools.permutations(row, 2)]) for row in errors]
    assert pairs == pytest.approx([9.0, -1.0])
    of_two = (orders[:, :, :2].mean(2) ** 2).mean(1)
    found = effects.of_many(grown([1, 2, 4], np.transpose([of_one, of_two, of_four])))
    np.testing.assert_allclose(found, pairs)
    # Sixteen trees of error 5 and single ones of 20 leave (80 − 20)/15 to ever more.
    assert effects.of_many(grown([1, 16], np.array([[20.0, 5.0]]))) == pytest.approx(4.0)


def test_the_fall_of_the_error_of_ever_more_trees():
    """From 4 to 3, of trees alone, paired: training sets that are harder for both leave no error.

    The error of 4 trees falls from 6 to 5.25 and that of one is 12 in all: ``(4 e₄ − e₁)/3``.
    """
    hard = 1 + 0.1 * np.random.default_rng(1).normal(size=64)
    near, far = (np.outer(hard, [12.0, pool]) for pool in (6.0, 5.25))
    trees = {"plain": "all features", "changed": "few features"}
    alone = {"plain": "all of ten", "changed": "few of ten"}
    ants = {"plain": "ants", "changed": "few features"}
    kinds = dict.fromkeys(("all features", "few features", "all of ten", "few of ten"), "trees")
    kinds["ants"] = "ants"
    estimates = {
        name: grown([1, 4], (far if name.startswith("few") else near).copy()).assign(
            pooled=(("batch", "agents"), near), unequal=(("batch", "agents"), near)
        )
        for name in kinds
    }
    estimates["few of ten"]["error"][:, 1] = hard[::-1] * 5.25
    one = xr.Dataset({"variance": ("batch", hard), "covariance": ("batch", hard / 2)})
    estimates |= {f"{name}, measured": one for name in kinds}
    made = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    settings = {
        "systems": [s for s in made if "ten" not in s["name"]],
        "unequal": 0.5,
        "pools": [s for s in made if "ten" in s["name"]],
        "mechanisms": [{"name": "of five", **trees}, {"name": "mixed", **ants}],
        "pool_mechanisms": [{"name": "of ten", **alone}],
        "evaporation": {"name": "", **trees},
    }
    predictions = {f"{name}, measured": xr.Dataset({"variance": np.nan}) for name in kinds}
    found = families("unification", estimates, predictions, settings=settings)
    paired, unpaired = found["fall of the error of ever more trees"]
    assert (paired.at, paired.points) == ({"mechanism": "of five"}, tuple(trees.values()))
    assert (unpaired.at, unpaired.points) == ({"mechanism": "of ten"}, tuple(alone.values()))
    for effect in (paired, unpaired):
        assert effect.value == pytest.approx(0.25)
    assert paired.error < 1e-12
    # By the delta method.
    before, after = 4 * hard, (4 * 5.25 * hard[::-1] - 12 * hard) / 3
    spread = (after / after.mean() - before / before.mean()) * after.mean() / before.mean()
    assert unpaired.error == pytest.approx(spread.std(ddof=1) / 8)
