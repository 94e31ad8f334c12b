"""The experiment `temperature_transfer`: tuning, simulated errors, effects by hand, a small run."""

import jax
import numpy as np
import pytest
import xarray as xr
from scipy import stats

from sims.montecarlo import Draw
from sims.normals import normal
from sims.study.experiment import load_experiment
from sims.theory.neighbours.context import Problems, tables
from sims.weights import FACTORIES
from tests.experiments.helpers import check_figure
from tests.experiments.runs import both_roads, small

own = load_experiment("temperature_transfer")
simulate, predict, effects, tuning, problems = (
    own.module(name) for name in ("simulate", "predict", "effects", "tuning", "problems")
)
LOGS = np.linspace(np.log(0.1), np.log(10), 17)


def valley(place, floor, bend=0.8):
    """Errors whose logarithm is a parabola about a place, (step, size)."""
    return floor * np.exp(bend * (LOGS[:, None] - place) ** 2)


def test_problems_of_a_batch_take_turns():
    """Every batch has problems of its own."""
    assert simulate.turns(Draw.of(1, (), 5).draw(3), 2).tolist() == [6, 7, 6, 7, 6]


def test_tuning_finds_the_bottom_and_what_keeping_costs():
    places, floors = np.array([-0.31, 0.2, 0.83]), np.array([1.0, 0.5, 0.2])
    found = tuning.kept(valley(places, floors), LOGS)
    np.testing.assert_allclose(found.tuned, places, atol=1e-9)
    np.testing.assert_allclose(found.best, floors, rtol=2e-4)
    np.testing.assert_allclose(found.loss, np.exp(0.8 * (places + 0.31) ** 2) - 1, atol=1e-3)
    grown = tuning.kept(valley(places, floors), LOGS, np.array([0, 0.51, 1.14]))
    np.testing.assert_allclose(grown.loss, 0, atol=1e-3)


def test_tuning_is_continuous_where_two_parameters_are_alike():
    """A bottom halfway between two parameters, moved a little: the jackknife needs no jumps."""
    middle = 0.5 * (LOGS[8] + LOGS[9])
    skew = 1 + 0.3 * np.sin(7 * LOGS)[:, None]
    either = [tuning.kept(valley(middle + e, 1.0) * skew, LOGS).best for e in (-1e-7, 1e-7)]
    np.testing.assert_allclose(*either, rtol=1e-6)


def test_tuning_names_no_bottom_at_an_end_or_beside_what_is_missing():
    assert np.isnan(tuning.least(valley(np.array([9.0]), 1.0), LOGS)[0]).all()
    gone = valley(np.array([0.0]), 1.0)
    gone[7:] = np.nan
    assert np.isnan(tuning.least(gone, LOGS)[0]).all()
    assert np.isnan(tuning.between(valley(np.array([0.0]), 1.0), LOGS, np.array([3.0]))).all()


def test_queries_are_normal_within_their_reach(monkeypatch):
    """By the distribution function of SciPy's truncated normal; 1.95/√N is one case in a thousand.

    Waves are left out: to draw as many targets as queries takes a minute.
    """
    settings, count = small("temperature_transfer").settings, 4000
    monkeypatch.setattr(problems, "TARGETS", dict.fromkeys(("holder", "rbf"), lambda *_a, **_k: 0))
    monkeypatch.setattr(problems, "collected", lambda _family, queries: queries)
    queries, same = problems.drawn(settings, 2, count)
    assert queries is same
    assert queries.shape == (count, 2)
    law = stats.truncnorm(-settings["query_reach"], settings["query_reach"], scale=0.3)
    for axis in queries.T:
        assert stats.kstest(axis, law.cdf).statistic < 1.95 / count**0.5
    assert abs(np.corrcoef(queries.T)[0, 1]) < 3.3 / count**0.5


@pytest.mark.parametrize("width", [1, 2])
def test_simulated_errors_are_those_of_the_rules(width):
    """One replicate by the suite's own rules, one at a time, in float64."""
    settings = small("temperature_transfer").settings
    shared = simulate.population(settings, width, 2, "distance")
    key, turn, sizes = jax.random.key(3), np.int64(2), (256, 300)
    found = simulate.errors(key, shared, turn, sizes=sizes, scores="distance")
    keys = np.asarray(normal(key, (300, 2), "float32"), float)[:, :width]
    query = shared.queries[2, :width]
    waves = shared.frequency[2, :, :width]

    def target(x):
        return shared.amplitude[:, 2] @ np.cos(waves @ x.T + shared.phase[2][:, None])

    rules = {
        "relu gap": FACTORIES["relu_gap"](1.0, "distance"),
        "sparsemax": FACTORIES["sparsemax"]("distance"),
        "1.5-entmax": FACTORIES["entmax"](alpha=1.5, scores="distance"),
        "4/3-entmax": FACTORIES["entmax"](alpha=4 / 3, scores="distance"),
    }
    for i, n in enumerate(sizes):
        gaps = target(keys[:n]) - target(query[None])
        for rule, made in rules.items():
            row = problems.WEIGHED.index(rule)
            for step in (2, 11):
                s = shared.temperatures[row, step]
                w = np.asarray(made(query, keys[:n].T, s**0.5))
                error = (gaps @ w) ** 2 + shared.noise_sd**2 * np.sum(w**2)
                np.testing.assert_allclose(found["mse"][:, row, step, i], error, rtol=2e-3)
                assert abs(found["attended"][row, step, i] - np.sum(w > 0)) <= 1
        for step in (0, 9):
            k = int(shared.counts[step])
            w = np.asarray(FACTORIES["top_k"](k, "distance")(query, keys[:n].T, 1.0))
            error = (gaps @ w) ** 2 + shared.noise_sd**2 / k
            np.testing.assert_allclose(found["mse_top_k"][:, step, i], error, rtol=2e-3)
    assert np.isnan(found["mse_top_k"][:, -1]).all()  # more than all keys


