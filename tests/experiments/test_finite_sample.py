"""The experiment `finite_sample`: its verdicts can fail, and its parts fit together."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from sims.experiment import load_experiment
from sims.results import Results

from sims.cli.steps import _module
from sims.report import render_caption
from sims.terms import SCALARS

FOLDER = Path(__file__).parents[2] / "experiments" / "finite_sample"
analysis = _module(FOLDER / "analysis.py")
BATCHES = 32


@pytest.fixture(scope="module")
def experiment():
    return load_experiment(FOLDER)


def made(
    experiment, *, off: float = 0.0, error: float = 1e-5, first_gap=lambda keys: 1 / keys
) -> Results:
    """Results whose truth is known: simulation is `off` from exact in one term at one point."""
    rng = np.random.default_rng(3)
    sizes = np.geomspace(4, 8192, 9).round()
    simulated, predicted, coordinates = {}, {}, {}
    for index, point in enumerate(experiment.points("standard")):
        coordinates[point.name] = point.coordinates
        data = {"n_eff": (("query", "head"), np.full((2, 2), point.coordinates["n"] / 2))}
        draws = {}
        for term in SCALARS:
            gap = first_gap(sizes / 2)
            data |= {
                term: 1.0,
                f"{term}_error": error,
                f"first_{term}": 1.0,
                f"curve_{term}": ("curve_n", np.ones(len(sizes))),
                f"curve_first_{term}": ("curve_n", 1 + gap),
            }
            shift = off if (term, index) == ("noise_variance", 4) else 0.0
            batches = 1 + shift + 0.005 * rng.standard_normal(BATCHES)
            draws[term] = ("batch", batches)
            draws[f"{term}_mcse"] = batches.std(ddof=1) / np.sqrt(BATCHES)
        curves = {"curve_n_eff": ("curve_n", sizes / 2), "curve_n": ("curve_n", sizes)}
        predicted[point.name] = xr.Dataset(data | curves)
        simulated[point.name] = xr.Dataset(draws, attrs={"replicates": 1000})
    return Results("finite_sample", "standard", coordinates, simulated, predicted, {})


def verdicts(results, experiment):
    return {(v.claim, v.regime): v.verdict for v in analysis.judge(results, experiment)}


def test_all_supported_where_all_is_true(experiment):
    found = verdicts(made(experiment), experiment)
    assert set(found) == {(c.id, c.regime) for c in experiment.claims}
    assert set(found.values()) == {"supported"}


def test_one_term_off_at_one_point_is_refuted(experiment):
    found = verdicts(made(experiment, off=0.03), experiment)
    assert found["exact", "every term"] == "refuted"


def test_an_error_of_theory_as_large_as_the_margin_decides_nothing(experiment):
    found = verdicts(made(experiment, error=0.02), experiment)
    assert found["exact", "every term"] == "inconclusive"


def test_a_slower_law_is_refuted(experiment):
    found = verdicts(made(experiment, first_gap=lambda keys: keys**-0.5), experiment)
    assert found["remainder-order", "softmax"] == "refuted"
    assert found["decomposition", "first order, softmax"] == "refuted"


def test_a_missing_kernel_supports_nothing(experiment):
    whole = made(experiment)
    names = [k for k, at in whole.points.items() if analysis.kernel_of(at) == "gaussian"]
    parts = ({k: d[k] for k in names} for d in (whole.points, whole.simulation, whole.theory))
    found = verdicts(Results("finite_sample", "smoke", *parts, {}), experiment)
    assert found["remainder-order", "softmax"] == "inconclusive"
    assert found["decomposition", "first order, softmax"] == "inconclusive"
    assert found["remainder-order", "gaussian"] == "supported"


def test_figure_and_caption(experiment):
    results = made(experiment)
    assert isinstance(analysis.figure(results), Figure)
    judged = analysis.judge(results, experiment)
    numbers = analysis.numbers(results)
    caption = render_caption(FOLDER / "caption.md", experiment, results, judged, numbers)
    assert "{{" not in caption
    assert "supported" in caption
