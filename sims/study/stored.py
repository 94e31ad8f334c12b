"""Files of a run's results: written with their origin, and read only if they are of this run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from sims.base.errors import InputError
from sims.base.identity import digest
from sims.study import code, provenance
from sims.study.describing import read_variables
from sims.study.experiment import Experiment
from sims.study.referenced_files import resolve_files
from sims.study.results import Coordinates, Results, assembled, write


def results_of(experiment: Experiment, folder: Path) -> Results:
    """Results of an experiment in a folder.

    Raises:
        InputError: a file is damaged, or was made with other settings.
    """
    results = Results.load(folder, experiment.settings, experiment.identity)
    _check_settings(experiment, results.simulation, folder / "simulation.nc")
    _check_settings(experiment, results.theory, folder / "theory.nc")
    return results


def _check_settings(experiment: Experiment, data: xr.Dataset, path: Path) -> None:
    """Refuse a file whose problems, seed or settings differ from the experiment's."""
    recorded = json.loads(data.attrs["provenance"]).get("settings", {})
    method = path.stem
    for key, value in _settings(experiment, method).items():
        if recorded.get(key, value) != value:
            allowed = f"{value}, from {experiment.folder / 'experiment.yaml'}: run {method} again"
            raise InputError(str(path), f"{key} {recorded[key]}", allowed)


def _settings(experiment: Experiment, method: str) -> dict[str, Any]:
    """Settings and problem digest that, with the code, determine the numbers of a method."""
    law = resolve_files(code.without_prose(experiment.spec.law), experiment.folder)
    problem = digest(experiment.settings, experiment.simulation.seed, law)
    settings = experiment.simulation.model_dump(mode="json") if method == "simulation" else {}
    return {"problem": problem, **settings}


def write_method(
    experiment: Experiment,
    method: str,
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    digests: Mapping[str, str],
    output: Path,
) -> None:
    """Write a method's results, with the digest of every problem."""
    step = "simulate" if method == "simulation" else "predict"
    settings = _settings(experiment, method)
    origin = provenance.origin(
        method=method,
        experiment=experiment.name,
        fidelity=experiment.fidelity,
        fingerprint=code.digest(step, experiment.folder, experiment.fidelity, output.parent),
        specification=experiment.spec.model_dump(mode="json"),
        problem=settings["problem"],
        problems=dict(digests),
        settings=settings,
        seed=experiment.simulation.seed,
        origins=provenance.origins(data.values()),
        **provenance.replicates(data.values()),
    )
    labelled = assembled(data, coordinates, origin, read_variables(experiment.folder))
    write(labelled, output, f"{method}.nc of {experiment.identity}")
