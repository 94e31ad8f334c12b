"""Small runs of both roads of an experiment in memory, without files."""

from collections.abc import Callable
from dataclasses import replace

from sims.study.experiment import Experiment, load_experiment
from sims.study.results import Results
from sims.study.units import units_of


def small(name: str, **simulation: int) -> Experiment:
    """The experiment at smoke fidelity with other simulation settings, such as batches."""
    experiment = load_experiment(name, "smoke")
    smoke = experiment.spec.at("smoke").model_copy(update={"simulation": simulation})
    fidelities = {**experiment.spec.fidelities, "smoke": smoke}
    return replace(experiment, spec=experiment.spec.model_copy(update={"fidelities": fidelities}))


def both_roads(
    experiment: Experiment, has_theory: Callable[[str], bool] = lambda point: True
) -> Results:
    """What its own ``simulate.py`` and ``predict.py`` give, which have to name the same points.

    Args:
        experiment: which one.
        has_theory: whether theory has to say something of a point.
    """
    units = units_of(experiment)
    settings = experiment.simulation
    estimates = {name: unit.estimate(settings) for name, unit in units.items()}
    predictions = experiment.module("predict").predict(experiment)
    assert list(filter(has_theory, estimates)) == list(predictions)
    return Results(
        experiment.name,
        experiment.fidelity,
        estimates,
        predictions,
        experiment.settings,
        {name: unit.coordinates for name, unit in units.items()},
        {point.name: point.spec.model_dump(mode="json") for point in experiment.points},
        {},
    )
