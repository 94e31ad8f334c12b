"""Files of a run: written with their origin, and read only if they are of this run."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from sims.base.errors import InputError
from sims.base.identity import digest
from sims.judgement.table import Table, shortened
from sims.study import code, provenance
from sims.study.describing import read_variables
from sims.study.panels import PANELS, TABLE, Panels
from sims.study.results import Coordinates, Results, assembled, read, write

if TYPE_CHECKING:
    from sims.study.running import Run

FAILURES = "failures"
"""Variable with the descriptions of problems that fail."""
DIGITS = 8
"""Digits of the numbers of these problems."""


def results_of(run: "Run", folder: Path) -> Results:
    """Results of an experiment in a folder.

    Raises:
        InputError: a file is damaged, or was made with other settings.
    """
    results = Results.load(folder, run.identity)
    for method, origin in results.provenance.items():
        path = folder / f"{method}.nc"
        _check_settings(run, origin.get("settings", {}), run.simulation.seed, path)
    return results


def _check_settings(run: "Run", recorded: Mapping[str, Any], seed: int, path: Path) -> None:
    """Refuse a file whose problems, seed or settings differ from the experiment's."""
    for key, value in _settings(run, seed).items():
        if recorded.get(key, value) != value:
            allowed = f"{value}, from {run.study.declared.location}: run its step again"
            raise InputError(str(path), f"{key} {recorded[key]}", allowed)


def _settings(run: "Run", seed: int) -> dict[str, Any]:
    """Settings and problem digest that, with code and seed, determine the numbers of a run."""
    law = run.study.declared.resolved(run.study.declared.law)
    simulation = run.simulation.model_dump(mode="json")
    return {"problem": digest(run.settings, seed, law), **simulation, "seed": seed}


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
    settings = _settings(run, run.simulation.seed)
    problem = settings["problem"]
    origin = provenance.origin(
        method=method,
        experiment=run.name,
        fidelity=run.fidelity,
        fingerprint=code.digest(step, run.study.declared, run.fidelity, output.parent),
        specification=run.spec.model_dump(mode="json"),
        problem=problem,
        problems=dict(digests),
        settings=settings if method == "simulation" else {"problem": problem},
        seed=run.simulation.seed,
        origins=provenance.origins(data.values()),
        **provenance.replicates(data.values()),
    )
    labelled = assembled(data, coordinates, origin, read_variables(run.study.folder))
    write(labelled, output, f"{method}.nc of {run.identity}")


def write_panels(run: "Run", panels: Panels, folder: Path) -> None:
    """Write the table of effects, and the arrays of figures, with what they were made of."""
    seed = run.simulation.seed
    origin = {**panels.table.origin, "settings": _settings(run, seed)}
    table = replace(panels.table, origin=origin)
    arrays = panels.arrays.assign_attrs(results=origin["results"])
    for name, array in panels.arrays.data_vars.items():
        if array.dtype.kind == "f":
            arrays[name] = array.copy(data=shortened(array.values))
    arrays[FAILURES] = ((), _round_numbers(json.dumps(panels.failures)))
    data = {TABLE: table.dataset(run.spec.questions), PANELS: arrays}
    for name, dataset in data.items():
        write(dataset, folder / name, f"{name} of {run.identity}", packed=True)


def _round_numbers(text: str) -> str:
    """JSON with numbers of :data:`DIGITS` digits."""
    return json.dumps(
        json.loads(text, parse_float=lambda number: float(f"{float(number):.{DIGITS}g}"))
    )


def read_panels(run: "Run", folder: Path) -> Panels:
    """Panels of an experiment from its files.

    Raises:
        InputError: a file is missing or damaged, was made with other settings, or of other results
            than the table.
    """
    table = Table.of(read(folder / TABLE, f"{TABLE} of {run.identity}"))
    arrays = read(folder / PANELS, f"{PANELS} of {run.identity}")
    # A published table keeps its seed, whatever salt other runs have.
    origin = table.origin
    _check_settings(run, origin["settings"], origin["seed"], folder / TABLE)
    if arrays.attrs["results"] != origin["results"]:
        allowed = f"those of {folder / TABLE}: tabulate again"
        raise InputError(str(folder / PANELS), "arrays of other results", allowed)
    failures = json.loads(str(arrays[FAILURES].values))
    return Panels(table, arrays.drop_vars(FAILURES), failures)
