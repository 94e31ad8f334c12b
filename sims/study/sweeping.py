"""Sweeps: both methods at every point, in one labelled file."""

import json
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base.errors import InputError
from sims.base.files import locked
from sims.base.identity import combined_digest
from sims.base.runtime import in_threads
from sims.base.terms import BATCH, PROBLEM, SCALARS, phrases
from sims.simulation.many import estimate_many
from sims.study import code, provenance
from sims.study.describing import KEYS, VARIABLES, Words
from sims.study.grid import Point, point_errors
from sims.study.planning import ProblemClass, classify, doubts, plan_lines
from sims.study.referenced_files import without_paths
from sims.study.results import is_current, labelled, write
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem
from sims.study.stacking import POINT, Scalar, column, short_names
from sims.study.sweepfile import SweepSpec
from sims.study.units import Simulation
from sims.theory import predict

MEANS = {
    "n_eff": Words("effective number of keys of a head, mean", KEYS),
    "n_third": Words("third-moment keys of a head at a query, least", KEYS),
}
"""Variables per query and head elsewhere, averaged here."""
MAX_GROUP = 64
"""Maximum number of points of a group, which one call of a program computes."""
LONG = 6e10
"""Maximum operations of a group of several points: a minute of one core."""
NOTES = ("faults", "cautions")


