"""The experiment `adding_heads`: sub-ensembles, verdicts that can fail, figure and caption."""

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

FOLDER = Path(__file__).parents[2] / "experiments" / "adding_heads"
analysis = _module(FOLDER / "analysis.py")
BATCHES = 12


def made(heads: int, bias: float, variance: float, covariance: float, batches: bool):
    """Terms of exchangeable heads, as a simulation (with a little noise) or as theory."""
    lead = (BATCHES, 1, heads) if batches else (1, heads)
    noise = 1 + 1e-4 * np.random.default_rng(heads).normal(size=(*lead[:-2], 1, 1, 1))
    both = covariance + (variance - covariance) * np.eye(heads)
    pairs = (noise if batches else 1.0) * np.broadcast_to(both, (*lead, heads))
    product = np.full((*lead, heads), bias**2)
    data = terms.assemble(np.full(lead, bias), product, pairs, np.zeros_like(pairs))
    if batches:
        return data
    exact = {f"exact_{part}": data[part] for part in analysis.PARTS}
    exact |= {f"{name}_error": 1e-6 * value for name, value in exact.items()}
    return data.assign(exact).assign(n_eff=(("query", "head"), np.full((1, heads), 99.0)))


@pytest.fixture(scope="module")
def experiment():
    return load_experiment(FOLDER)


@pytest.fixture
def results(experiment):
    """The closed form of "Adding heads in practice", with made-up b, v, c, on the real grid."""
    points, simulated, predicted = {}, {}, {}
    for block in experiment.grid:
        kinds = np.atleast_1d(block["design.correlation"])
        for kind in kinds:
            heads, width = block["heads.count"], block["heads.width"]
            variance, bias = 0.01 * width**1.2, 0.3 * width**-0.3
            covariance = variance * (0.3 + 0.7 * kind)
            name = f"{len(points):04d}"
            points[name] = {
                "heads.count": heads,
                "heads.width": width,
                "design.correlation": float(kind),
            }
            simulated[name] = made(heads, bias, variance, covariance, True)
            predicted[name] = made(heads, bias, variance, covariance, False)
    return Results("adding_heads", "standard", points, simulated, predicted, {})


def verdicts(results, experiment):
    return {v.regime: v.verdict for v in analysis.judge(results, experiment)}


@pytest.mark.theory
def test_sub_ensembles_follow_the_closed_form(results):
    errors = analysis.Errors(results)
    variance, bias = 0.01 * 4**1.2, 0.3 * 4**-0.3
    assert len(errors.growing(0.0)) == len(errors.fixed(0.0)) == 5
    for heads, _, kind in errors.growing(0.5) + errors.growing(0.0):
        covariance = variance * (0.3 + 0.7 * kind)
        expected = bias**2 + covariance + (variance - covariance) / heads
        assert errors.theory[heads, 4, kind] == pytest.approx(expected, rel=1e-12)


def test_claims_hold_where_they_should(results, experiment):
    found = verdicts(results, experiment)
    assert set(found) == {c.regime for c in experiment.claims}
    assert set(found.values()) == {"supported"}


def changed(results, choose, scale):
    """Covariances scaled in the simulated points that are chosen."""
    data = dict(results.simulation)
    for name, at in results.points.items():
        if choose(at):
            d = data[name].copy(deep=True)
            d["integrated_signal_covariance"] = d["integrated_signal_covariance"] * scale
            data[name] = d
    return replace(results, simulation=data)


def test_verdicts_can_fail(results, experiment):
    worse = changed(results, lambda at: at["design.correlation"] == 0.0, 3.0)
    found = verdicts(worse, experiment)
    assert found["few diverse against many aligned"] == "refuted"
    assert found["fixed D, diverse against aligned"] == "refuted"
    assert found["theory"] == found["exact theory"] == "refuted"
    slightly = changed(results, lambda at: at["heads.width"] == 2, 1.1)
    found = verdicts(slightly, experiment)
    assert (found["theory"], found["exact theory"]) == ("supported", "refuted")
    # Diverse heads under the name of aligned ones.
    names = {
        (at["heads.count"], at["heads.width"], at["design.correlation"]): n
        for n, at in results.points.items()
    }
    swapped = dict(results.simulation)
    a, b = names[16, 4, 0.0], names[16, 4, 1.0]
    swapped[a], swapped[b] = swapped[b], swapped[a]
    found = verdicts(replace(results, simulation=swapped), experiment)
    assert found["growing D, aligned heads"] == "refuted"
    assert found["growing D, diverse heads"] != "supported"


def test_aligned_views_are_one_head(experiment):
    """By theory, on the real grid: the error of aligned heads is that of the first."""
    from sims.theory import predict

    point = experiment.points("smoke")[1]
    assert point.coordinates["design.correlation"] == 1.0
    data = predict(*point.spec.build())
    one, all_ = analysis._error(data, 1), analysis._error(data, 8)
    assert all_ == pytest.approx(float(one), rel=1e-9)


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
