"""The experiment `temporal_merging`: its verdicts that can fail, its counts, and its search."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims import Heads, Task, estimate
from sims.montecarlo.draws import Draw
from sims.problem import SequenceDesign, TrigonometricSeries
from sims.study.experiment import load_experiment
from sims.study.units import units_of
from sims.weights import FACTORIES
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads, small


@pytest.fixture(scope="module")
def experiment():
    return small("temporal_merging", batches=64, replicates_per_batch=2, seed=41)


@pytest.fixture(scope="module")
def results(experiment):
    own = ("passes", "latent", "search", "pattern", "drawn")
    return both_roads(experiment, lambda point: not point.startswith(own))


def changed(results, point, change):
    """Results with the variables of a point changed."""
    return replace(results, estimates=results.estimates | {point: change(results.estimates[point])})


def test_equivalent_temperatures(results, experiment):
    """Slots of two iid keys have variance ½: the limits of τ and 2τ agree, and those alone."""
    found = experiment.module("effects").effects(results)["limit at the equivalent temperature"]
    assert [effect.label for effect in found] == ["iid, b = 1.4", "iid, b = 0.99"]
    assert all(np.abs(effect.values).max() < 64 for effect in found)


def test_counts_and_formulas_can_part(results, experiment):
    """One slot more, and queries and keys of latents counted once."""
    more = changed(results, "sizes", lambda data: data.assign(elements=data["elements"] + 288))
    assert verdicts(experiment, more)["mtla-length", "all"] == "refuted"
    once = changed(results, "sizes", lambda data: data.assign(products=data["products"] * 0.6))
    assert verdicts(experiment, once)["mtla-flops", "all"] == "refuted"


def scaled(results, name, factor):
    """Results whose estimates of a term are scaled at every point of the grid."""
    estimates = {
        point: data.assign({name: factor * data[name]}) if name in data else data
        for point, data in results.estimates.items()
    }
    return replace(results, estimates=estimates)


@pytest.mark.parametrize(
    ("term", "regime"),
    [
        ("squared_bias", "squared bias, softmax"),
        ("noise_variance", "noise variance, softmax"),
        ("signal_variance", "signal variance, softmax"),
        ("covariance", "covariance of heads, softmax"),
        ("ensemble_variance", "ensemble variance, softmax"),
    ],
)
def test_terms_can_part(results, experiment, term, regime):
    """Without s/n, or with s² tokens a slot: so large a factor is seen with few replicates."""
    found = verdicts(experiment, scaled(results, term, 4.0))
    assert found["merge-terms", regime] == "refuted"


def test_products_are_counted_one_by_one(experiment):
    simulate = experiment.module("simulate")
    assert simulate.products_of(2, 1, 5, 3, 2) == 2 * 5 * (3 + 2 + 3)
    assert simulate.products_of_mha(3, 4, 7) == 3 * 2 * 7 * 4


def test_formulas_of_sizes_are_those_of_counts(experiment):
    """Ten tokens in slots of two and of three, by the formulas and one by one."""
    sizes = {"heads": 2, "width": 6, "latent": 3, "rotary": 2, "tokens": 10, "training": 4}
    settings = {"sizes": sizes | {"strides": [2, 3]}, "waves": []}
    predict = experiment.module("predict").predict
    found = predict(SimpleNamespace(points=[], settings=settings))["sizes"]
    simulate = experiment.module("simulate")
    counted = [simulate.products_of(2, 1, slots, 3, 2) for slots in (5, 4)]
    assert found["products"].values.tolist() == [*counted, simulate.products_of_mha(2, 6, 10)]
    assert found["elements"].values[:2].tolist() == [5 * 5, 4 * 5]


def test_latent_attention_by_loops(experiment):
    """Scores of every head and pair of tokens written out."""
    simulate = experiment.module("simulate")
    layer, x = simulate.drawn(experiment.settings, 1, "ones", 4, np.random.default_rng(3))
    cache = simulate.cache
    latents, places = cache.latents_of(layer, x), np.arange(4)
    found = simulate.latent_attention(layer, x)
    for h in range(2):
        for m in range(4):
            q = x[m] @ layer.query[h]
            turned = cache.rotated(x @ layer.rotary_query[h], places)[m]
            keys = cache.rotated(x @ layer.rotary_key, places)
            scores = [
                (q @ (latents[n] @ layer.up_key[h]) + turned @ keys[n]) / np.sqrt(7)
                for n in range(m + 1)
            ]
            w = np.exp(scores) / np.exp(scores).sum()
            expected = w @ latents[: m + 1] @ layer.up_value[h]
            np.testing.assert_allclose(found[m, h], expected, rtol=1e-12)


def test_search_goes_in_order(experiment, monkeypatch):
    """A reading that fails from three tokens and stride two on is found there; one that never
    does is not."""
    simulate = experiment.module("simulate")

    def literal_gap(settings, reading, tokens, stride, rng):
        return float(reading == "latent attention" and tokens >= 3 and stride >= 2)

    monkeypatch.setattr(simulate, "literal_gap", literal_gap)
    found = simulate.searched(experiment.settings, Draw.of(0, (), 2).draw(0, 0), None, None)[
        "first"
    ]
    place = simulate.SEARCHED.index("latent attention")
    assert found[place].tolist() == [3, 2]
    assert np.isnan(np.delete(found, place, axis=0)).all()


def test_other_temperatures_have_other_limits(results, experiment):
    """The row of limits fails if the unmerged heads are elsewhere."""
    name = next(
        point
        for point, problem in results.problems.items()
        if np.isclose(problem["heads"]["bandwidth"], 1.4 * 2**0.5)
    )
    own = results.predictions[name]
    moved = own.assign(limit=own["limit"] * (1 + 1e-9))
    worse = replace(results, predictions=results.predictions | {name: moved})
    assert verdicts(experiment, worse)["merge-temperature", "limit"] == "refuted"
    assert isinstance(own, xr.Dataset)


@pytest.mark.parametrize("fidelity", ["smoke", "standard", "paper"])
def test_sizes_are_predicted_at_every_fidelity(fidelity):
    whole = load_experiment("temporal_merging", fidelity)
    assert "sizes" in units_of(whole)
    assert set(whole.settings["sizes"]["strides"]) >= {2, 3, 4}


def test_whole_chunks_by_their_definition(experiment):
    """A token sees its whole chunk, later tokens included: the first one of a chunk depends on
    the last, and none on the next chunk."""
    simulate = experiment.module("simulate")
    layer, x = simulate.drawn(experiment.settings, 3, "printed", 6, np.random.default_rng(4))
    before = simulate.whole_chunks_first(layer, x)
    for token, moved in ((2, [0, 1, 2, 3, 4, 5]), (5, [3, 4, 5])):
        other = x.copy()
        other[token] += 1.0
        gaps = np.abs(simulate.whole_chunks_first(layer, other) - before).max((1, 2))
        assert np.flatnonzero(gaps > 1e-9).tolist() == moved


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_errors_of_drawn_problems_turn_their_rows(results, experiment, factor):
    """Merged heads with half or twice the error, unmerged ones as they are."""

    def merged(data):
        at_one = np.array(["s = 1" in name for name in data["case"].values])
        noise = 1 + 1e-3 * np.random.default_rng(1).standard_normal(data["drawn_mse"].shape)
        values = (("batch", "case"), np.where(at_one, 1.0, factor) * noise)
        return data.assign(drawn_mse=values, drawn_variance=values)

    found = verdicts(experiment, changed(results, "drawn problems", merged))
    free = {verdict for at, verdict in found.items() if at[0] == "merge-free"}
    assert free == {"supported" if factor < 1 else "refuted"}
    dominated = found["merge-dominated", "softmax, iid keys"]
    assert dominated == ("refuted" if factor < 1 else "supported")


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("stride", [1, 3])
def test_drawn_problems_are_those_of_the_engine(experiment, kernel, stride):
    """One problem, with keys of their own on both sides; four joint standard errors."""
    drawn, spec = experiment.module("problems"), experiment.points[0].spec
    spec = spec.model_copy(
        update={"n": 60, "queries": spec.queries.model_copy(update={"count": 2})}
    )
    own = {
        "problems": 1,
        "roots": {"smooth": (0.8, 0.8)},
        "gaussian": 0.6,
        "doubled": [],
        "strides": {kernel: {"smooth": [] if stride == 1 else [stride]}},
    }
    draw = Draw.of(5, (), 400).draw(0)
    found = drawn.drawn_problems(draw, 400, (own, spec))
    rng = draw.rng()
    frames, frequency, phase = drawn.problem(rng, spec)
    queries = spec.queries.scale * rng.standard_normal((2, 4))
    target = TrigonometricSeries(np.full(8, 0.5), frequency, phase)
    task = Task(SequenceDesign(np.eye(4), (0.8, 0.8)), target, noise_sd=spec.noise_sd)
    rule = FACTORIES["merged"](stride, scores="dot" if kernel == "softmax" else "distance")
    case = drawn.cases(own, spec.heads.bandwidth)[-1]
    heads = Heads(frames, rule, case.bandwidth)
    engine = estimate(task, heads, 60, queries, 6, batches=16, replicates_per_batch=100)
    values = engine["mse"].values
    joint = values.std(ddof=1) / 4 * (1 + 1600 / 400) ** 0.5
    assert found["drawn_mse"][-1] == pytest.approx(values.mean(), abs=4 * joint)
    values = engine["ensemble_variance"].values
    joint = values.std(ddof=1) / 4 * (1 + 1600 / 400) ** 0.5
    assert found["drawn_variance"][-1] == pytest.approx(values.mean(), abs=4 * joint)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_weights_of_slots_by_loops(experiment, kernel):
    rng, b = np.random.default_rng(2), 0.7
    queries, keys = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 12, 2))
    case = experiment.module("drawn").Case(kernel, "iid", 4, b)
    drawn = experiment.module("problems")
    found = drawn.weights(case, queries, drawn.slot_means(keys, 4))
    for h in range(2):
        slots = [sum(keys[h, 4 * j + i] for i in range(4)) / 4 for j in range(3)]
        for q in range(3):
            dots = [queries[h, q] @ slot for slot in slots]
            gaps = [((queries[h, q] - slot) ** 2).sum() / 2 for slot in slots]
            scores = np.array(dots) if kernel == "softmax" else -np.array(gaps)
            grown = np.exp(scores / b**2)
            np.testing.assert_allclose(found[h, q], grown / grown.sum(), rtol=1e-12)


@pytest.mark.parametrize("roots", [(0.0, 0.0), (0.9, 0.0), (0.8, 0.8)])
def test_drawn_sequences_have_the_autocorrelation_of_their_law(experiment, roots):
    """Four standard errors, of 2000 independent sequences."""
    drawn = experiment.module("problems")
    normal = np.random.default_rng(0).standard_normal((40 + drawn.BURN_IN, 2000))
    x = drawn.sequence(normal, roots)
    for lag in (0, 1, 2, 5):
        products = x[10] * x[10 + lag]
        expected = SequenceDesign(np.eye(1), roots).autocorrelation(lag + 1)[lag]
        assert products.mean() == pytest.approx(expected, abs=4 * products.std() / 2000**0.5)
