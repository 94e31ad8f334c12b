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
from sims.study.planning import Cost, check_covered, check_fits, cost, named
from sims.study.planning import described as lines_of
from sims.study.results import write
from sims.study.roads import predict_terms
from sims.study.stacking import POINT, column, short_names
from sims.study.sweepfile import Sweep, SweepSpec
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
    def looked_at(self) -> tuple[list[Cost], dict[str, str]]:
        """What every point takes; and why theory has nothing about some, by their names.

        Raises:
            InputError: a point is impossible, or all together are.
        """
        spec, costs, uncovered = self.sweep.spec, [], {}
        for point in self.sweep.points:
            with named(point.name, point.coordinates):
                problem = point.spec.build()
                costs.append(cost(point.spec, problem, spec.simulation))
            try:
                check_covered(problem, spec.theory)
            except InputError as error:
                uncovered[point.name] = f"{error.field} {error.value}; covered: {error.allowed}"
        check_fits(sum(each.results for each in costs))
        return costs, uncovered

    def plan(self) -> list[str]:
        """Lines for people: sizes and cost, and what theory does not cover."""
        settings, axes, (costs, uncovered) = self.sweep.spec, self.sweep.axes, self.looked_at
        lines = lines_of(costs, settings.simulation)
        if axes:
            lines[0] += f" ({' x '.join(f'{len(v)} of {p}' for p, v in axes.items())})"
        asked = settings.theory.order != "none"
        covered = f"{(len(costs) - len(uncovered)) * asked} of {len(costs)} points"
        lines.append(f"theory       {settings.theory.order}: {covered}")
        for reason, count in Counter(uncovered.values()).items():
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
        if point.name in self.looked_at[1] or self.sweep.spec.theory.order == "none":
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
        predictions = list(in_threads(self.predicted, points))
        estimates = [self.simulated(point, progress) for point in points]
        pairs = zip(estimates, predictions, strict=True)
        print(f"{self.whose}: {len(points)}/{len(points)}", file=sys.stderr)
        data = self._labelled([row(*pair, order) for pair in pairs])
        data = data.assign_attrs(origin(self.sweep.spec, estimates))
        write(data, self.output, f"{self.output.name} of {self.whose}")
        return data

    def _labelled(self, rows: Sequence[Mapping[str, Any]]) -> xr.Dataset:
        """The rows of all points under their coordinates."""
        points, axes = self.sweep.points, self.sweep.axes
        names = short_names(list(points[0].coordinates), {*VARIABLES})
        data = xr.Dataset({key: (POINT, column([row[key] for row in rows])) for key in rows[0]})
        if axes is None:
            data[POINT] = np.arange(len(points))
            for path, name in names.items():
                values = column([point.coordinates[path] for point in points])
                data = data.assign_coords({name: (POINT, values)})
        else:
            along = {names[path]: column(values) for path, values in axes.items()}
            shape = tuple(map(len, along.values()))
            data = data.map(lambda v: xr.DataArray(v.values.reshape(shape), along, [*along]))
        for path, name in names.items():
            data[name].attrs["path"] = path
        return described(data, MEANS)


def origin(spec: SweepSpec, estimates: Sequence[xr.Dataset]) -> dict[str, str]:
    """Where the numbers of a sweep come from, as attributes of its file."""
    settings = spec.simulation.model_dump()
    known = {
        "experiment": "none: a problem of one's own",
        "fidelity": "none",
        "road": "sweep: both roads",
        "versions": provenance.versions(),
        **provenance.machine(),
        "fingerprint": digest(*(code.code(s, None) for s in ("simulate", "predict")), settings),
        "seed": spec.simulation.seed,
        **provenance.replicates(estimates),
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
