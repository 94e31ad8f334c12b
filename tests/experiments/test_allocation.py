"""The experiment `allocation`: both roads by independent computation, verdicts that can fail."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo.draws import Draws
from sims.problem import Heads, Task, TrigonometricSeries, redundant_views
from sims.simulation import draw, nw_weights
from sims.study.experiment import load_experiment
from sims.theory import view_terms
from tests.experiments.helpers import check_figure, verdicts
from tests.experiments.runs import both_roads, small

simulate, predict, effects = (
    load_experiment("allocation").module(name) for name in ("simulate", "predict", "effects")
)


@pytest.fixture(scope="module")
def experiment():
    return small("allocation", batches=64, replicates_per_batch=2)


@pytest.fixture(scope="module")
def settings(experiment):
    return experiment.settings


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment)


def changed(results, **mse):
    """The results with other simulated errors."""
    return replace(results, estimates={"splits": results.estimates["splits"].assign(**mse)})


@pytest.fixture(scope="module")
def lawful(results):
    """Simulated errors made to be theory's, with a little noise."""
    data = results.estimates["splits"]
    noise = 1 + 2e-3 * np.random.default_rng(0).normal(size=data["mse"].shape)
    made = data["mse"] * 0 + results.predictions["splits"]["mse"]
    return changed(results, mse=made.transpose(*data["mse"].dims) * noise)


def drawn(seed, batches, replicates, settings):
    """Queries and waves of some batches."""
    draws = Draws.of(seed, (), replicates)
    rows = [simulate.drawn(draws.draw(batch), settings) for batch in range(batches)]
    return tuple(np.stack(part) for part in zip(*rows, strict=True))


