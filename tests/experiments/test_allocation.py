"""The experiment `allocation`: both roads by independent computation, verdicts that can fail."""

from dataclasses import replace
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from sims.errors import InputError
from sims.montecarlo.draws import Draw
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries, redundant_views
from sims.simulation import draw, nw_weights
from sims.study.experiment import load_experiment
from sims.theory import view_terms
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads, small

simulate, predict, effects, curves, regimes = (
    load_experiment("allocation").module(name)
    for name in ("simulate", "predict", "effects", "curves", "regimes")
)
POINTS = ("views", "blocks", "softmax views", "softmax blocks")


@pytest.fixture(scope="module")
def experiment():
    return small("allocation", batches=64, replicates_per_batch=2)


@pytest.fixture(scope="module")
def settings(experiment):
    return regimes.checked(experiment.settings)


@pytest.fixture(scope="module")
def results(experiment):
    results, own = both_roads(experiment), regimes.checked(experiment.settings)
    roads = [
        {k: regimes.labelled(v, own[k]) for k, v in road.items()}
        for road in (results.estimates, results.predictions)
    ]
    return replace(results, estimates=roads[0], predictions=roads[1])


def changed(results, geometry="views", **estimates):
    """The results with other simulated errors of a geometry."""
    data = results.estimates[geometry].assign(**estimates)
    return replace(results, estimates=results.estimates | {geometry: data})


def lawful_data(theory, data, settings, seed):
    """Simulated errors made to be theory's, with a little noise."""
    noise = theory["noise"].isel(family=0, drop=True)
    parts = {"": theory["mse"] - settings["noise_sd"] ** 2 * noise, "_noise": noise}
    rng, made = np.random.default_rng(seed), {}
    width = data["width"]
    for suffix, whole in parts.items():
        if settings["geometry"] == "views":
            # Of a head and of a pair, from two budgets.
            first, last = (whole.isel(budget=i, drop=True) for i in (0, -1))
            few, many = (width / float(whole["budget"][i]) for i in (0, -1))
            gap = (first - last) / (few - many)
            own, pair = last + gap * (1 - many), last - gap * many
            own, pair = (part.expand_dims(group=data["group"].values) for part in (own, pair))
        else:
            own = pair = whole.rename(budget="group")
        count = xr.DataArray(
            [
                [regimes.pooled_heads(g, w, 4) or np.nan for w in width.values.tolist()]
                for g in data["group"].values.tolist()
            ],
            {"group": data["group"], "width": width},
            ("group", "width"),
        )
        for name, value in (("head", own), ("pool", pair + (own - pair) / count)):
            value = (value + 0 * data[name + suffix]).transpose(*data[name + suffix].dims)
            made[name + suffix] = value * (1 + 5e-5 * rng.normal(size=value.shape))
    return made


@pytest.fixture(scope="module")
def lawful(results, settings):
    for seed, name in enumerate(POINTS):
        theory, data = results.predictions[name], results.estimates[name]
        results = changed(results, name, **lawful_data(theory, data, settings[name], seed))
    return results


def drawn(seed, batches, replicates, settings):
    """Queries and waves of some batches."""
    draws = Draw.of(seed, (), replicates)
    rows = [simulate.drawn(draws.draw(batch), settings) for batch in range(batches)]
    return tuple(np.stack(part) for part in zip(*rows, strict=True))


def frames_of(own, width, count):
    """The first heads of a split, (count, d, d_k), by the geometry's definition."""
    if own["geometry"] == "views":
        return redundant_views(own["latent"], count, width, own["noise"])[1]
    return np.stack([np.eye(24)[:, h * width : (h + 1) * width] for h in range(count)])


