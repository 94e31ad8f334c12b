"""The experiment `diversity`: regimes, orders, and verdicts that can go both ways."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from sims.experiment import load_experiment
from sims.results import Results

from sims.cli.steps import _module
from sims.report import render_caption

FOLDER = Path(__file__).parents[2] / "experiments" / "diversity"
analysis = _module(FOLDER / "analysis.py")
predict = _module(FOLDER / "predict.py")
BATCHES = 16


@pytest.fixture(scope="module")
def experiment():
    return load_experiment(FOLDER)


def cosines(point):
    """The alignment of every pair, as the experiment file has it."""
    frames = point.coordinates.get("heads.frames") or {}
    heads = point.spec.heads.count
    if "gram" in frames:
        return np.array(frames["gram"], float)
    if "angles" in frames:
        turned = np.deg2rad(frames["angles"])
        return np.cos(turned[:, None] - turned)
    if frames.get("kind") == "haar":
        basis = np.asarray(point.spec.build()[1].frames)
        overlap = np.einsum("hdi,gdj->hgij", basis, basis)
        return np.sqrt((overlap**2).sum((2, 3)) / basis.shape[2])
    c = frames.get("cosine", point.coordinates.get("design", {}).get("correlation"))
    return (1 - c) * np.eye(heads) + c * np.ones((heads, heads))


def made(experiment, error_of, found=1.1, shown=1.1) -> Results:
    """Noise correlation = squared cosine; the ensemble's error as asked of the mean index.

    Counterexamples: errors 1 and ``shown``, and what the search found anew.
    """
    rng = np.random.default_rng(5)
    simulated, predicted, coordinates = {}, {}, {}
    noise = rng.standard_normal(BATCHES)
    at = {}
    for point in experiment.points("standard"):
        c = cosines(point)
        heads = len(c)
        r = 0.5 + 0.5 * c**2
        np.fill_diagonal(r, 1.0)
        mse = error_of(1 - (r.sum() - heads) / (heads * (heads - 1)))
        if "angles" in (point.coordinates.get("heads.frames") or {}):
            # So that all four versions of an index agree.
            r, mse = c**2, 1.0
            at[repr(point.coordinates["heads.frames"])] = point.name
        pair = ("head", "head2")
        truth = {
            "integrated_signal_covariance": (pair, 0.2 * r),
            "integrated_noise_covariance": (pair, 0.8 * r),
            "gram": (pair, c**2 if "design" not in point.coordinates else np.eye(heads)),
            "n_eff": (("query", "head"), np.full((2, heads), 100.0)),
        }
        batch = ("batch", "head", "head2")
        # Correlations vary from batch to batch, but for those of aligned heads.
        wobble = 1e-3 * rng.standard_normal((BATCHES, 1, 1)) * (1 - r)
        draws = {k: (batch, truth[k][1] + wobble) for k in list(truth)[:2]}
        for term in ("mse", "squared_bias", "ensemble_variance"):
            truth[term] = mse
            # Common draws: what varies from batch to batch does so alike at all points.
            draws[term] = ("batch", mse * (1 + 0.01 * noise + 1e-4 * rng.standard_normal(BATCHES)))
            draws[f"{term}_mcse"] = 0.01 * mse
        truth |= {"exact_mse": mse, "exact_mse_error": 1e-6 * mse}
        coordinates[point.name] = point.coordinates
        predicted[point.name] = xr.Dataset(truth)
        simulated[point.name] = xr.Dataset(draws, attrs={"replicates": 512})
    chosen = {
        name: [at[repr(frames)] for frames in asked["frames"]]
        for name, asked in experiment.settings["counterexamples"].items()
        # Of these made-up points only pairs whose index rises may stand.
        if name in ("mean, geometric", "one wave", "mean, noise")
    }
    for less, more in filter(None, chosen.values()):
        for kind in ("mse", "exact_mse"):
            predicted[more][kind] = shown * predicted[less][kind]
        varied = 1 + 1e-4 * rng.standard_normal(BATCHES)
        simulated[more]["mse"] = shown * simulated[less]["mse"] * varied
    first = chosen["mean, geometric"][0]
    predicted[first] = predicted[first].assign(
        less=("search", [pair[0] if pair else "" for pair in chosen.values()]),
        more=("search", [pair[1] if pair else "" for pair in chosen.values()]),
        searched_ratio=("search", [found if pair else 0.99 for pair in chosen.values()]),
        tried=("search", [10] * len(chosen)),
    )
    predicted[first] = predicted[first].assign_coords(search=list(chosen))
    predicted[first].attrs["resolution"] = experiment.settings["resolution"]
    return Results("diversity", "standard", coordinates, simulated, predicted, {})


def verdicts(results, experiment):
    return {(v.claim, v.regime): v.verdict for v in analysis.judge(results, experiment)}


def test_the_mean_index_is_supported_where_error_is_a_falling_function_of_it(experiment):
    found = verdicts(made(experiment, lambda index: 2 - index), experiment)
    assert set(found) == {(c.id, c.regime) for c in experiment.claims}
    assert found["hdi", "by both roads"] == "supported"
    regimes = ("pure noise", "exchangeable", "one fixed target", "single index", "redundant views")
    for regime in regimes:
        assert found["hdi-monotone", f"{regime}, mean, total"] == "supported"
    # The effective rank orders uneven heads otherwise, so the same data refute it.
    assert found["hdi-monotone", "pure noise, entropy, total"] == "refuted"
    # Redundant views are equicorrelated: there all definitions agree.
    for definition in ("top", "entropy", "participation"):
        assert found["hdi-monotone", f"redundant views, {definition}, total"] == "supported"


def test_a_rising_error_is_refuted(experiment):
    found = verdicts(made(experiment, lambda index: 1 + index), experiment)
    assert all(v == "refuted" for (claim, _), v in found.items() if claim == "hdi-monotone")


def test_a_rise_along_a_chain_of_ties_is_seen(experiment):
    """Neighbours closer than the resolution are ties; what they add up to is not."""
    results = made(experiment, lambda index: 2 - index)
    groups = analysis.configurations(results)["pure noise"]
    index = {tuple(g): analysis.known(results, g)["mean", "total"] for g in groups}
    ranked = sorted(groups, key=lambda g: index[tuple(g)])
    values = [index[tuple(g)] for g in ranked]
    # The least resolution at which some neighbours tie and the next but one do not.
    gaps = np.diff(values)
    place = int(np.argmin(gaps[:-1] + gaps[1:]))
    resolution = (max(gaps[place : place + 2]) + gaps[place : place + 2].sum()) / 2
    told = analysis.pairs(results, groups, resolution)["mean", "total"]
    assert (ranked[place], ranked[place + 2]) in told
    assert (ranked[place], ranked[place + 1]) not in told
    assert all(index[tuple(b)] - index[tuple(a)] >= resolution for a, b in told)


@pytest.mark.parametrize(
    ("found", "shown", "expected"),
    [
        (1.1, 1.1, ("supported", "supported")),
        (1.105, 1.1, ("supported", "supported")),
        # The search finds something larger, or nothing at all.
        (1.2, 1.1, ("supported", "refuted")),
        (0.9, 1.1, ("supported", "refuted")),
        # What is shown is no counterexample.
        (0.9, 0.9, ("refuted", "supported")),
    ],
)
def test_counterexamples_can_fail(experiment, found, shown, expected):
    results = made(experiment, lambda index: 2 - index, found, shown)
    judged = verdicts(results, experiment)
    regimes = ("counterexamples, the error rises", "counterexamples, searched anew")
    assert tuple(judged["hdi", regime] for regime in regimes) == expected
    assert judged["hdi", "counterexamples, by both roads"] == "supported"


def test_the_search_finds_what_brute_force_finds(experiment):
    """Three lines under noise alone, effective rank of noise: against a grid of angles."""
    settings = experiment.settings
    pair = settings["counterexamples"]["entropy, noise"]
    spec = next(
        p.spec
        for p in experiment.points("standard")
        if p.coordinates.get("heads.frames") == pair["frames"][0]
    )
    ratio, rise, tried = predict._search(spec, pair, settings["resolution"], **settings["search"])
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
    results = made(experiment, lambda index: 2 - index)
    judged = analysis.judge(results, experiment)
    assert isinstance(analysis.figure(results, judged), Figure)
    numbers = analysis.numbers(results)
    caption = render_caption(FOLDER / "caption.md", experiment, results, judged, numbers)
    assert "{{" not in caption


def test_errors_over_target_draws_are_those_of_each_target():
    """The stacked draws against the library, one target at a time; and the law's unit variance."""
    from types import SimpleNamespace

    import jax

    from sims.problem import DESIGNS, FRAMES, Heads, Task, TrigonometricSeries, gaussian_queries
    from sims.theory import predict as theory

    law = SimpleNamespace(lengthscale=2.0, features=16)
    drawn = predict._targets(4, law, {"draws": 300, "draws_seed": 3})
    heads = Heads(FRAMES["equiangular"](4, 2, 1, angle=60), "gaussian", 0.6)
    queries = gaussian_queries(4, 5, scale=0.5)
    task = Task(DESIGNS["isotropic"](4), TrigonometricSeries(*(a[0] for a in drawn)), 1.0)
    error, covariance = predict._over_draws(task, heads, 100.0, queries, drawn)
    total = 0
    for i in range(3):
        one = Task(task.design, TrigonometricSeries(*(a[i] for a in drawn)), 1.0)
        found = theory(one, heads, 100, queries)
        np.testing.assert_allclose(error[i], found["mse"], rtol=1e-10)
        total = total + sum(analysis.covariances(found)) / 3
    few = jax.tree.map(lambda a: a[:3], drawn)
    np.testing.assert_allclose(
        predict._over_draws(task, heads, 100.0, queries, few)[1], total, rtol=1e-10
    )
    assert covariance.shape == (2, 2)
    values = np.array(
        [TrigonometricSeries(*(a[i] for a in drawn))(np.zeros(4)) for i in range(300)]
    )
    assert abs(values.mean()) < 5 / np.sqrt(300)
    assert abs(values.var() - 1) < 5 * np.sqrt(2 / 300)
