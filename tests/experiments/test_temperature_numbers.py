"""Targets, keys and errors of `temperature_transfer` and `learned_temperature`, made by hand."""

from itertools import combinations, product
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.problem import TARGETS
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import is_ratio_of
from tests.experiments.runs import small

transfer = load_experiment("temperature_transfer")
effects, problems, roads, simulate = (
    transfer.module(name) for name in ("effects", "problems", "roads", "simulate")
)
learning = load_experiment("learned_temperature")
learned, predict = (learning.module(name) for name in ("effects", "predict"))
BATCHES, BEND = 6, 0.05


@pytest.mark.parametrize("width", [1, 2])
def test_problems_are_the_suites_targets_of_one_seed_after_another(width):
    """Waves of a population, padded to the plane, against every target by itself."""
    settings = small("temperature_transfer").settings
    made = simulate.population(settings, width, 2, "distance")
    places = np.random.default_rng(0).normal(size=(5, width))
    wide = np.pad(places, ((0, 0), (0, simulate.PLANE - width)))
    count = 2 * settings["problems_per_batch"]
    assert made.amplitude.shape[:2] == (3, count)
    seen = []
    for p in range(count):
        seed = settings["target_seed"] + p
        own = [
            TARGETS["holder"](width, seed=seed, beta=beta, levels=settings["levels"])
            for beta in (1.0, 2.0)
        ]
        own.append(TARGETS["rbf"](width, seed=seed, **settings["analytic"]))
        expected = [np.asarray(target(places)) for target in own]
        found = made.amplitude[:, p] @ np.cos(made.frequency[p] @ wide.T + made.phase[p][:, None])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        seen.append(found)
    # No two of one smoothness are alike.
    assert all((abs(one - other).max(1) > 0.1).all() for one, other in combinations(seen, 2))


def test_two_keys_on_the_sphere_are_attended_to_by_archimedes():
    """Scores of uniform keys in R^3 are uniform on [−1, 1]; a second key counts within νs.

    Two scores are as near with probability 1 − (1 − νs/2)²; of 4096 draws, within 4.9 standard
    errors at three powers: one false alarm in 3·10⁵.
    """
    temperatures, count = (1.0, 0.25, 0.1), 4096

    def attended(key):
        own = simulate.on_sphere(key, None, None, width=3, temperatures=temperatures, sizes=(2,))
        return own["attended_on_sphere"][:, 0]

    found = np.asarray(jax.vmap(attended)(jax.random.split(jax.random.key(5), count)))
    assert set(np.unique(found)) == {1, 2}
    reach = np.array(list(problems.ENTMAX.values())) * temperatures
    near = 1 - (1 - reach / 2) ** 2
    gaps = found.mean(0) - 1 - near
    assert (np.abs(gaps) < 4.9 * np.sqrt(near * (1 - near) / count)).all(), gaps


def valleys(sizes, floors, places, logs, bend=BEND):
    """Errors (batch, smoothness, step, size, rule), floor × exp(bend × gap²) about the places."""
    curve = floors * np.exp(bend * (logs[:, None, None] - places) ** 2)
    wobble = np.exp(0.01 * np.random.default_rng(0).normal(size=(BATCHES, 1, 1, 1, 1)))
    return xr.Dataset(
        {
            "mse": (
                ("batch", "smoothness", "step", "size", "weighed"),
                wobble * np.broadcast_to(curve, (BATCHES, 3, *curve.shape)),
            )
        },
        {"smoothness": list(problems.SMOOTHNESS), "weighed": list(problems.WEIGHED), "size": sizes},
    )


FLOOR = np.array([[1.0, 1.3, 0.8, 0.7, 0.9], [0.5, 0.9, 0.6, 0.4, 0.3], [0.2, 0.6, 0.3, 0.1, 0.15]])
"""Least errors by size and rule."""
PLACE = np.array([[0.0, 0.1, -0.2, 0.3, -0.1], [0.4, -0.6, 0.5, 1.0, -0.9], [1, -1.4, 0.6, 2, -2]])
"""Logarithms of the best temperatures."""
SIZES = np.array([256.0, 1024.0, 4096.0])


def weighed(monkeypatch):
    """Rules that have a temperature, alone."""
    every = roads.cases
    monkeypatch.setattr(
        effects, "cases", lambda road: (c for c in every(road) if c.rule in problems.WEIGHED)
    )


