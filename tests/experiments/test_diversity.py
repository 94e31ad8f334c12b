"""The experiment `diversity`: regimes, orders, and verdicts that can go both ways."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.problem import DESIGNS, FRAMES, Heads, Task, TrigonometricSeries, gaussian_queries
from sims.study.experiment import load_experiment
from sims.study.judging import chosen, effects_of
from sims.study.specification import ProblemSpec
from sims.theory import predict as theory
from tests.experiments.helpers import check_figure, results_of, verdicts

BATCHES = 16
SEARCHES = {
    "mean, geometric": ("lines 0, 43.3, 86.6", "lines 0, 0, 90"),
    "one wave": ("lines 0, 0", "lines 85.8, 94.2"),
    "mean, noise": (),
}
"""Of the made-up points only pairs whose index rises may stand."""


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("diversity")


@pytest.fixture(scope="module")
def effects(experiment):
    return experiment.module("effects")


def cosines(spec):
    """The alignment of every pair, as the experiment file has it."""
    frames, design = spec.heads.frames, spec.design
    kind = design.kind if frames is None else frames.kind
    if kind == "gram":
        return np.array(frames.gram, float)
    if kind == "planar":
        turned = np.deg2rad(frames.angles)
        return np.cos(turned[:, None] - turned)
    if kind == "haar":
        basis = np.asarray(spec.build().heads.frames)
        overlap = np.einsum("hdi,gdj->hgij", basis, basis)
        return np.sqrt((overlap**2).sum((2, 3)) / basis.shape[2])
    c = design.correlation if frames is None else frames.cosine
    return (1 - c) * np.eye(spec.heads.count) + c


def made(experiment, error_of, searched=1.1, shown=1.1, draws=None):
    """Noise correlation = squared cosine; the ensemble's error as it should be of the mean index.

    Counterexamples: errors 1 and ``shown``, and the ratio that the search came to. With ``draws``,
    errors of that many targets by theory, in the exchangeable regime.
    """
    rng = np.random.default_rng(5)
    estimates, predictions, at = {}, {}, {}
    noise = rng.standard_normal(BATCHES)
    pair, batch = ("head", "head2"), ("batch", "head", "head2")
    for point in experiment.points:
        spec = point.spec
        c = cosines(spec)
        heads = len(c)
        r = 0.5 + 0.5 * c**2
        np.fill_diagonal(r, 1.0)
        mse = error_of(1 - (r.sum() - heads) / (heads * (heads - 1)))
        label = point.coordinates["heads.frames"] or ""
        if label.startswith("lines"):
            # So that all four versions of an index agree.
            r, mse = c**2, 1.0
            at[label] = point.name
        law = {
            "integrated_signal_covariance": (pair, 0.2 * r),
            "integrated_noise_covariance": (pair, 0.8 * r),
            "n_eff": (("query", "head"), np.full((2, heads), 100.0)),
        }
        # Correlations vary from batch to batch, but for those of aligned heads.
        wobble = 1e-3 * rng.standard_normal((BATCHES, 1, 1)) * (1 - r)
        data = {k: (batch, law[k][1] + wobble) for k in list(law)[:2]}
        for term in ("mse", "squared_bias", "ensemble_variance"):
            law[term] = mse
            # Common draws: what varies from batch to batch does so alike at all points.
            data[term] = ("batch", mse * (1 + 0.01 * noise + 1e-4 * rng.standard_normal(BATCHES)))
        both = xr.Dataset(law).expand_dims({"order": ["first", "exact"]})
        gram = c**2 if spec.heads.frames else np.eye(heads)
        predictions[point.name] = both.assign(mse_error=1e-6 * mse, gram=(pair, gram))
        if draws and spec.target.kind == "rbf" and spec.target.seed == 1:
            wobble = 1e-2 * np.random.default_rng(6).standard_normal(draws)
            wobble += 1e-4 * rng.standard_normal(draws)
            predictions[point.name] = predictions[point.name].assign(
                drawn_mse=("target", mse * (1 + wobble)), drawn_covariance=(pair, r)
            )
        estimates[point.name] = xr.Dataset(data, attrs={"replicates": 512})
    pairs = {name: tuple(at[label] for label in labels) for name, labels in SEARCHES.items()}
    for less, more in filter(None, pairs.values()):
        predictions[more]["mse"] = shown * predictions[less]["mse"]
        varied = 1 + 1e-4 * rng.standard_normal(BATCHES)
        estimates[more]["mse"] = shown * estimates[less]["mse"] * varied
    first = pairs["mean, geometric"][0]
    columns = {
        "less": [pair[0] if pair else "" for pair in pairs.values()],
        "more": [pair[1] if pair else "" for pair in pairs.values()],
        "searched_ratio": [searched if pair else 0.99 for pair in pairs.values()],
        "tried": [10] * len(pairs),
    }
    predictions[first] = predictions[first].assign(
        {k: ("search", v) for k, v in columns.items()} | {"search": list(pairs)}
    )
    return results_of(experiment, estimates, predictions)


def test_the_mean_index_is_supported_where_error_is_a_falling_function_of_it(experiment):
    verdict = verdicts(experiment, made(experiment, lambda index: 2 - index))
    assert set(verdict) == {(c.id, c.regime) for c in experiment.claims}
    assert verdict["hdi", "by both roads"] == "supported"
    regimes = ("pure noise", "exchangeable", "one fixed target", "single index", "redundant views")
    for regime in regimes:
        assert verdict["hdi-monotone", f"{regime}, mean, total"] == "supported"
    # The effective rank orders uneven heads otherwise, so the same data refute it.
    assert verdict["hdi-monotone", "pure noise, entropy, total"] == "refuted"
    # Redundant views are equicorrelated: there all definitions agree.
    for definition in ("top", "entropy", "participation"):
        assert verdict["hdi-monotone", f"redundant views, {definition}, total"] == "supported"


def test_a_rising_error_is_refuted(experiment):
    verdict = verdicts(experiment, made(experiment, lambda index: 1 + index))
    assert all(v == "refuted" for (claim, _), v in verdict.items() if claim == "hdi-monotone")


def test_a_rise_along_a_chain_of_ties_is_seen(experiment, effects):
    """Neighbours closer than the resolution are ties; what they add up to is not."""
    results = made(experiment, lambda index: 2 - index)
    key = ("mean", "total")
    ranked = sorted(effects.configurations(results, "pure noise"), key=lambda one: one.index[key])
    values = [one.index[key] for one in ranked]
    # The least resolution at which some neighbours tie and the next but one do not.
    gaps = np.diff(values)
    place = int(np.argmin(gaps[:-1] + gaps[1:]))
    resolution = (max(gaps[place : place + 2]) + gaps[place : place + 2].sum()) / 2
    claim = next(c for c in experiment.claims if c.regime == "pure noise, mean, total")
    at_least = claim.where["rise"].model_copy(update={"at_least": resolution})
    claim = claim.model_copy(update={"where": {"rise": at_least}})
    apart = {e.label for e in chosen(effects_of(experiment, results)[claim.effects], claim)}
    first, second, third = (one.label for one in ranked[place : place + 3])
    assert f"{first} to {third}" in apart
    assert not {f"{first} to {second}", f"{third} to {first}"} & apart


def test_claims_take_the_resolution_of_the_search(experiment):
    ranges = [c.where["rise"] for c in experiment.claims if c.id == "hdi-monotone"]
    assert {r.at_least for r in ranges} == {experiment.settings["resolution"]}


def test_exchangeable_effects_rest_on_target_draws(experiment):
    """Many more of them than of batches, which would not help; other regimes rest on batches."""
    results = made(experiment, lambda index: 2 - index, draws=40)
    families = effects_of(experiment, results)
    effect = families["exchangeable, mean, total"][0]
    assert (effect.points, effect.batches, effect.replicates) == ((), 40, 40)
    assert effect.unit == "target draws"
    other = families["pure noise, mean, total"][0]
    assert (len(other.points), other.batches, other.replicates) == (2, BATCHES, None)
    verdict = verdicts(experiment, results)
    assert verdict["hdi-monotone", "exchangeable, mean, total"] == "supported"


@pytest.mark.parametrize(
    ("searched", "shown", "expected"),
    [
        (1.1, 1.1, ("supported", "supported")),
        (1.105, 1.1, ("supported", "supported")),
        # The search comes to something larger, or to nothing at all.
        (1.2, 1.1, ("supported", "refuted")),
        (0.9, 1.1, ("supported", "refuted")),
        # What is shown is no counterexample.
        (0.9, 0.9, ("refuted", "supported")),
    ],
)
def test_counterexamples_can_fail(experiment, searched, shown, expected):
    verdict = verdicts(experiment, made(experiment, lambda index: 2 - index, searched, shown))
    regimes = ("counterexamples, the error rises", "counterexamples, searched anew")
    assert tuple(verdict["hdi", regime] for regime in regimes) == expected
    assert verdict["hdi", "counterexamples, by both roads"] == "supported"


def test_a_pair_that_the_index_ties_is_no_counterexample(experiment, effects):
    """Whatever the error does counts against it, be it a rise or a fall."""
    results = made(experiment, lambda index: 2 - index)
    name = "mean, geometric"
    less, more = effects.counterexamples(results)[name]
    (apart,) = effects.error_rises(results, name, less, more)
    assert apart.value > 0.09
    (falls,) = effects.error_rises(results, name, more, less)
    assert falls.value < -0.09
    tied = replace(results, settings=results.settings | {"resolution": 2.0})
    (rises,) = effects.error_rises(tied, name, less, more)
    assert rises.value == -apart.value


def test_the_search_comes_to_what_brute_force_does(experiment):
    """Three lines under noise alone, effective rank of noise: against a grid of angles."""
    settings = experiment.settings
    pair = settings["counterexamples"]["entropy, noise"]
    labels = [p.coordinates["heads.frames"] for p in experiment.points]
    spec = experiment.points[labels.index(pair["frames"][0])].spec
    search = experiment.module("predict").search
    ratio, rise, tried = search(spec.build(), pair, settings["resolution"], **settings["search"])
    assert rise >= settings["resolution"]
    assert tried > 1000
    # One query at the origin: the angle law, ρ(c) = (1 − c²/t²)^(−1/2), t = 1 + b².
    t = 1 + spec.heads.bandwidth**2
    step = np.deg2rad(np.arange(0, 180, 4.5))
    second, third = (a.ravel() for a in np.meshgrid(step, step))
    turned = np.stack([np.zeros_like(second), second, third], axis=1)
    cosine = np.cos(turned[:, :, None] - turned[:, None, :])
    r = np.sqrt((1 - 1 / t**2) / (1 - cosine**2 / t**2))
    error = r.mean((1, 2))
    p = np.maximum(np.linalg.eigvalsh(r), 1e-300) / 3
    index = (np.exp(-np.sum(p * np.log(p), axis=1)) - 1) / 2
    allowed = index[None, :] - index[:, None] >= settings["resolution"]
    grid = np.where(allowed, error[None, :] / error[:, None], 0).max()
    assert 0.99 * grid <= ratio < 1.05 * grid
    assert grid > 1.1


def test_figure_and_caption(experiment):
    assert "six for" in check_figure(experiment, made(experiment, lambda index: 2 - index))


def test_errors_over_target_draws_are_those_of_each_target(experiment, effects):
    """The stacked draws against the library, one target at a time; and the law's unit variance."""
    predict = experiment.module("predict")
    law = {"kind": "rbf", "lengthscale": 2.0, "features": 16, "seed": 1}
    spec = ProblemSpec.model_validate(experiment.problems[0][1] | {"target": law})
    drawn = predict.targets(4, spec, {"draws": 300, "draws_seed": 3})
    heads = Heads(FRAMES["equiangular"](4, 2, 1, angle=60), "gaussian", 0.6)
    queries = gaussian_queries(4, 5, scale=0.5)
    task = Task(DESIGNS["isotropic"](4), TrigonometricSeries(*(a[0] for a in drawn)), 1.0)
    error, covariance = predict.over_draws(task, heads, 100.0, queries, drawn)
    total = 0
    for i in range(3):
        one = Task(task.design, TrigonometricSeries(*(a[i] for a in drawn)), 1.0)
        terms = theory(one, heads, 100, queries)
        np.testing.assert_allclose(error[i], terms["mse"], rtol=1e-10)
        total = total + sum(effects.covariances(terms)) / 3
    few = jax.tree.map(lambda a: a[:3], drawn)
    np.testing.assert_allclose(
        predict.over_draws(task, heads, 100.0, queries, few)[1], total, rtol=1e-10
    )
    assert covariance.shape == (2, 2)
    values = np.array(
        [TrigonometricSeries(*(a[i] for a in drawn))(np.zeros(4)) for i in range(300)]
    )
    assert abs(values.mean()) < 5 / np.sqrt(300)
    assert abs(values.var() - 1) < 5 * np.sqrt(2 / 300)
