"""A sweep of one's own: both roads at every point, in one labelled file."""

import json
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims import provenance, store
from sims.errors import InputError, Uncovered
from sims.identity import digest
from sims.runtime import in_threads
from sims.study import code
from sims.study.describing import KEYS, VARIABLES, Words, attributes, described
from sims.study.experiment import Point
from sims.study.grid import coordinate
from sims.study.planning import Cost, check_covered, check_fits, cost, named
from sims.study.planning import described as lines_of
from sims.study.results import write
from sims.study.roads import predict_terms
from sims.study.stacking import POINT, column, short_names
from sims.study.sweepfile import DecomposeSpec, Sweep
from sims.study.units import GridUnit, simulated
from sims.terms import SCALARS

MEANS = {
    "n_eff": Words("effective number of keys of a head, mean", KEYS),
    "n_third": Words("third-moment keys of a head at a query, least", KEYS),
}
"""What is of single queries and heads elsewhere, and of all of them in :func:`row`."""


@dataclass(frozen=True)
class Run:
    """A sweep, and the file that it is written to; what is unfinished lies beside that."""

    sweep: Sweep
    output: Path

    @property
    def whose(self) -> str:
        """What its files are of."""
        return f"sweep {self.output.stem}"

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """What every point takes.

        Raises:
            InputError: a point is impossible, or all together are.
        """
        found = {}
        for point in self.sweep.points:
            with named(point.name, point.coordinates):
                found[point.name] = cost(point.spec, point.spec.build(), self.sweep.spec.simulation)
        check_fits(sum(each.results for each in found.values()))
        return found

    @cached_property
    def uncovered(self) -> dict[str, str]:
        """The points that the theory asked for has nothing about, and why."""
        found = {}
        for point in self.sweep.points:
            with named(point.name, point.coordinates):
                problem = point.spec.build()
            try:
                check_covered(problem, self.sweep.spec.theory)
            except InputError as error:
                value = coordinate(point.spec.model_dump(), error.field)
                found[point.name] = f"{error.field}: {value}; covered: {error.allowed}"
        return found

    def plan(self) -> list[str]:
        """Lines for people: sizes and cost, and what theory does not cover."""
        settings, points = self.sweep.spec, self.sweep.points
        axes = self.sweep.axes
        sizes = " x ".join(f"{len(v)} of {p}" for p, v in axes.items()) if axes else ""
        lines = lines_of(list(self.costs.values()), settings.simulation)
        lines[0] += f" ({sizes})" if sizes else ""
        missing = len(self.uncovered)
        covered = f"{len(points) - missing} of {len(points)} points" if missing else "all points"
        if settings.theory.order == "none":
            covered = "not asked for"
        lines.append(f"theory       {settings.theory.order}: {covered}")
        for reason, count in Counter(self.uncovered.values()).items():
            lines.append(f"             not at {count}: {reason}")
        return lines

    def _path(self, point: Point, road: str) -> Path:
        """The file that keeps a point of a road; sweeps side by side share theirs."""
        step = "simulate" if road == "simulation" else "predict"
        made = digest(code.code(step, None), getattr(self.sweep.spec, road).model_dump())
        return self.output.parent / f".points/{point.digest}-{road}-{made}.npz"

    def predicted(self, point: Point) -> xr.Dataset | None:
        """Theory at a point, kept once it is there; None where it has nothing.

        Raises:
            InputError: the problem cannot be built.
        """
        if point.name in self.uncovered or self.sweep.spec.theory.order == "none":
            return None

        def compute() -> xr.Dataset:
            with named(point.name, point.coordinates), warnings.catch_warnings():
                # Of accuracy that was missed; the bound on the error says the same.
                warnings.filterwarnings("ignore", "exact theory: ", UserWarning)
                return predict_terms(point.spec.build(), self.sweep.spec.theory).isel(order=0)

        with suppress(Uncovered):  # seen only when it computes, such as too few attended keys
            return store.kept(self._path(point, "theory"), compute)
        return None

    def part(self, index: int, count: int, progress: bool = False) -> None:
        """Compute the i-th of N parts of the points, and keep them.

        Raises:
            InputError: a problem cannot be simulated; the line names the point.
        """
        own = self.sweep.points[index - 1 :: count]
        for point in own:
            self.predicted(point)
            self.simulated(point, progress)
        print(f"{self.whose}: part {index}/{count}: {len(own)} points", file=sys.stderr)

    def simulated(self, point: Point, progress: bool) -> xr.Dataset:
        """The simulation of a point, kept once it is there."""
        path = self._path(point, "simulation")
        with named(point.name, point.coordinates):
            return simulated(GridUnit(point), self.sweep.spec.simulation, path, progress)

    def whole(self, progress: bool = False) -> xr.Dataset:
        """Both roads at every point, shards' batches included, written into the file.

        Raises:
            InputError: a problem cannot be simulated; the line names the point.
        """
        points = self.sweep.points
        order = self.sweep.spec.theory.order
        rows = {}
        for point, prediction in zip(points, in_threads(self.predicted, points), strict=True):
            estimate = self.simulated(point, progress)
            attrs = dict(estimate.attrs)
            rows[point.name] = {**row(estimate, prediction, order), "attrs": attrs}
        print(f"{self.whose}: {len(points)}/{len(points)}", file=sys.stderr)
        data = self._labelled(rows)
        write(data, self.output, f"{self.output.name} of {self.whose}")
        return data

    def _labelled(self, rows: Mapping[str, dict[str, Any]]) -> xr.Dataset:
        """The rows of all points under their coordinates."""
        points, axes = self.sweep.points, self.sweep.axes
        paths = list(points[0].coordinates)
        names = short_names(paths, {*VARIABLES})
        columns = {
            key: column([rows[point.name][key] for point in points])
            for key in rows[points[0].name]
            if key != "attrs"
        }
        dims: tuple[str, ...] = (POINT,)
        shape: tuple[int, ...] = (len(points),)
        coordinates: dict[str, tuple[str, np.ndarray]] = {POINT: (POINT, np.arange(len(points)))}
        if axes is not None:
            dims, shape = tuple(names[p] for p in axes), tuple(map(len, axes.values()))
            coordinates = {names[p]: (names[p], column(v)) for p, v in axes.items()}
        else:
            for p in paths:
                values = column([point.coordinates[p] for point in points])
                coordinates[names[p]] = (POINT, values)
        variables = {key: (dims, column.reshape(shape)) for key, column in columns.items()}
        data = xr.Dataset(variables, coordinates)
        for path in paths:
            data[names[path]].attrs["path"] = path
        attributes = origin(self.sweep.spec, "sweep", [r["attrs"] for r in rows.values()])
        return described(data, MEANS).assign_attrs(attributes)