def test_what_more_keys_of_unequal_norms_remove_is_removed_at_the_kept_temperature(monkeypatch):
    """1 − floor·exp(bend·move²) at 4096 keys, over the floor at 256 where it was tuned."""
    weighed(monkeypatch)
    grid = (0.001, 1000.0, 97)
    data = valleys(SIZES, FLOOR, PLACE, np.log(np.geomspace(*grid)))
    settings = {
        "unequal": 2,
        "sizes": SIZES.tolist(),
        "parameters": {
            2: {rule: {"dot": list(grid)} for rule in problems.WEIGHED}
            | {"top-k": {"dot": [8, 64, 4]}}
        },
    }
    results = SimpleNamespace(settings=settings, estimates={"unequal norms": data})
    found = effects.unequal_error(results)
    assert len(found) == 3 * len(problems.ENTMAX)
    for effect in found:
        k = problems.WEIGHED.index(effect.at["rule"])
        last = FLOOR[2, k] * np.exp(BEND * (PLACE[2, k] - PLACE[0, k]) ** 2)
        assert effect.value == pytest.approx(1 - last / FLOOR[0, k], rel=2e-3)


def test_simulated_losses_stand_at_the_sizes_that_they_are_of(monkeypatch):
    """exp(bend × move²) − 1 at 1024 and 4096 keys; nothing is lost where it was tuned."""
    weighed(monkeypatch)
    logs = np.linspace(-7, 7, 97)
    made = roads.Road(
        "simulation",
        {1: "d_k=1"},
        {1: valleys(SIZES, FLOOR, PLACE, logs)},
        SIZES,
        {1: dict.fromkeys(problems.TUNED, logs)},
    )
    for name in ("theory_of", "simulation_of"):
        monkeypatch.setattr(effects, name, lambda _results: made)
    others = (
        "losses",
        "compared",
        "temperature_slopes",
        "support_slopes",
        "attended",
        "sphere",
        "unequal_attended",
        "unequal_error",
        "against",
        "retuned",
        "gap_to_softmax",
    )
    for name in others:
        monkeypatch.setattr(effects, name, lambda *_, **__: [])
    found = effects.effects(SimpleNamespace())["simulated loss"]
    assert len(found) == 3 * len(problems.WEIGHED) * 2
    for effect in found:
        i = SIZES.tolist().index(effect.at["size"])
        k = problems.WEIGHED.index(effect.at["rule"])
        expected = np.expm1(BEND * (PLACE[i, k] - PLACE[0, k]) ** 2)
        assert effect.value == pytest.approx(expected, abs=2e-3)
        assert f"n = {SIZES[i]:g}" in effect.label


def test_losses_of_both_roads_are_compared_at_theorys_temperatures(monkeypatch):
    """exp((one bend − the other) × move²) − 1, where simulation bends half as much."""
    weighed(monkeypatch)
    logs = np.linspace(-7, 7, 97)
    grids = {1: dict.fromkeys(problems.TUNED, logs)}
    own, other = (
        roads.Road(name, {1: "d_k=1"}, {1: valleys(SIZES, floor, PLACE, logs, bend)}, SIZES, grids)
        for name, floor, bend in (("simulation", 2 * FLOOR, BEND / 2), ("theory", FLOOR, BEND))
    )
    monkeypatch.setattr(effects, "effective", lambda *_: SIZES[[1, 0, 2]])
    found = effects.compared(own, other)
    assert len(found) == 3 * len(problems.WEIGHED) * 2
    for effect in found:
        i = SIZES.tolist().index(effect.at["size"])
        k = problems.WEIGHED.index(effect.at["rule"])
        move = PLACE[i, k] - PLACE[0, k]
        assert effect.value == pytest.approx(np.expm1(-BEND / 2 * move**2), abs=2e-3)
        assert effect.at["n_eff"] == SIZES[0]  # the least so far


def test_exponents_are_those_from_64_times_the_size_of_tuning_on(monkeypatch):
    """Best temperatures and attended keys follow their laws from 16,384 keys on, not before."""
    weighed(monkeypatch)
    sizes = 256.0 * 4.0 ** np.arange(7)
    late = sizes >= 64 * sizes[0]
    logs, powers = np.linspace(-9, 9, 145), problems.ENTMAX
    places, counts = np.zeros((2, len(sizes), len(problems.WEIGHED)))
    # The law of β = 2 and d_k = 2; effects that are held against that of β = 1 are left out.
    for k, rule in enumerate(problems.WEIGHED):
        nu = powers.get(rule, np.inf)
        law = -1 / 3 if np.isinf(nu) else (2 - nu) / (3 * nu)
        places[:, k] = law * np.log(sizes / sizes[0]) + np.where(late, 0.0, 0.4)
        counts[:, k] = 3.0 if np.isinf(nu) else sizes ** (nu / (nu + 1)) * np.where(late, 1, 0.5)
    data = valleys(sizes, np.ones_like(places), places, logs)
    shape = (2, BATCHES, len(logs), *counts.shape)
    data["keys"] = (("of", "batch", "step", "size", "weighed"), np.broadcast_to(counts, shape))
    data = data.assign_coords(of=["1/n_eff", "attended"])
    grids = {2: dict.fromkeys(problems.TUNED, logs)}
    made = roads.Road("theory", {2: "d_k=2"}, {2: data}, sizes, grids)
    slopes = [e for e in effects.temperature_slopes(made) if e.at["beta"] == 2]
    assert {effect.at["rule"] for effect in slopes} == {"softmax", *powers}
    for effect in (*slopes, *effects.support_slopes(made)):
        assert effect.value == pytest.approx(0, abs=1e-3), effect.label