@pytest.mark.theory
def test_simulation_by_plain_attention(settings):
    """One replicate against float64 weights of real heads, wave by wave."""
    small = settings | {"waves": 2, "queries": {"scale": 0.6, "count": 2}}
    n, grid, latent = (50, 80), settings["simulated"], settings["latent"]
    law, splits = simulate.arranged(small)
    here = Draws.of(3, (), 2).draw(0)
    at, waves = (part[0] for part in simulate.drawn(here, small))
    key = replace(here, replicate=0).key
    shared = (law, type(splits)(*map(jnp.asarray, splits)), np.float32(2.0))
    # width, rung, family, n, budget
    mse = np.asarray(simulate.split_errors(key, shared, (at, waves), n=n, families=2)["mse"])
    task = Task(law, TrigonometricSeries([0.0], np.zeros((1, len(law.covariance))), [0.0]), 1.0)
    x = np.asarray(draw(task, key, max(n), np.float32)[0], float)
    for i, width in enumerate(grid["widths"]):
        for k, bandwidth in enumerate([*small["ladder"], small["bandwidth"] * width**0.25]):
            for b, budget in enumerate(grid["budgets"]):
                frames = redundant_views(latent, 24 // width, width, small["noise"])[1]
                heads = Heads(frames[: budget // width], "gaussian", bandwidth)
                expected = np.zeros((2, 2))
                for q, query in enumerate(np.asarray(at, float)):
                    for j, count in enumerate(n):
                        pooled = nw_weights(
                            heads, np.pad(query, (0, 24)), x[:count]
                        ).mean(0)  # fmt: skip
                        for w, wave in enumerate(np.asarray(waves[q], float)):
                            for phase in (0.4, 0.4 - np.pi / 2):
                                values = 2**0.5 * np.cos(x[:count, :latent] @ wave + phase)
                                gap = pooled @ values - 2**0.5 * np.cos(query @ wave + phase)
                                expected[w // 2, j] += gap**2 / 8
                        expected[:, j] += 4.0 * float(np.sum(pooled**2)) / 2
                np.testing.assert_allclose(mse[i, k, :, :, b], expected, rtol=2e-3)


def test_draws_have_their_laws(settings):
    """Second moments of queries and waves, and the rough family's covariance; 5 standard errors."""
    at, waves = drawn(1, 4, 8, settings)
    assert at.std() == pytest.approx(settings["queries"]["scale"], rel=0.03)
    smooth, rough = np.split(waves, 2, axis=3)
    expected = np.exp(-0.4 * np.arange(settings["latent"])) / 2.0
    np.testing.assert_allclose(smooth.reshape(-1, settings["latent"]).std(0), expected, rtol=0.06)
    size = smooth[..., 0].size
    for distance in (0.5, 3.0):
        mean = np.cos(distance * rough[..., 0]).mean()
        assert mean == pytest.approx(np.exp(-distance / 2), abs=5 / np.sqrt(2 * size))
    again = drawn(1, 2, 8, settings)
    np.testing.assert_array_equal(again[0], at[:2])


def test_width_that_does_not_divide_has_no_error(settings):
    _, splits = simulate.arranged(settings | {"simulated": settings["simulated"] | {
        "widths": [1, 8], "budgets": [12, 24]}})  # fmt: skip
    assert np.isnan(splits.pool[1, 0]).all()
    assert splits.pool[1, 1].tolist() == pytest.approx([1 / 3] * 3 + [0] * 21)
    assert splits.pool[0, 0].tolist() == pytest.approx([1 / 12] * 12 + [0] * 12)


def test_valley_of_a_parabola():
    x = np.arange(6.0)
    shapes = np.exp(0.3 * (x - np.array([[2.3], [0.1], [4.4]])) ** 2)
    shapes[2, 5] = np.nan
    least, place, inside = predict.valley(shapes, x)
    assert (least[0], place[0]) == (pytest.approx(1.0), pytest.approx(2.3))
    assert inside.tolist() == [True, False, False]
    assert (place[1], least[1]) == (0.0, shapes[1, 0])
    assert place[2] == 4.0
    gone = predict.valley(np.full((1, 4), np.nan), x[:4])
    assert np.isnan(gone[0][0])
    assert not gone[2][0]


@pytest.mark.theory
def test_slope_of_the_logarithmic_law(settings):
    """At a fixed b, d_k* gains 1/(α + log ρ) for every e in n, ρ between those of r_hg and r_hh.

    What a coordinate adds to r is read off r itself, at two widths.
    """
    optimum = predict.predict(load_experiment("allocation", "smoke"))["splits"]["optimum"]
    at = optimum.sel(temperature="fixed", family="smooth").sel(dense_n=[1e4, 1e8], method="nearest")
    two = view_terms(np.array([1, 2]), settings["bandwidth"], noise=settings["noise"],
                     relevance=np.zeros(2), query_scale=settings["queries"]["scale"])  # fmt: skip
    few, many = (np.log(r[1] / r[0]) for r in (two.noise_variance, two.noise_covariance))
    for budget, growth in ((24, few), (512, many)):
        first, last = at.sel(dense_budget=budget).values
        assert (last - first) / np.log(1e4) == pytest.approx(1 / (0.8 + growth), rel=0.03)


@pytest.mark.theory
def test_square_root_far_out(settings):
    """With b re-tuned d_k(d_k + 2) ~ (2/α) log n, but only far beyond 10^8."""
    wide = settings | {"latent": 40, "families": {"smooth": None}}
    widths, bands = np.arange(1, 41), np.geomspace(1e-3, 3, 120)
    n = np.array([1e2, 1e8, 1e16, 1e32, 1e64])
    every = predict.terms(wide, widths, np.tile(bands, (40, 1)))
    mse, n_eff = predict.errors(every, n, np.maximum(24 / widths, 1)[None], wide)
    mse = np.where(n_eff >= 10, mse, np.nan)
    best = predict.valley(predict.valley(mse, np.log(bands))[0], widths.astype(float))[1].ravel()
    power = np.diff(np.log(best)) / np.diff(np.log(np.log(n)))
    assert power[0] > 0.65
    assert power[2:] == pytest.approx(0.5, abs=0.03)
    assert best[-1] * (best[-1] + 2) / np.log(n[-1]) == pytest.approx(2 / 0.8, rel=0.15)


def test_every_claim_is_judged_and_drawn(results, experiment):
    judged = verdicts(experiment, results)
    assert set(judged) == {(c.id, c.regime) for c in experiment.claims}
    assert "nan" not in check_figure(experiment, results).lower()


def test_verdicts_can_go_both_ways(lawful, experiment):
    words = ("fixed temperature", "Transformer's temperature", "re-tuned bandwidth")
    both = [("allocation", f"both roads, {name}") for name in words]
    agree = ("allocation", "error by both roads")
    inner = ("allocation", "fixed temperature, simulation")
    judged = verdicts(experiment, lawful)
    assert {judged[key] for key in [*both, agree, inner]} == {"supported"}
    # Width 3, in the middle, made worse than it is: theory's best no longer is.
    data = lawful.estimates["splits"]
    worse = data["mse"] * (1 + 0.5 * (data["width"] == 3))
    judged = verdicts(experiment, changed(lawful, mse=worse))
    assert {judged[key] for key in [*both, agree, inner]} == {"refuted"}
    # All widths alike: every one is as good as the best, and none is better than the ends.
    noise = np.random.default_rng(1).normal(size=data["mse"].shape)
    blunt = changed(lawful, mse=1 + 0.01 * noise + 0 * data["mse"])
    assert verdicts(experiment, blunt)[inner] == "refuted"


def test_missing_simulation_leaves_verdicts_open(lawful, experiment):
    """One split without a number, well inside theory's range, which alone says what is compared."""
    data = lawful.estimates["splits"]
    gone = (data["width"] == 1) & (data["n"] == 512) & (data["budget"] == 24)
    judged = verdicts(experiment, changed(lawful, mse=data["mse"].where(~gone)))
    simulated = [
        regime
        for claim, regime in judged
        if claim == "allocation" and not regime.endswith(", theory")
    ]
    assert len(simulated) == 6
    assert {judged["allocation", regime] for regime in simulated} == {"inconclusive"}


def test_comparison_is_where_theory_says(lawful):
    """Widths that do not divide a budget are no splits of it; all others are compared."""
    splits = effects.Splits(lawful)
    compared = [effect.at["n_eff"] >= 50 for effect in effects.agreement(splits)]
    theory = splits.theory
    divides = theory["budget"] % theory["width"] == 0
    known = (theory["n_eff"] >= 50) & divides & xr.ones_like(theory["family"], float).notnull()
    assert sum(compared) == int(known.sum())
    assert len(compared) == int((divides & (theory["mse"].notnull() | True)).sum())


def test_ends_count_at_every_rung(lawful, experiment):
    """The widest heads made best at one rung, which is not the best of theirs by theory."""
    data = lawful.estimates["splits"]
    low = 0.5 * float(data["mse"].sel(width=3).min())
    there = (data["width"] == 6) & (data["rung"] == 0)
    judged = verdicts(experiment, changed(lawful, mse=data["mse"].where(~there, low)))
    assert judged["allocation", "re-tuned bandwidth, simulation"] == "refuted"
    assert judged["allocation", "fixed temperature, simulation"] == "supported"


def test_theory_claims_can_fail(results, experiment):
    theory = results.predictions["splits"]
    grown = theory.assign(
        optimum=theory["optimum"] * 0 + theory["dense_budget"] ** 0.3,
        surface=theory["surface"] * 0 + theory["dense_width"],
    )
    judged = verdicts(experiment, replace(results, predictions={"splits": grown}))
    assert judged["heads-linear", "fixed temperature"] == "refuted"
    assert judged["allocation", "fixed temperature, theory"] == "refuted"
    growing = theory.assign(optimum=theory["optimum"] * 0 + np.log(theory["dense_n"]))
    judged = verdicts(experiment, replace(results, predictions={"splits": growing}))
    assert judged["dk-log", "Transformer's temperature"] == "supported"


def test_laws_are_of_theory_where_they_are_fitted(results):
    """At some n of the range for the budget of the claim, and nowhere at smoke fidelity."""
    theory = results.predictions["splits"]["optimum"]
    curve = theory.sel(temperature="fixed", family="rough", dense_budget=effects.BUDGET)
    standard = load_experiment("allocation")
    sampled = effects.widths_of_law(curve, replace(results, settings=standard.settings))
    assert [effect.x for effect in sampled] == pytest.approx(np.logspace(2, 8, 13))
    assert [effect.value for effect in sampled] == curve.values[
        [int(np.argmin(np.abs(curve["dense_n"].values - e.x))) for e in sampled]
    ].tolist()  # fmt: skip
    assert {effect.error for effect in sampled} == {0.01}
    assert effects.widths_of_law(curve, results) == []
    claims = [c for c in standard.claims if c.test in ("law", "exponent")]
    assert {c.effects for c in claims} <= set(effects.effects(results))


@pytest.mark.slow
def test_laws_can_go_both_ways(results, experiment):
    """A made logarithm and a made square root of the logarithm, each with a wobble of 2%."""
    optimum = results.predictions["splits"]["optimum"]
    log_n, tuned = np.log(optimum["dense_n"]), optimum["temperature"] == "tuned"
    wobble = 1 + 0.02 * np.sin(5 * log_n)
    made = ((1.2 * np.sqrt(log_n)).where(tuned, 0.9 * log_n - 2.5) + 0 * optimum) * wobble
    standard = load_experiment("allocation")
    claims = [
        c for c in standard.claims if c.effects.startswith("widths") and "rough" not in c.effects
    ]
    standard = replace(standard, spec=standard.spec.model_copy(update={"claims": claims}))
    theory = results.predictions["splits"].assign(optimum=made)
    lawful = replace(results, predictions={"splits": theory}, settings=standard.settings)
    assert verdicts(standard, lawful) == {
        ("dk-log", "fixed temperature"): "supported",
        ("dk-log", "re-tuned bandwidth"): "refuted",
        ("dk-log", "re-tuned bandwidth, square root"): "supported",
    }
