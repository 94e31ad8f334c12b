"""The experiment `temperature`: held-out errors by loops, tuned ones by the library."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import softmax

from experiments.temperature import problems, rules, simulate
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.problem.normals import normal
from sims.study.running import Run
from sims.theory import FEW_KEYS
from sims.theory import predict as library
from sims.weights import FACTORIES

EXPERIMENT = Run.load("temperature")


@pytest.fixture(scope="module")
def drawn():
    """In one dimension and in two, in turns; little noise leaves the second few keys."""
    fields = [EXPERIMENT.study.draw(number).drawn for number in range(4)]
    made = []
    for place, noise in enumerate((2.0, 0.1, 2.0, 2.0)):
        turn = {"width": 1 + place % 2, "noise_sd": noise, "context": 128}
        made.append(problems.Problem(fields[place] | turn))
    return made


@pytest.fixture(scope="module")
def population(drawn):
    """The first problem, with what its heads have learned."""
    return simulate.population(drawn[:1], 1, {"steps": 200, "rate": 0.1})


def weights(name, z, parameter):
    """By sorting, by definition, or by a root of the weights' sum."""
    if name == "top-k":
        return (z >= np.sort(z)[-int(parameter)]) / int(parameter)
    z = z / parameter
    if name.startswith("softmax"):
        parts = softmax(z)
    elif name == "relu gap":
        parts = np.maximum(z - z.max() + 1, 0)
    else:
        nu = rules.POWERS[name]

        def parts_of(threshold):
            return np.maximum(z / nu - threshold, 0) ** nu

        ends = z.max() / nu - 1 - 1e-9, z.max() / nu
        parts = parts_of(brentq(lambda t: parts_of(t).sum() - 1, *ends, xtol=1e-14))
    return parts / parts.sum()


def test_held_out_errors_by_loops(drawn, population):
    """Of every rule, on the keys within reach: squared bias at a query, and label noise."""
    problem = jax.tree.map(lambda leaf: jnp.asarray(leaf[0], jnp.float32), population)
    problem = problem._replace(context=jnp.float32(8.0))
    problem = problem._replace(
        parameters=problem.parameters.at[problems.NAMES.index("top-k")].set(5.0)
    )
    key = jax.random.key(4)
    held_out = jax.jit(partial(simulate.held_out, most=256))
    result, n = held_out((key, problem)), rules.SIMULATED * 8
    at_keys = jax.jit(lambda: problem.at_keys(key, 16, 256))
    score = np.asarray(at_keys()[0], float)[:, :n]
    tasks, noise = drawn[0].tasks, drawn[0].drawn["noise_sd"]
    keys = np.array(normal(key, (256, 2), jnp.float32))[:n, :1]
    points = np.stack([np.vstack([query, keys]) for query in tasks.queries])
    waves = np.cos(np.einsum("pjd,pnd->pjn", tasks.frequency, points) + tasks.phase[..., None])
    values = np.einsum("pj,pjn->pn", tasks.amplitude[0], waves)
    gaps = values[:, 1:] - values[:, :1]
    for row, name in enumerate(problems.NAMES):
        for column, parameter in enumerate(np.asarray(problem.parameters[row], float)):
            if np.isnan(parameter):
                assert np.isnan(result[row, column])
                continue
            each = []
            for z, gap in zip(score, gaps, strict=True):
                w = weights(name, z, parameter)
                each.append((w @ gap) ** 2 + noise**2 * (w @ w))
            assert float(result[row, column]) == pytest.approx(np.mean(each), rel=2e-3)


@pytest.mark.theory
def test_what_is_kept_has_the_error_of_the_library_whatever_is_drawn_beside_it(drawn):
    """The smallest of all widths, families and lengths, one task at a time."""
    together = problems.tuned(drawn)
    for place in (0, 1, 3):
        one, task_of = drawn[place], drawn[place].tasks
        alone = problems.tuned([one])
        np.testing.assert_allclose(together["kept"][place], alone["kept"][0], rtol=2e-3)
        chosen = alone.isel(number=0).sel(rule="1.5-entmax", ratio=16)
        every, shares = [], []
        for amplitude, frequency, phase, query in zip(
            task_of.amplitude[0], *task_of[1:], strict=True
        ):
            width = one.drawn["width"]
            series = TrigonometricSeries(amplitude, frequency, phase)
            task = Task(DESIGNS["isotropic"](width), series, one.drawn["noise_sd"])
            rule = FACTORIES["entmax"](nu=2.0, scores="distance")
            heads = Heads(np.eye(width)[None], rule, float(chosen["held"]) ** 0.5)
            terms = library(task, heads, int(16 * one.drawn["context"]), query[None])
            every.append(float(terms["mse"]))
            shares.append(float(1 / terms["n_eff"].mean()))
        assert float(chosen["kept"]) == pytest.approx(np.mean(every), rel=0.01)
        assert chosen["known"] == (1 / np.mean(shares) >= FEW_KEYS) == (place != 1)
        assert (alone["kept"] >= alone["best"]).all() or alone["kept"].isnull().any()


def test_scores_that_grow_like_log_n_are_colder_by_it(drawn):
    """To half a step of the grid of temperatures, which is 6 %."""
    held = problems.tuned(drawn[:1]).isel(number=0)["held"]
    colder = held.sel(rule="softmax, log n") / held.sel(rule="softmax")
    np.testing.assert_allclose(colder, np.log(128) / np.log(128 * problems.RATIOS), rtol=0.03)


def test_heads_learn_the_temperature_of_least_error(drawn, population):
    """Where theory is in its range the temperatures are theory's, within a quarter."""
    best = problems.tuned(drawn[:1]).sel(ratio=1)["tuned"].values
    places = [problems.NAMES.index(name) for name in simulate.LEARNERS]
    ratio = population.parameters[:, places, 2] / best[:, places]
    assert np.abs(np.log(ratio)).max() < 0.25