LENGTHS, PLACES = (1, 4, 16, 64), 5
RULES = ("softmax", "sparsemax", "1.5-entmax")


@pytest.fixture
def streams():
    """Errors that all differ; the best rule and temperature are others at every length."""
    rng, estimates = np.random.default_rng(8), {}
    for stream, rule in product(("smooth", "rough"), RULES):
        size = np.exp(rng.normal(size=(len(LENGTHS), PLACES))) / np.array(LENGTHS)[:, None]
        noise = 1 + 0.03 * rng.normal(size=(2, BATCHES, 1, 1))
        estimates[f"{stream}, {rule}"] = xr.Dataset(
            {
                "kept": (("batch", "length"), 2 * (noise[0] * size)[..., 0]),
                "tuned": (("batch", "length", "place"), noise[1] * size),
            },
            {"length": list(LENGTHS)},
        )
    settings = {"best": {"smooth": dict.fromkeys(RULES), "rough": dict.fromkeys(RULES)}}
    at = {name: {} for name in estimates}
    return Results("learned_temperature", "smoke", estimates, {}, settings, at, {}, {})


def least(results, stream):
    """By loops: at every length the rule and the place whose mean error is least."""
    own = {rule: results.estimates[f"{stream}, {rule}"]["tuned"].values for rule in RULES}
    chosen = []
    for i in range(len(LENGTHS)):
        every = [(own[rule][:, i, p].mean(), rule, p) for rule in RULES for p in range(PLACES)]
        _, rule, p = min(every)
        chosen.append((rule, p, own[rule][:, i, p]))
    return chosen


def test_losses_are_over_the_best_rule_at_its_best_temperature_at_every_longer_context(streams):
    found = learned.effects(streams)["loss"]
    at_length = {(e.at["stream"], e.at["rule"], e.at["length"]): e for e in found}
    expected = product(("smooth", "rough"), RULES, LENGTHS[1:])
    assert len(found) == len(at_length)
    assert set(at_length) == set(expected)
    for stream in ("smooth", "rough"):
        chosen = least(streams, stream)
        assert len({(rule, p) for rule, p, _ in chosen}) == len(LENGTHS)
        assert {rule for rule, _, _ in chosen} - {learned.MATCHED[stream]}
        for rule, (i, length) in product(RULES, enumerate(LENGTHS)):
            kept = streams.estimates[f"{stream}, {rule}"]["kept"].values[:, i]
            if i:
                is_ratio_of(at_length[stream, rule, float(length)], kept, chosen[i][2], 1.0)


def test_theorys_error_is_the_mean_over_held_out_tasks(monkeypatch):
    """One task that is much harder than the others counts in full: (1 + 2 + 9)/3 = 4.

    The squared bias, half of each error, is beside it.
    """
    errors = iter([1.0, 2.0, 9.0])

    def terms(error):
        return {"mse": error, "squared_bias": error / 2}

    monkeypatch.setattr(predict, "learned", lambda *_: 0.0)
    task = TARGETS["constant"](1), np.zeros(2)
    monkeypatch.setattr(predict, "keys_of", lambda *_: np.zeros((1, 2)))
    monkeypatch.setattr(predict, "held_out_task", lambda *_: task)
    monkeypatch.setattr(predict, "theory", lambda *_: terms(next(errors)))
    course = predict.Course.of(learning.settings, "smooth", "softmax")
    assert predict.of_seed(course, 1, 0, 64, {"tasks": 3, "queries": 2}) == pytest.approx(
        [4.0, 2.0]
    )


def test_theory_is_asked_at_the_longest_context(monkeypatch):
    """64 times 64 keys, which is where simulation is compared with it."""
    monkeypatch.setattr(predict, "of_seed", lambda *asked: [float(asked[3]), 1.0])
    for data in predict.predict(learning).values():
        assert data["each_mse"].sizes["seed"] == learning.simulation.batches
        np.testing.assert_array_equal(data["each_mse"], 4096.0)
        np.testing.assert_array_equal(data["each_squared_bias"], 1.0)
