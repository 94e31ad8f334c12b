"""Files of a run's results: written with their origin, and read only if they are of this run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from sims.base.errors import InputError
from sims.base.identity import digest
from sims.study import code, provenance
from sims.study.describing import read_variables
from sims.study.results import Coordinates, Results, assembled, write

if TYPE_CHECKING:
    from sims.study.running import Run


def results_of(run: "Run", folder: Path) -> Results:
    """Results of an experiment in a folder.

    Raises:
        InputError: a file is damaged, or was made with other settings.
    """
    results = Results.load(folder, run.settings, run.identity)
    _check_settings(run, results.simulation, folder / "simulation.nc")
    _check_settings(run, results.theory, folder / "theory.nc")
    return results


def _check_settings(run: "Run", data: xr.Dataset, path: Path) -> None:
    """Refuse a file whose problems, seed or settings differ from the experiment's."""
    recorded = json.loads(data.attrs["provenance"]).get("settings", {})
    method = path.stem
    for key, value in _settings(run, method).items():
        if recorded.get(key, value) != value:
            allowed = f"{value}, from {run.study.declared.location}: run {method} again"
            raise InputError(str(path), f"{key} {recorded[key]}", allowed)


def _settings(run: "Run", method: str) -> dict[str, Any]:
    """Settings and problem digest that, with the code, determine the numbers of a method."""
    law = run.study.declared.resolved(run.study.declared.law)
    problem = digest(run.settings, run.simulation.seed, law)
    settings = run.simulation.model_dump(mode="json") if method == "simulation" else {}
    return {"problem": problem, **settings}


def write_method(
    run: "Run",
    method: str,
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    digests: Mapping[str, str],
    output: Path,
) -> None:
    """Write a method's results, with the digest of every problem."""
    step = "simulate" if method == "simulation" else "predict"
    settings = _settings(run, method)
    origin = provenance.origin(
        method=method,
        experiment=run.name,
        fidelity=run.fidelity,
        fingerprint=code.digest(step, run.study.declared, run.fidelity, output.parent),
        specification=run.spec.model_dump(mode="json"),
        problem=settings["problem"],
        problems=dict(digests),
        settings=settings,
        seed=run.simulation.seed,
        origins=provenance.origins(data.values()),
        **provenance.replicates(data.values()),
    )
    labelled = assembled(data, coordinates, origin, read_variables(run.study.folder))
    write(labelled, output, f"{method}.nc of {run.identity}")
