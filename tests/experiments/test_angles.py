"""The experiment `angles`: verdicts that can fail, figure and caption, on made-up simulations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from sims.experiment import load_experiment
from sims.results import Results

from sims import terms
from sims.cli.steps import _module
from sims.report import render_caption

FOLDER = Path(__file__).parents[2] / "experiments" / "angles"
analysis, roads = (_module(FOLDER / f"{name}.py") for name in ("analysis", "predict"))
BATCHES = 16


@pytest.fixture(scope="module")
def experiment():
    return load_experiment(FOLDER)


def simulated(theory, covariance=1.0):
    """Batches around theory's terms, the noise covariance of two heads times ``covariance``."""
    noise = theory["noise_covariance"].values
    heads = noise.shape[-1]
    own = np.eye(heads, dtype=bool)
    # Of variances and covariances apart, or correlations would be the same in every batch; aligned
    # heads stay one head.
    shake = 1 + 1e-4 * np.random.default_rng(heads).normal(size=(2, BATCHES, 1, 1, 1))
    aligned = np.allclose(noise, noise[:, :1, :1])
    shake = np.where(own | aligned, shake[0], covariance * shake[1])
    parts = (
        np.broadcast_to(part, (BATCHES, *part.shape))
        for part in (theory[k].values for k in ("bias", "bias_product", "signal_covariance"))
    )
    return terms.add_mcse(terms.assemble(*parts, shake * noise))


@pytest.fixture(scope="module")
def results(experiment):
    points = {p.name: p.coordinates for p in experiment.points("smoke")}
    predicted = roads.predict(experiment, "smoke")
    data = {name: simulated(theory) for name, theory in predicted.items()}
    problem = {"queries": {"scale": experiment.problem["queries"]["scale"]}}
    origin = {"simulation": {"specification": {"problem": problem}}}
    return Results("angles", "smoke", points, data, predicted, origin)


def verdicts(results, experiment):
    return {(v.claim, v.regime): v.verdict for v in analysis.judge(results, experiment)}


def test_theory_itself_is_supported(results, experiment):
    found = verdicts(results, experiment)
    assert set(found) == {(c.id, c.regime) for c in experiment.claims}
    assert set(found.values()) == {"supported"}


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_exact_rows_can_fail(results, experiment, kernel):
    """A correlation 2 % off at the points of few queries refutes their row and no other."""
    before = verdicts(results, experiment)
    data = dict(results.simulation)
    for name, at in results.points.items():
        if analysis.FEW in at and at[analysis.KERNEL] == kernel:
            data[name] = simulated(results.theory[name], 1.02)
    after = verdicts(replace(results, simulation=data), experiment)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {("angles", f"{kernel} kernel, exact")}
    assert after["angles", f"{kernel} kernel, exact"] == "refuted"


def test_figure_and_caption(results, experiment):
    text = render_caption(
        FOLDER / "caption.md",
        experiment,
        results,
        analysis.judge(results, experiment),
        analysis.numbers(results),
    )
    assert "{{" not in text
    assert isinstance(analysis.figure(results), Figure)
