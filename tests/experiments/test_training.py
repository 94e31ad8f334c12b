"""The experiment `training`: its layers and their training by brute force."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.training.layer import Layer, Task, responses, start, train
from experiments.training.problems import draw_problem
from experiments.training.simulate import (
    LAYERS,
    MEASURED,
    PRIVATE_SHARES,
    draw_task,
    train_and_measure,
)
from experiments.training.statistic import CHANGES, falls, measured
from sims.montecarlo import Draw
from sims.study.results import Results
from sims.study.running import Run


def task_of(**changes):
    known = {
        "additive": 0.4,
        "noise_sd": 0.7,
        "drawn": 0,
        "rate": 0.05,
        "private_share": 1,
        "free": 1,
    }
    return Task(**{k: jnp.float32(v) for k, v in (known | changes).items()})


def heads_by_hand(parts, x, keys, free):
    """Weights (…, H, q, n) and maps (…, H, p, p) of the rescaled heads."""
    query, key, value, output, log_s = map(np.asarray, parts)
    score = (x[..., None, :, :] @ query) @ (keys[..., None, :, :] @ key).swapaxes(-1, -2)
    maps = query.shape[-3] * output @ value
    if not free:
        maps = np.broadcast_to(np.eye(output.shape[-1]), output.shape)
    weights = np.exp(score / np.exp(log_s)[..., None, None])
    return weights / weights.sum(-1, keepdims=True), maps


def by_numpy(parts, x, keys, values, free=True):
    """The rescaled heads (…, H, q, p) of responses (…, n, p)."""
    weights, maps = heads_by_hand(parts, x, keys, free)
    return weights @ values[..., None, :, :] @ maps.swapaxes(-1, -2)


@pytest.mark.theory
def test_heads_trained_by_themselves_know_nothing_of_each_other():
    """And equal heads stay equal on the layer's error, which others do not."""
    first = start(jax.random.key(1), jnp.ones(()), 3, 2, 5, 2)
    equal = start(jax.random.key(1), jnp.zeros(()), 3, 2, 5, 2)
    other = Layer(*(leaf.at[1:].multiply(1.3) for leaf in first))
    sizes = {"n": 8, "queries": 4, "tasks": 2, "steps": 12}
    trained = jax.jit(partial(train, key=jax.random.key(2), **sizes))
    for free in (True, False):
        task = task_of(free=free, drawn=free)
        ends = [
            [trained(layer, task, float(apart)) for layer in (first, other)] for apart in (1, 0)
        ]
        for leaf, whose in zip(*ends[0], strict=True):
            np.testing.assert_allclose(leaf[0], whose[0], atol=1e-5)
        assert jnp.abs(ends[1][0].query[0] - ends[1][1].query[0]).max() > 1e-3
        alike = trained(equal, task, 0.0)
        for leaf in alike:
            np.testing.assert_allclose(leaf, jnp.broadcast_to(leaf[:1], leaf.shape), atol=1e-5)
        moved = jnp.abs(alike.value - equal.value).max()
        assert (moved > 1e-3) == free


@pytest.mark.theory
def test_targets_are_odd_and_of_the_variance_of_their_parts():
    """``½ E(1 − e^{−2|ω|²})`` twice: ``1 − 5^{−1/2}`` of a coordinate, ``1 − (1 + 4/d)^{−d/2}``."""
    x = jax.random.normal(jax.random.key(0), (100, 12))
    keys = jax.random.split(jax.random.key(1), 400)
    draws = jax.jit(
        lambda a: jax.vmap(lambda key: responses(a, key, 4, jnp.concatenate([x, -x])))(keys)
    )
    for share, variance in ((1.0, 1 - 5**-0.5), (0.0, 1 - (4 / 3) ** -6)):
        result, odd = np.split(np.asarray(draws(share)), 2, axis=1)
        np.testing.assert_allclose(result, -odd, atol=1e-9)
        assert float((result**2).mean()) == pytest.approx(variance, rel=0.03)


def test_label_noise_has_the_drawn_ratio_to_the_targets_variance():
    """The variances are those of the test above; sizes take turns, and maps of values."""
    sizes = [[2, 2], [4, 2]]
    law = {"dimension": 12, "noise_ratio": {"loguniform": [0.02, 4]}, "maps": ["a", "b"]}
    for additive, variance in ((1.0, 1 - 5**-0.5), (0.0, 1 - (4 / 3) ** -6), (0.5, 0.6874)):
        drawn = [draw_problem(law | {"additive": additive}, sizes, 3, k) for k in range(4)]
        ratios = [one["noise_sd"] ** 2 / one["noise_ratio"] for one in drawn]
        assert ratios == pytest.approx(4 * [variance], rel=1e-3)
        assert [one["heads"] for one in drawn] == [2, 4, 2, 4]
        assert [one["maps"] for one in drawn] == ["a", "a", "b", "b"]


