"""The predictions of an experiment, and how the results of either road are written."""

import itertools
import sys
from collections.abc import Mapping
from pathlib import Path

import xarray as xr

from sims.errors import InputError
from sims.identity import digest
from sims.study import code
from sims.study.checking import own_code
from sims.study.describing import read_variables
from sims.study.experiment import Experiment, Point
from sims.study.results import Coordinates, assembled, write


def predict(experiment: Experiment, output: Path) -> None:
    """Predict every point of an experiment, and write them into one file.

    Args:
        experiment: which one.
        output: the file; finished points are kept in ``.points`` beside it.

    Raises:
        InputError: a problem cannot be built or has no theory; the line names the grid point.
    """
    from sims.montecarlo import store
    from sims.runtime import forget_compiled, in_threads
    from sims.study.planning import costs, named
    from sims.study.population import predict_point
    from sims.study.units import units_of

    own = experiment.module("predict")
    points = experiment.points
    coordinates: Coordinates = {point.name: point.coordinates for point in points}
    if own is not None:
        with own_code(experiment.folder):
            predictions = own.predict(experiment)
        if experiment.module("simulate") is not None:  # which names the points' coordinates
            units = units_of(experiment)
            coordinates = {**coordinates, **{k: unit.coordinates for k, unit in units.items()}}
        write_road(experiment, "theory", predictions, coordinates, output)
        return
    if not points:
        raise InputError("problem", None, "a base problem, or a predict.py beside experiment.yaml")
    costs(experiment, ["theory"])
    folder = output.parent / ".points"
    settings = experiment.theory
    seed = experiment.simulation.seed
    drawn = seed if experiment.redraws else None
    made = digest(code.code("predict", experiment.folder), settings.model_dump(), drawn)
    owner = digest(experiment.identity, experiment.seed_offset, experiment.redrawn)[:8]
    done = itertools.count(1)

    def finish(point: Point) -> xr.Dataset:
        path = folder / f"{point.digest}-theory-{owner}-{made}.npz"
        kept = store.load(path)
        if kept is None:
            forget_compiled()
            with named(point.name, point.coordinates):
                kept = predict_point(point, settings, seed)
            store.save(kept, path)
        say_done(experiment, "theory", next(done), len(points))
        return kept

    predictions = dict(
        zip([point.name for point in points], in_threads(finish, points), strict=True)
    )
    store.prune(folder, "theory", owner, made)
    write_road(experiment, "theory", predictions, coordinates, output)


def write_road(
    experiment: Experiment,
    road: str,
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    output: Path,
    start: str | None = None,
) -> None:
    """Write a road's results; ``start`` is the contract under which a simulation began."""
    from sims import provenance

    step = "simulate" if road == "simulation" else "predict"
    origin = provenance.collect(
        road=road,
        experiment=experiment.name,
        fidelity=experiment.fidelity,
        specification=experiment.spec.model_dump(mode="json"),
        fingerprint=code.digest(step, experiment.folder, experiment.fidelity),
    )
    seed = experiment.simulation.seed if experiment.redraws else None
    problem = digest(experiment.settings, experiment.problems, seed)
    drawn = experiment.simulation.seed if road == "simulation" else seed
    origin |= {"problem": problem, "contract": start, "seed": drawn} | provenance.replicates(data)
    problems, own = experiment.problems_by_name, read_variables(experiment.folder)
    whole = assembled(data, coordinates, problems, origin, own)
    write(whole, output, f"{road}.nc of {experiment.identity}")


def say_done(experiment: Experiment, road: str, done: int, total: int) -> None:
    """Say on stderr how far a road is: on a terminal at every step, else at its end."""
    if sys.stderr.isatty() or done == total:
        print(f"{experiment.name}: {road} {done}/{total}", file=sys.stderr)