@pytest.mark.theory
@pytest.mark.parametrize("point", POINTS)
def test_simulation_by_plain_attention(settings, point):
    """One replicate against float64 weights of real heads, wave by wave."""
    # The widest heads of the smaller budget are fewer than those that are pooled.
    grid = settings[point]["simulated"] | {"budgets": [8, 24]}
    # Heads of width 6 or 8, of which there are four or three, are computed in one run.
    grid["widths"] = sorted({*grid["widths"], 6, 8})
    own = settings[point] | {"waves": 2, "queries": {"scale": 0.6, "count": 2}, "simulated": grid}
    n = (50, 80)
    law, splits = simulate.arranged(own)
    here = Draw.of(3, (), 2).draw(0)
    at, waves = (part[0] for part in simulate.drawn(here, own))
    key = replace(here, replicate=0).key
    families, groups = len(own["families"]), regimes.groups(own)
    shared = (law, type(splits)(*map(jnp.asarray, splits)))
    found = simulate.split_errors(
        key,
        shared,
        (at, waves),
        n=n,
        families=families,
        dot=point.startswith("softmax"),
        alike=simulate.alike(grid),
    )
    size = len(law.covariance)
    task = Task(
        DESIGNS["isotropic"](size), TrigonometricSeries([0.0], np.zeros((1, size)), [0.0]), 1.0
    )
    x = np.asarray(draw(task, key, max(n), np.float32)[0], float)
    latent = waves.shape[-1]
    for i, width in enumerate(grid["widths"]):
        for g, group in enumerate(groups):
            count = min(4, group // width)
            frames = frames_of(own, width, count)
            frames = np.pad(frames, ((0, 0), (0, size - frames.shape[1]), (0, 0)))
            for k in (0, len(own["ladder"])):
                bandwidth = [*own["ladder"], own["bandwidth"] * width**0.25][k]
                heads = Heads(frames, own["kernel"], bandwidth)
                expected = np.zeros((2, families, 2))
                noise = np.zeros((2, 2))
                for q, query in enumerate(np.asarray(at, float)):
                    for j, size_n in enumerate(n):
                        weights = np.asarray(
                            nw_weights(heads, np.pad(query, (0, size - latent)), x[:size_n])
                        )
                        for r, row in enumerate((weights[0], weights.mean(0))):
                            noise[r, j] += np.sum(row**2) / 2
                            for w, wave in enumerate(np.asarray(waves[q, g], float)):
                                for phase in (0.4, 0.4 - np.pi / 2):
                                    values = 2**0.5 * np.cos(x[:size_n, :latent] @ wave + phase)
                                    truth = 2**0.5 * np.cos(query @ wave + phase)
                                    expected[r, w // 2, j] += (row @ values - truth) ** 2 / 8
                for r, name in enumerate(("head", "pool")):
                    if name == "pool" and not regimes.pooled_heads(group, width, 4):
                        expected[r], noise[r] = np.nan, np.nan
                    np.testing.assert_allclose(found[name][i, k, :, :, g], expected[r], rtol=3e-3)
                    np.testing.assert_allclose(
                        found[f"{name}_noise"][i, k, :, g], noise[r], rtol=3e-3
                    )


def test_draws_have_their_laws(settings):
    """Second moments of queries and waves, and the rough family's covariance; 5 standard errors."""
    own = settings["views"]
    at, waves = drawn(1, 4, 16, own)
    assert at.std() == pytest.approx(own["queries"]["scale"], rel=0.03)
    smooth, rough, slow = np.split(waves[:, :, :, 0], 3, axis=3)
    for part, alpha in ((smooth, 0.4), (slow, 0.2)):
        expected = np.exp(-alpha * np.arange(own["latent"])) / 2.0
        np.testing.assert_allclose(part.reshape(-1, own["latent"]).std(0), expected, rtol=0.06)
    size = smooth[..., 0].size
    for distance in (0.5, 3.0):
        mean = np.cos(distance * rough[..., 0]).mean()
        assert mean == pytest.approx(np.exp(-distance / 2), abs=5 / np.sqrt(2 * size))
    np.testing.assert_array_equal(drawn(1, 2, 16, own)[0], at[:2])


def test_waves_of_blocks_lie_in_their_budget(settings):
    """Total relevance 2 over D coordinates alike, or 1 along one of them; nothing beyond D."""
    own = settings["blocks"]
    waves = drawn(1, 4, 16, own)[1]
    for place, budget in enumerate(regimes.groups(own)):
        smooth, _, additive = np.split(waves[:, :, :, place], 3, axis=3)
        smooth, additive = (part.reshape(-1, part.shape[-1]) for part in (smooth, additive))
        assert not waves[:, :, :, place, :, budget:].any()
        variance = (smooth[:, :budget] ** 2).mean(0)
        np.testing.assert_allclose(variance, 2 / budget, rtol=5 * np.sqrt(2 / len(smooth)))
        assert ((additive != 0).sum(1) == 1).all()
        assert (additive**2).sum(1).mean() == pytest.approx(1, rel=5 * np.sqrt(2 / len(additive)))
        share = (additive != 0).mean(0)[:budget]
        assert np.abs(share * budget - 1).max() < 5 * np.sqrt(budget / len(additive))


def test_pools_and_their_splits(results, settings):
    """What a head and a pool of k heads say of any number of heads, from made-up errors."""
    cases = ((24, 3, 4), (24, 8, 4), (24, 12, 4), (16, 12, 4), (16, 16, 4))
    assert [regimes.pooled_heads(*case) for case in cases] == [4, 3, 2, 0, 1]
    data = results.estimates["blocks"]
    own, pair = 3.0, 0.5
    count = xr.DataArray(
        [[regimes.pooled_heads(g, w, 4) for w in (1, 2, 4)] for g in (16, 24)],
        {"group": [16, 24], "width": [1, 2, 4]},
        ("group", "width"),
    )
    pool = own / count + (1 - 1 / count) * pair + 0 * data["pool"]
    made = changed(
        results,
        "blocks",
        head=own + 0 * data["head"],
        head_noise=0 * data["head_noise"],
        pool=pool.transpose(*data["pool"].dims),
        pool_noise=0 * data["pool_noise"],
    )
    mse = effects.Splits(made, "blocks").batches["mse"]
    for budget, width in product((16, 24), (1, 2, 4)):
        expected = pair + (own - pair) * width / budget
        assert np.allclose(mse.sel(budget=budget, width=width), expected)


@pytest.mark.theory
def test_slope_of_the_logarithmic_law(results, settings):
    """At a fixed b, d_k* gains 1/(α + log ρ) for every e in n, ρ between those of r_hg and r_hh.

    What a coordinate adds to r is read off r itself, at two widths. For blocks α is 0.
    """
    own = settings["views"]
    optimum = results.predictions["views"]["optimum"].sel(temperature="fixed", family="smooth")
    at = optimum.sel(dense_n=[1e4, 1e8], method="nearest")
    two = view_terms(
        np.array([1, 2]),
        own["bandwidth"],
        noise=own["noise"],
        relevance=np.zeros(2),
        query_scale=own["queries"]["scale"],
    )
    few, many = (np.log(r[1] / r[0]) for r in (two.noise_variance, two.noise_covariance))
    for budget, growth in ((24, few), (512, many)):
        first, last = at.sel(dense_budget=budget).values
        assert (last - first) / np.log(1e4) == pytest.approx(1 / (0.8 + growth), rel=0.03)
    blocks = results.predictions["blocks"]["optimum"].sel(temperature="fixed", family="smooth")
    first, last = blocks.sel(dense_budget=512).sel(dense_n=[1e6, 1e8], method="nearest").values
    clear = view_terms(np.array([1, 2]), 0.7, noise=0.0, relevance=np.zeros(2), query_scale=0.6)
    slope = np.log(clear.noise_variance[1] / clear.noise_variance[0])
    slope += np.log(last / first) / (last - first)
    assert (last - first) / np.log(1e2) == pytest.approx(1 / slope, rel=0.03)


def test_comparison_is_where_theory_says(lawful):
    """All widths that are no wider than the budget; of blocks those with room for two, or one."""
    for name, room in (("views", 1), ("blocks", 2)):
        splits = effects.Splits(lawful, name)
        compared = effects.agreement(splits, "mse")
        theory = splits.theory
        fits = (room * theory["width"] <= theory["budget"]) | (theory["width"] == theory["budget"])
        known = fits & xr.ones_like(theory["mse"], bool)
        assert len(compared) == int(known.sum())
        enough = known & (theory["n_eff"] >= 50) & (theory["variance"] >= 0.5 * theory["mse"])
        found = [e for e in compared if e.at["n_eff"] >= 50 and e.at["share"] >= 0.5]
        assert len(found) == int(enough.sum())
        assert all(np.isfinite(e.value) for e in found)


@pytest.mark.theory
def test_softmax_is_trusted_less(settings):
    """Down to 10 of n_eff for the gaussian kernel, of n_third = n_eff²/n for softmax."""
    for point, share in (("views", 1), ("softmax views", 2)):
        own = settings[point]
        widths, n = np.arange(1, 13), np.array([400.0])
        terms = predict.terms(own, own["families"]["smooth"], 0, widths, predict.bands(own, widths))
        surface = predict.curves(own, terms, (24 / widths)[:, None], n)["surface"][0, 0]
        overlap = np.asarray(terms.noise_variance)[:, 0]
        assert (np.isfinite(surface) == (400 / overlap**share >= 10)).all()
        assert 0 < np.isfinite(surface).sum() < len(widths)


def test_one_or_two_heads_against_more(results, experiment):
    """The theory's claim of blocks turns with the errors of widths of half the budget and more."""
    blocks = results.predictions["blocks"]
    few = 2 * blocks["dense_width"] >= blocks["dense_budget"]
    for factor, verdict in ((10.0, "supported"), (0.1, "refuted")):
        made = {
            name: blocks["surface"] * 0 + 1 + (factor - 1) * few
            for name in ("surface", "scaled_surface")
        }
        planted = replace(
            results, predictions={**results.predictions, "blocks": blocks.assign(**made)}
        )
        judged = verdicts(experiment, planted)
        assert judged["allocation", "blocks, re-tuned bandwidth, theory"] == verdict


def test_laws_are_of_theory_where_they_are_fitted(results):
    """At some n of the range for the budget of the claim."""
    theory = results.predictions["views"]
    best = theory.sel(temperature="fixed", family="rough", dense_budget=curves.BUDGET)
    sampled = curves.curve(best)
    assert [effect.x for effect in sampled] == pytest.approx(np.logspace(2, 8, 13))
    places = [int(np.argmin(np.abs(best["dense_n"].values - e.x))) for e in sampled]
    assert [effect.value for effect in sampled] == best["optimum"].values[places].tolist()
    assert [effect.bound for effect in sampled] == best["optimum_error"].values[places].tolist()
    claims = [c for c in load_experiment("allocation").claims if c.test == "deviation"]
    assert [c.margin for c in claims] == [0.02] * 10


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"noise": []}, "noise"),
        ({"map": {"alpha": [0.4], "nu": [None], "noise": [], "noise_sd": [1.0]}}, "noise"),
        ({"views.noise": []}, "noise"),
        ({"views.ladder": [0.5]}, "ladder"),
        ({"simulated": {}}, "views"),
    ],
)
def test_bad_settings_give_one_line(change, field):
    settings = dict(load_experiment("allocation", "smoke").settings)
    for name, value in change.items():
        first, _, inner = name.partition(".")
        settings[first] = {**settings[first], inner: value} if inner else value
    with pytest.raises(InputError, match=field) as error:
        regimes.checked(settings)
    assert "\n" not in str(error.value)