HEADS, D, P, N, STEPS, QUERIES, SEEDS = 2, 8, 2, 6, 15, 3, 160
SHAPES = [(HEADS, D, 1), (HEADS, D, 1), (HEADS, P, P), (HEADS, P, P), (HEADS,)]
FAR = 4.5
"""Joint standard errors; 84 numbers are held to it, a false alarm once in 1,700 sets of draws."""


def unpacked(parameters):
    """W_Q, W_K, W_V, W_O and log s of rows of parameters (…, K)."""
    ends = np.cumsum([np.prod(shape) for shape in SHAPES])[:-1]
    parts = np.split(parameters, ends, axis=-1)
    return [part.reshape(*part.shape[:-1], *s) for part, s in zip(parts, SHAPES, strict=True)]


def start_by_hand(rng, private):
    """Rows of parameters (seed, K) of heads that have all but a private share in common."""
    parts = []
    for heads, rows, columns in SHAPES[:-1]:
        common, own = (rng.normal(size=(SEEDS, h, rows, columns)) for h in (1, heads))
        mixed = ((1 - private) ** 0.5 * common + private**0.5 * own) / rows**0.5
        parts.append(mixed.reshape(SEEDS, -1))
    return np.concatenate([*parts, np.zeros((SEEDS, HEADS))], axis=1)


def targets_by_hand(rng, additive, count):
    """Functions R^D → R^P, one for each of (count, seed)."""
    along, any_way = rng.normal(size=(2, count, SEEDS, P, 8, D))
    along = along * np.eye(8, D)

    def target(x):
        waves = [
            np.sin(np.einsum("csnd,cspjd->csnpj", x, g)).sum(-1) for g in (along, any_way / D**0.5)
        ]
        return (additive / 4) ** 0.5 * waves[0] + ((1 - additive) / 4) ** 0.5 * waves[1]

    return target


def loss_by_hand(parameters, problem, alone, x, labels, keys, values):
    """The loss (…,) of the layer's average, or the mean of its heads' own."""
    free = problem["maps"] == "trained"
    weights, maps = heads_by_hand(unpacked(parameters), x, keys, free)
    heads = by_numpy(unpacked(parameters), x, keys, values, free)
    if not alone:
        heads = heads.mean(-3, keepdims=True)
    error = ((heads - labels[..., None, :, :]) ** 2).mean((-3, -2, -1))
    if problem["labels"] == "drawn":
        return error
    # what a label of one of the P outputs adds to each of them
    response = maps[..., None, :, :, None] * weights[..., :, None, None, :]
    if not alone:
        response = response.mean(-5, keepdims=True)
    noise = (response**2).sum((-2, -1)).mean((-3, -2, -1))
    return error + problem["noise_sd"] ** 2 * noise


def train_by_hand(rng, parameters, problem, alone):
    """Adam on the loss of a fresh task per step, by derivatives in complex steps."""
    first = second = np.zeros_like(parameters)
    count = parameters.shape[1]
    for step in range(STEPS):
        target = targets_by_hand(rng, problem["additive"], 1)
        x = rng.normal(size=(SEEDS, N + QUERIES, D))
        y = target(x[None])[0]
        if problem["labels"] == "drawn":
            y = y + problem["noise_sd"] * rng.normal(size=y.shape)
        moved = parameters + 1e-20j * np.eye(count)[:, None]
        draws = x[:, N:], y[:, N:], x[:, :N], y[:, :N]
        gradient = loss_by_hand(moved, problem, alone, *draws).imag.T / 1e-20
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        size = np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8
        rate = problem["rate"] * (1 + np.cos(np.pi * step / STEPS)) / 2
        parameters = parameters - rate * first / (1 - 0.9 ** (step + 1)) / size
    return parameters


def shares_by_hand(parts, x, keys):
    """The n_eff/n (seed, head) of weights, means over tasks and queries."""
    weights, _ = heads_by_hand(parts, x, keys, False)
    return (1 / (weights**2).sum(-1)).mean((0, -1)) / N


def at_shares_by_hand(rng, parts, others):
    """Parts whose heads have the mean n_eff/n of others, at temperatures found by bisection."""
    x, keys = (rng.normal(size=(64, SEEDS, rows, D)) for rows in (QUERIES, N))
    wanted = shares_by_hand(others, x, keys).mean(1, keepdims=True)
    *maps, log_s = parts
    low, high = log_s - 3, log_s + 4
    for _ in range(8):
        middle = (low + high) / 2
        sharper = shares_by_hand([*maps, middle], x, keys) < wanted
        low, high = np.where(sharper, [middle, high], [low, middle])
    return [*maps, low]


