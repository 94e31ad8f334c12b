"""Made-up results whose truth is known, and what an experiment's modules make of results."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sims.estimates import mcse
from sims.study.experiment import Experiment
from sims.study.judging import effects_of, judge
from sims.study.results import Results


def results_of(
    experiment: Experiment,
    estimates: Mapping[str, xr.Dataset],
    predictions: Mapping[str, xr.Dataset],
) -> Results:
    """Results in memory, with coordinates and problems of the experiment's grid."""
    points = {point.name: point for point in experiment.points if point.name in estimates}
    return Results(
        experiment.name,
        experiment.fidelity,
        estimates,
        predictions,
        experiment.settings,
        {name: points[name].coordinates if name in points else {} for name in estimates},
        {name: point.spec.model_dump(mode="json") for name, point in points.items()},
        {},
    )


def batches_of(terms: Mapping[str, float], seed: int, batches: int = 64, spread: float = 1e-3):
    """Batches about the terms' values: independent, with a relative standard deviation."""
    rng = np.random.default_rng(seed)
    data = {k: v * (1 + spread * rng.standard_normal(batches)) for k, v in terms.items()}
    errors = {f"{k}_mcse": mcse(v) for k, v in data.items()}
    return xr.Dataset({k: ("batch", v) for k, v in data.items()} | errors, attrs={"replicates": 99})


def verdicts(experiment: Experiment, results: Results) -> dict[tuple[str, str], str]:
    """(claim, regime) to the verdict."""
    judged = judge(experiment, results, effects_of(experiment, results))
    return {(v.claim, v.regime): v.verdict for v in judged}


def check_figure(experiment: Experiment, results: Results) -> str:
    """The caption, after both it and the figure have been made."""
    from sims.figures import style
    from sims.report.captions import render_caption

    judged = judge(experiment, results, effects_of(experiment, results))
    own = experiment.module("figure")
    numbers = own.numbers(results) if hasattr(own, "numbers") else {}
    caption = render_caption(experiment.folder / "caption.md", results, judged, numbers)
    assert "{{" not in caption
    with style():
        assert isinstance(own.figure(results, judged), Figure)
    return caption