def origin(
    spec: DecomposeSpec, command: str, simulated: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Where the numbers of a problem of one's own come from, as attributes of a file.

    Args:
        spec: the problem's file.
        command: which computed them.
        simulated: attributes of the estimates of every point.
    """
    settings = spec.simulation.model_dump()
    known = {
        "experiment": "none: a problem of one's own",
        "fidelity": "none",
        "road": f"{command}: both roads",
        "versions": provenance.versions(),
        **provenance.machine(),
        "fingerprint": digest(*(code.code(s, None) for s in ("simulate", "predict")), settings),
        "seed": spec.simulation.seed,
        **provenance.replicates({str(i): xr.Dataset(attrs=a) for i, a in enumerate(simulated)}),
    }
    return {
        **attributes(known),
        "title": "Bias, variance and covariance of an ensemble of Nadaraya-Watson heads",
        "theory": spec.theory.order,
        "specification": json.dumps(spec.model_dump(mode="json")),
        "provenance": json.dumps(known),
    }


def row(estimate: xr.Dataset, prediction: xr.Dataset | None, order: str) -> dict[str, Any]:
    """A point's scalars: every term by both roads, NaN where a road has nothing, and what was met.

    ``<term>`` and ``<term>_mcse`` are the simulation's mean and its Monte Carlo standard error,
    ``<term>_theory`` the prediction and ``<term>_theory_error`` the bound on exact theory's error.
    """
    theory = xr.Dataset() if prediction is None else prediction
    out: dict[str, Any] = {}
    for term in SCALARS:
        out[term] = float(estimate[term].mean())
        out[f"{term}_mcse"] = float(estimate[f"{term}_mcse"])
        out[f"{term}_theory"] = float(theory.get(term, np.nan))
        if order in ("exact", "auto"):
            out[f"{term}_theory_error"] = float(theory.get(f"{term}_error", np.nan))
    keys, third = theory.get("n_eff"), theory.get("n_third")
    out["n_eff"] = np.nan if keys is None else float(keys.mean())
    out["n_eff_least"] = np.nan if keys is None else float(keys.min())
    if order != "exact":
        out["n_third"] = np.nan if third is None else float(third.min())
    for name in ("empty_rate", "rounding", "batches", "replicates"):
        out[name] = np.asarray(estimate.attrs[name]).item()
    for name in ("faults", "cautions"):
        out[name] = "; ".join([*estimate.attrs.get(name, []), *theory.attrs.get(name, [])])
    return out
