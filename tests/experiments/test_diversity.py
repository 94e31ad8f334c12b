"""The experiment `diversity`: regimes, orders, and verdicts that can go both ways."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from sims.cli.steps import _module
from sims.experiment import load_experiment
from sims.report import render_caption
from sims.results import Results

FOLDER = Path(__file__).parents[2] / "experiments" / "diversity"
analysis = _module(FOLDER / "analysis.py")
predict = _module(FOLDER / "predict.py")
BATCHES, HEADS = 16, 4


@pytest.fixture(scope="module")
def experiment():
    return load_experiment(FOLDER)


def cosines(coordinates):
    """The alignment of every pair, as the experiment file has it."""
    frames = coordinates.get("heads.frames") or {}
    if "gram" in frames:
        return np.array(frames["gram"], float)
    c = frames.get("cosine", coordinates.get("design", {}).get("correlation"))
    return (1 - c) * np.eye(HEADS) + c * np.ones((HEADS, HEADS))


def made(experiment, error_of) -> Results:
    """Noise correlation = squared cosine; the ensemble's error as asked of the mean index."""
    rng = np.random.default_rng(5)
    simulated, predicted, coordinates = {}, {}, {}
    noise = rng.standard_normal(BATCHES)
    for point in experiment.points("standard"):
        r = 0.5 + 0.5 * cosines(point.coordinates) ** 2
        np.fill_diagonal(r, 1.0)
        mse = error_of(1 - (r.sum() - HEADS) / (HEADS * (HEADS - 1)))
        pair = ("head", "head2")
        truth = {
            "integrated_signal_covariance": (pair, 0.2 * r),
            "integrated_noise_covariance": (pair, 0.8 * r),
            "n_eff": (("query", "head"), np.full((2, HEADS), 100.0)),
        }
        batch = ("batch", "head", "head2")
        draws = {k: (batch, np.stack([v[1]] * BATCHES)) for k, v in truth.items() if k != "n_eff"}
        for term in ("mse", "squared_bias", "ensemble_variance"):
            truth[term] = mse
            # Common draws: what varies from batch to batch does so alike at all points.
            draws[term] = ("batch", mse * (1 + 0.01 * noise + 1e-4 * rng.standard_normal(BATCHES)))
            draws[f"{term}_mcse"] = 0.01 * mse
        coordinates[point.name] = point.coordinates
        predicted[point.name] = xr.Dataset(truth)
        simulated[point.name] = xr.Dataset(draws, attrs={"replicates": 512})
    return Results("diversity", "standard", coordinates, simulated, predicted, {})


def verdicts(results, experiment):
    return {(v.claim, v.regime): v.verdict for v in analysis.judge(results, experiment)}


def test_the_mean_index_is_supported_where_error_is_a_falling_function_of_it(experiment):
    found = verdicts(made(experiment, lambda index: 2 - index), experiment)
    assert set(found) == {(c.id, c.regime) for c in experiment.claims}
    assert found["hdi", "by both roads"] == "supported"
    regimes = ("pure noise", "exchangeable", "one fixed target", "single index", "redundant views")
    for regime in regimes:
        assert found["hdi-monotone", f"{regime}, mean, outputs"] == "supported"
    # The effective rank orders uneven heads otherwise, so the same data refute it.
    assert found["hdi-monotone", "pure noise, entropy, outputs"] == "refuted"
    # Redundant views are equicorrelated: there all definitions agree.
    for definition in ("top", "entropy", "participation"):
        assert found["hdi-monotone", f"redundant views, {definition}, outputs"] == "supported"


def test_a_rising_error_is_refuted(experiment):
    found = verdicts(made(experiment, lambda index: 1 + index), experiment)
    assert all(v == "refuted" for (claim, _), v in found.items() if claim == "hdi-monotone")


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
        total = total + analysis.output_covariance(found) / 3
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