@dataclass(frozen=True)
class Group:
    """A unit of a sweep: points of one class, computed by one call of a program.

    Attributes:
        points: the points.
        size: number of problems of the call, padded with the last one. Groups of a class have one
            size, since a program is compiled for each.
        work: number of operations.
        theory: order and accuracy of theory.
        is_covered: true if theory covers the points.
    """

    points: Sequence[Point]
    size: int
    work: float
    theory: TheorySpec
    is_covered: bool

    @property
    def identity(self) -> str:
        """Index of the first point, which identifies the group within one sweep."""
        return f"group_{self.points[0].name}"

    @property
    def coordinates(self) -> dict[str, Scalar]:
        """Coordinates of a single point."""
        return self.points[0].coordinates if len(self.points) == 1 else {}

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Terms by both methods, one row per point; the checkpoint is for a single one.

        Raises:
            InputError: a problem cannot be simulated; the line names the point.
        """
        problems = []
        for point in self.points:
            with point_errors(point.name, point.coordinates):
                problems.append(point.spec.build())
        predictions = [xr.Dataset()] * len(problems)
        if self.is_covered:
            predictions = in_threads(partial(_prediction, theory=self.theory), problems)
        options = {**settings.estimator, **settings.sampling, "keep_queries": False}
        options |= {"checkpoint": checkpoint if self.size == 1 else None, "progress": progress}
        filled = problems + [problems[-1]] * (self.size - len(problems))
        data = estimate_many(filled, settings.seed, **options)
        data = data.isel({PROBLEM: slice(len(problems))})
        columns = columns_of(data, predictions, self.theory.order)
        columns["rounding"] = data["rounding"].values
        for name in NOTES:
            columns[name] = []
            for note, prediction in zip(data[name].values, predictions, strict=True):
                columns[name].append("; ".join(filter(None, [note, *phrases(prediction, name)])))
        rows = {name: (POINT, values) for name, values in columns.items()}
        places = [int(point.name) for point in self.points]
        return xr.Dataset(rows, {POINT: places}, {"precision": data.attrs["precision"]})


@dataclass(frozen=True)
class Sweep:
    """A sweep and its output file; finished groups are in a folder next to it.

    Attributes:
        spec: the sweep's file.
        points: its problems.
        output: the output file.
    """

    spec: SweepSpec
    points: Sequence[Point]
    output: Path

    @property
    def is_grid(self) -> bool:
        """True if points are in the order of a grid, the last path's values changing fastest."""
        return self.spec.sweep.grid is not None

    @cached_property
    def axes(self) -> dict[str, list[Scalar]]:
        """Dotted path to the coordinates of points; for a grid, to the distinct ones."""
        axes = {}
        for path in self.points[0].coordinates:
            axes[path] = [point.coordinates[path] for point in self.points]
            if self.is_grid:
                axes[path] = list(dict.fromkeys(axes[path]))
        return axes

    @property
    def identity(self) -> str:
        """Name with which the sweep's file is sealed."""
        return f"sweep {self.output.stem}"

    @property
    def folder(self) -> Path:
        """Folder of finished groups until the file is written."""
        return self.output.with_suffix(".shards")

    @cached_property
    def classes(self) -> list[ProblemClass]:
        """The sweep's problems by class.

        Raises:
            InputError: a point is impossible.
        """
        return classify(self.points, self.spec.simulation, self.spec.theory)

    @property
    def is_covered(self) -> bool:
        """True if theory covers every point, as far as this is known in advance."""
        return not any(problem_class.uncovered for problem_class in self.classes)

    @cached_property
    def source_digest(self) -> str:
        """Digest of the code, settings and problems that determine the numbers."""
        problems = [point.spec for point in self.points]
        made_of = [self.spec.simulation, self.spec.theory, *problems]
        known = without_paths([part.model_dump(mode="json") for part in made_of])
        text = json.dumps(known, sort_keys=True)
        return combined_digest(code.package_code(__name__), text)

    def plan(self) -> list[str]:
        """Lines of a plan: sizes, cost, and the points that theory does not cover."""
        order = self.spec.theory.order
        costs = []
        missing = Counter[str]()
        covered = []
        for alike in self.classes:
            costs += [alike.cost] * len(alike.points)
            if alike.uncovered:
                missing[alike.uncovered] += len(alike.points)
            elif order != "none":
                covered += alike.points
        missing += doubts(covered, self.spec.theory)
        lines = plan_lines(costs, self.spec.simulation)
        sizes = [f"{len(values)} of {path}" for path, values in self.axes.items()]
        if self.is_grid and sizes:
            lines[0] += f" ({' x '.join(sizes)})"
        lines.append(f"theory       {order}: {missing.pop('', 0)} of {len(costs)} points")
        for reason, count in missing.items():
            lines.append(f"             not at {count}: {reason}")
        return lines

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Groups by the names of their points; groups of a class are adjacent.

        They do not depend on the number of parts.
        """
        simulation = self.spec.simulation
        theory = self.spec.theory
        groups = {}
        for problem_class in self.classes:
            points = problem_class.points
            work = problem_class.cost.work
            limit = 1 if simulation.rel_mcse is not None else int(LONG / work)
            count = -(-len(points) // min(max(limit, 1), MAX_GROUP))
            size = -(-len(points) // count)
            is_covered = theory.order != "none" and not problem_class.uncovered
            for start in range(0, len(points), size):
                members = points[start : start + size]
                name = " to ".join(dict.fromkeys([members[0].name, members[-1].name]))
                groups[name] = Group(members, size, len(members) * work, theory, is_covered)
        return groups

    def simulation(self, progress: bool = False) -> Simulation:
        """Units of the sweep, kept in its folder."""
        settings = self.spec.simulation
        return Simulation(self.groups, settings, self.folder, self.source_digest, progress)

    def compute(self, part: tuple[int, int] = (1, 1), progress: bool = False) -> list[xr.Dataset]:
        """Rows of the groups of the i-th of N parts, which are kept.

        Groups that an earlier run finished, with any number of parts, are reused.

        Raises:
            InputError: a problem cannot be simulated; the line names the point.
        """
        simulation = self.simulation(progress)
        rows = [simulation.batches_of(name) for name in simulation.part(*part)]
        print(f"{self.identity}: part {part[0]}/{part[1]}", file=sys.stderr)
        return rows

    def finish(self, progress: bool = False) -> xr.Dataset:
        """Labelled result, written to the file; missing groups are computed.

        Raises:
            InputError: a problem cannot be simulated, or another run writes to the file.
        """
        with locked(self.folder / ".lock", str(self.output), "choose another --output"):
            rows = self.compute(progress=progress)
            columns = xr.concat(rows, POINT, combine_attrs="override").sortby(POINT)
            facts = provenance.origin(
                method="sweep: theory and simulation",
                fingerprint=self.source_digest,
                seed=self.spec.simulation.seed,
                precision=columns.attrs["precision"],
                replicates_total=int(columns["replicates"].sum()),
                origins=provenance.origins(rows),
            )
            data = labelled(self._on_axes(columns), facts, MEANS).assign_attrs(
                title="Bias, variance and covariance of an ensemble of Nadaraya-Watson heads",
                theory=self.spec.theory.order,
                specification=json.dumps(self.spec.model_dump(mode="json")),
            )
            write(data, self.output, f"{self.output.name} of {self.identity}")
            shutil.rmtree(self.folder, ignore_errors=True)
            return data

    def is_done(self) -> bool:
        """True if the file is complete and belongs to this sweep."""
        return is_current(self.output, f"{self.output.name} of {self.identity}", self.source_digest)

    def _on_axes(self, columns: xr.Dataset) -> xr.Dataset:
        """The rows of all points under their coordinates."""
        coordinates = {}
        for path, name in short_names(list(self.axes), VARIABLES).items():
            dimension = name if self.is_grid else POINT
            coordinates[name] = (dimension, column(self.axes[path]), {"path": path})
        if self.is_grid:
            shape = [len(values) for values in self.axes.values()]
            columns = columns.drop_vars(POINT).map(
                lambda v: xr.DataArray(v.values.reshape(shape), dims=[*coordinates])
            )
        return columns.assign_coords(coordinates)


def _prediction(problem: Problem, theory: TheorySpec) -> xr.Dataset:
    """Theory's terms, or only cautions if theory fails during the computation."""
    try:
        with warnings.catch_warnings():
            # Of accuracy that was missed; the bound on the error says the same.
            warnings.filterwarnings("ignore", "exact theory: ", UserWarning)
            return predict(*problem, **theory.options)
    except InputError as error:  # such as too few attended keys
        reason = f"no theory: {error.field} {error.value}; covered: {error.allowed}"
        return xr.Dataset(attrs={"cautions": reason})