def measured_by_hand(rng, parts, problem, tasks=8):
    """What is measured of trained layers on new tasks with drawn labels, by name, (seed,)."""
    target = targets_by_hand(rng, problem["additive"], tasks)
    x = rng.normal(size=(tasks, SEEDS, QUERIES, D))
    free = problem["maps"] == "trained"
    heads, effective = [], []
    for _ in range(2):
        keys = rng.normal(size=(tasks, SEEDS, N, D))
        y = target(keys)
        y = y + problem["noise_sd"] * rng.normal(size=y.shape)
        heads.append(by_numpy(parts, x, keys, y, free))
        effective.append(shares_by_hand(parts, x, keys).mean(-1))
    truth = target(x)[:, :, None]
    gap = np.subtract(*heads)
    own = (gap**2).sum(2).mean((0, 2, 3)) / 2 / HEADS**2
    whole = (gap.mean(2) ** 2).mean((0, 2, 3)) / 2
    errors = np.mean([((one.mean(2) - truth[:, :, 0]) ** 2).mean((0, 2, 3)) for one in heads], 0)
    alone = np.mean([((one - truth) ** 2).mean((0, 2, 3, 4)) for one in heads], 0)
    first, second = np.moveaxis(parts[1][..., 0], 1, 0)
    cosine = (first * second).sum(1) / np.sqrt((first**2).sum(1) * (second**2).sum(1))
    return {
        "mse": errors,
        "alone": alone,
        "variance": whole,
        "covariance": whole - own,
        "subspaces": 1 - cosine**2,
        "selectivity": np.mean(effective, 0),
        "zero": (truth**2).mean((0, 2, 3, 4)),
    }


@pytest.mark.theory
@pytest.mark.parametrize(("maps", "labels"), [("averaged", "expected"), ("trained", "drawn")])
def test_trained_layers_are_those_of_brute_force(maps, labels):
    """Errors, variances, subspaces and n_eff/n at both temperatures, means over 160 seeds."""
    law = dict(Run.load("training").spec.law)
    law |= {"dimension": D, "responses": P, "keys": N, "maps": maps, "labels": labels}
    law |= {"rate": 0.1, "start": "random", "noise_ratio": 4.0}
    del law["sizes"], law["text"]
    problem, sizes = draw_problem(law, [(HEADS, 1)], 0, 0), [(HEADS, 1)]
    task = draw_task(Draw.from_seed(0, (0,), 2).draw(0), law, sizes, 0)
    training = {"steps": STEPS, "tasks": 1, "queries": QUERIES}
    held_out = {"tasks": 8, "queries": QUERIES, "designs": 2}
    replicate = partial(
        train_and_measure,
        heads=HEADS,
        width=1,
        n=N,
        dimension=D,
        outputs=P,
        training=tuple(training.items()),
        held_out=tuple(held_out.items()),
    )
    keys = jax.random.split(jax.random.key(1), SEEDS)
    found = jax.jit(lambda: jax.lax.map(lambda key: replicate(key, None, task), keys))()
    private = PRIVATE_SHARES["random"]
    ends = {}
    for layer, share in (("joint", private), ("separate", private), ("identical", 0.0)):
        rng = np.random.default_rng(2)  # the same heads in common, and the same tasks
        trained = train_by_hand(rng, start_by_hand(rng, share), problem, layer == "separate")
        ends[layer] = unpacked(trained)
    for layer in ("joint", "separate"):
        ends[f"{layer}, common"] = at_shares_by_hand(rng, ends[layer], ends["identical"])
    ends["identical, sharp"] = at_shares_by_hand(rng, ends["identical"], ends["joint"])
    far = {}
    for place, layer in enumerate(LAYERS):
        for name, values in measured_by_hand(rng, ends[layer], problem).items():
            ours = np.asarray(found[name])[:, place]
            error = np.hypot(ours.std(), values.std()) / SEEDS**0.5
            far[layer, name] = (ours.mean() - values.mean()) / (error + 1e-6)
    np.testing.assert_allclose(found["outputs"][:, LAYERS.index("identical")], 0, atol=1e-5)
    assert set(MEASURED) - {name for _, name in far} == {"outputs"}
    assert max(map(abs, far.values())) < FAR, far


def test_changes_of_terms_add_up_to_that_of_the_error():
    """Bias, own variance and covariance of the heads; and a head alone less the ambiguity."""
    rng, data = np.random.default_rng(7), xr.Dataset(coords={"layer": [*LAYERS]})
    for name in ("mse", "variance", "covariance", "alone"):
        shape = 3, len(LAYERS), 5
        data[name] = ("batch", "layer", "replicate"), rng.uniform(1, 2, shape)
    terms = measured(Results({"2 of 2": data}, {}, {}))
    change = {name: -falls(terms, "identical", name).mean(1) for name in CHANGES}
    error = data["mse"].mean("replicate")
    kept = error.sel(layer="joint") / error.sel(layer="identical")
    np.testing.assert_allclose(change["mse"], kept - 1)
    parts = change["bias"] + change["own"] + change["covariance"]
    np.testing.assert_allclose(parts, change["mse"])
    np.testing.assert_allclose(change["alone"] - change["ambiguity"], change["mse"])