def test_predictions_are_means_over_groups_of_problems():
    """Two groups of two problems, against the table of each problem by itself."""
    steps = {rule: {"theory": [1.0, 4.0, 5]} for rule in problems.WEIGHED[1:]}
    steps |= {"softmax": {"theory": [0.01, 0.1, 5]}, "top-k": {"theory": [30, 150, 5]}}
    changed = {"radii": {1: [0.02, 4.0, 90]}, "reach": [200, 800], "parameters": {1: steps}}
    settings = {**small("temperature_transfer").settings, **changed, "problems_per_batch": 2}
    data = predict.errors(settings, 1, 2)
    family = problems.drawn(settings, 1, 4)[0]
    table = tables(Problems(*family), np.geomspace(0.02, 4.0, 90))
    for rule, end in (("1.5-entmax", ""), ("top-k", "_top_k")):
        grid = problems.parameters(settings, "theory", 1)[rule]
        found = table[rule].errors(200, grid[2], settings["noise_sd"])
        own = {"mse": data[f"mse{end}"].sel(size=200), "keys": data[f"keys{end}"].sel(size=200)}
        own = {k: v if end else v.sel(weighed=rule) for k, v in own.items()}
        at = {k: v.isel({"count" if end else "step": 2}) for k, v in own.items()}
        for b, smoothness in enumerate(("β = 1", "β = 2")):
            expected = found.mse[b].reshape(2, 2).mean(1)
            own_mse = at["mse"].sel(smoothness=smoothness).values
            np.testing.assert_allclose(own_mse, expected, rtol=1e-10)
        for kind, values in (("1/n_eff", 1 / found.n_eff), ("attended", found.attended)):
            expected = values.reshape(2, 2).mean(1)
            np.testing.assert_allclose(at["keys"].sel(of=kind).values, expected, rtol=1e-10)


def test_exponents_and_losses_by_hand():
    """Planted valleys whose bottoms move by the law: exponents off by nothing, losses by design."""
    sizes = np.array(own.settings["reach"], float)
    logs = np.linspace(-12, 12, 200)
    rng, width = np.random.default_rng(1), 1
    mse = np.zeros((8, 3, 200, len(sizes), 5))
    for i, smoothness in enumerate(problems.SMOOTHNESS):
        for j, rule in enumerate(problems.WEIGHED):
            beta, nu = effects.BETA[smoothness], problems.ENTMAX.get(rule, np.inf)
            slope = -2 / (2 * beta + 1) if np.isinf(nu) else 2 * (beta - nu) / (nu * (2 * beta + 1))
            bottom = slope * np.log(sizes / sizes[0])
            curve = np.exp(0.05 * (logs[:, None] - bottom) ** 2)
            mse[:, i, :, :, j] = curve * np.exp(0.01 * rng.standard_normal((8, 1, 1)))
    data = xr.Dataset(
        {"mse": (("group", "smoothness", "step", "size", "weighed"), mse)},
        {"smoothness": list(problems.SMOOTHNESS), "weighed": list(problems.WEIGHED), "size": sizes},
    )
    road = effects.Road(
        "theory", {1: "d_k=1"}, {width: data}, sizes, {1: dict.fromkeys(problems.TUNED, logs)}
    )
    cases = [c for c in effects.cases(road) if c.rule in problems.WEIGHED]
    for case in cases:
        made = road.kept(case)(road.values(case).mean(0))
        gone = made.tuned - made.tuned[0]
        np.testing.assert_allclose(made.loss, np.exp(0.05 * gone**2) - 1, atol=2e-3)
        if case.rule == effects.MATCHED[case.smoothness]:
            np.testing.assert_allclose(made.loss, 0, atol=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effects, "cases", lambda _: iter(cases))
        for effect in effects.temperature_slopes(road):
            assert abs(effect.value) < 1e-6


@pytest.mark.slow
def test_a_small_run_of_both_roads():
    experiment = small("temperature_transfer", batches=4, replicates_per_batch=2)
    results = both_roads(experiment, has_theory=lambda point: not point.startswith("sphere"))
    families = effects.effects(results)
    named = {claim.effects for claim in experiment.claims}
    assert named == set(families)
    softmax = [e for e in families["loss of the others"] if e.at["rule"] == "softmax"]
    assert min(e.value for e in softmax) > 2
    for effect in families["attended, simulation over theory"]:
        assert abs(effect.value) < 0.5
    check_figure(experiment, results)