def columns_of(
    estimate: xr.Dataset, predictions: Sequence[xr.Dataset], order: str
) -> dict[str, Any]:
    """Scalars of problems: every term by both methods (NaN if missing), and effective keys.

    ``<term>`` and ``<term>_mcse`` are the simulation's mean and its Monte Carlo standard error,
    ``<term>_theory`` the prediction and ``<term>_theory_error`` the bound on exact theory's error.

    Args:
        estimate: estimates with the dimension ``problem``.
        predictions: predictions of each problem, without variables if theory does not cover it.
        order: order of theory.
    """
    columns: dict[str, Any] = {}
    for term in SCALARS:
        columns[term] = estimate[term].mean(BATCH).values
        columns[f"{term}_mcse"] = estimate[f"{term}_mcse"].values
        columns[f"{term}_theory"] = _values(predictions, term)
        if order in ("exact", "auto"):
            columns[f"{term}_theory_error"] = _values(predictions, f"{term}_error")
    columns["n_eff"] = _values(predictions, "n_eff", np.mean)
    columns["n_eff_least"] = _values(predictions, "n_eff")
    if order != "exact":
        columns["n_third"] = _values(predictions, "n_third")
    rates = estimate["mean_empty_rate"]
    columns["empty_rate"] = rates.mean([d for d in rates.dims if d != PROBLEM]).values
    for name in ("batches", "replicates"):
        columns[name] = [int(estimate.attrs[name])] * len(predictions)
    return columns


def _values(
    predictions: Sequence[xr.Dataset], name: str, reduce: Callable[[Any], Any] = np.min
) -> list[float]:
    """A variable of each prediction as one number, NaN if it is missing."""
    return [float(reduce(np.asarray(p.variables.get(name, np.nan)))) for p in predictions]
