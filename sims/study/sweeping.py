"""Sweeps: both methods at every point, in one labelled file."""

import json
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base import store
from sims.base.errors import InputError
from sims.base.identity import digest
from sims.base.runtime import in_threads
from sims.base.terms import BATCH, PROBLEM, SCALARS, phrases
from sims.simulation.many import estimate_many
from sims.study import code, provenance
from sims.study.describing import KEYS, VARIABLES, Words, attributes, described
from sims.study.grid import Point, point_errors
from sims.study.planning import ProblemClass, classify, plan_lines
from sims.study.results import read, write
from sims.study.schema import TheorySpec
from sims.study.specification import Problem
from sims.study.stacking import POINT, column, short_names
from sims.study.sweepfile import Sweep, SweepSpec
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
class Run:
    """A sweep and its output file; unfinished work is in a folder next to it.

    Attributes:
        sweep: the problems.
        output: the file.
        shards: number of separately computed parts, each of complete groups of points.
    """

    sweep: Sweep
    output: Path
    shards: int = 1

    @property
    def identity(self) -> str:
        """Name with which the sweep's files are sealed."""
        return f"sweep {self.output.stem}"

    @property
    def folder(self) -> Path:
        """Folder of finished work until it is gathered.

        Files are named by the digest of code, settings and points. For one digest, the index of a
        point identifies its problem, for any number of parts.
        """
        return self.output.with_suffix(".shards")

    def part(self, index: int) -> Path:
        """The file of the i-th part, from 1."""
        return self.folder / f"{index}-of-{self.shards}-{self.source_digest}.nc"

    @cached_property
    def classes(self) -> list[ProblemClass]:
        """The sweep's problems by class.

        Raises:
            InputError: a point is impossible.
        """
        return classify(self.sweep.points, self.sweep.spec.simulation, self.sweep.spec.theory)

    @property
    def is_covered(self) -> bool:
        """True if theory covers every point, as far as this is known in advance."""
        return not any(problem_class.uncovered for problem_class in self.classes)

    @cached_property
    def source_digest(self) -> str:
        """Digest of the code, settings and problems that determine the numbers."""
        spec = self.sweep.spec
        problems = [point.spec.model_dump_json() for point in self.sweep.points]
        simulation = spec.simulation.model_dump()
        return digest(code.code("sweep", None), simulation, spec.theory.model_dump(), problems)

    def plan(self) -> list[str]:
        """Lines of a plan: sizes, cost, and the points that theory does not cover."""
        order = self.sweep.spec.theory.order
        costs = []
        missing = Counter[str]()
        for alike in self.classes:
            costs += [alike.cost] * len(alike.points)
            missing[alike.uncovered] += len(alike.points)
        lines = plan_lines(costs, self.sweep.spec.simulation)
        sizes = [f"{len(values)} of {path}" for path, values in self.sweep.axes.items()]
        if self.sweep.is_grid and sizes:
            lines[0] += f" ({' x '.join(sizes)})"
        covered = missing.pop("", 0) * (order != "none")
        lines.append(f"theory       {order}: {covered} of {len(costs)} points")
        for reason, count in missing.items():
            lines.append(f"             not at {count}: {reason}")
        return lines

    @cached_property
    def groups(self) -> list[tuple[ProblemClass, list[Point], int]]:
        """Groups of points that are computed together, with their padded size.

        A group has one class, and does not depend on the number of parts. Groups of a class have
        one size, since a program is compiled for each.
        """
        groups = []
        for problem_class in self.classes:
            points = problem_class.points
            limit = int(LONG / problem_class.cost.work)
            if self.sweep.spec.simulation.rel_mcse is not None:
                limit = 1
            count = -(-len(points) // min(max(limit, 1), MAX_GROUP))
            size = -(-len(points) // count)
            for start in range(0, len(points), size):
                groups.append((problem_class, points[start : start + size], size))
        return groups

    def compute(self, index: int = 1, progress: bool = False) -> xr.Dataset:
        """Terms of the i-th part by both methods, saved as a file if there are several parts.

        Groups that an earlier run finished, with any number of parts, are reused. A class stays
        together, so that a part compiles few programs.

        Raises:
            InputError: a problem cannot be simulated; the line names the point.
        """
        work = np.array([len(points) * alike.cost.work for alike, points, _ in self.groups])
        middle = (np.cumsum(work) - work / 2) / work.sum()
        rows = []
        for place in np.flatnonzero((middle * self.shards).astype(int) + 1 == index):
            problem_class, points, size = self.groups[place]
            compute = partial(self._run_group, problem_class, points, size, progress)
            path = self.folder / f"group_{points[0].name}-{self.source_digest}.npz"
            rows.append(store.load_or_compute(path, compute))
        columns = xr.concat(rows, POINT, combine_attrs="override") if rows else xr.Dataset()
        print(f"{self.identity}: part {index}/{self.shards}", file=sys.stderr)
        if self.shards > 1:
            write(columns, self.part(index), self._seal(index))
        return columns

    def _seal(self, index: int) -> str:
        return f"part {index} of {self.shards} of {self.identity}, made {self.source_digest}"

    def gather(self, columns: xr.Dataset | None = None) -> xr.Dataset:
        """Labelled result, written to the file; gathered from all parts if no columns are given.

        Raises:
            InputError: a part is missing, damaged, or has other settings or another sweep; or the
                parts do not contain every point exactly once.
        """
        if columns is None:
            parts = [read(self.part(i), self._seal(i)) for i in range(1, self.shards + 1)]
            filled = [part for part in parts if part.sizes]
            columns = xr.concat(filled, POINT, combine_attrs="override")
        places = np.sort(columns[POINT].values)
        if not np.array_equal(places, np.arange(len(self.sweep.points))):
            found = f"{len(places)} rows of {len(np.unique(places))} points"
            allowed = f"each of {len(self.sweep.points)} points once: compute the parts again"
            raise InputError(str(self.folder), found, allowed)
        data = self._labelled(columns.sortby(POINT))
        data = data.assign_attrs(origin(self.sweep.spec, columns), made=self.source_digest)
        write(data, self.output, f"{self.output.name} of {self.identity}")
        shutil.rmtree(self.folder, ignore_errors=True)
        return data

    def is_done(self) -> bool:
        """True if the file is complete and belongs to this sweep."""
        try:
            data = read(self.output, f"{self.output.name} of {self.identity}")
        except InputError:
            return False
        return data.attrs.get("made") == self.source_digest

    def _run_group(
        self,
        problem_class: ProblemClass,
        points: Sequence[Point],
        size: int,
        progress: bool,
        checkpoint: Path,
    ) -> xr.Dataset:
        """Terms by both methods at points of one class, one row per point."""
        spec = self.sweep.spec
        problems = []
        for point in points:
            with point_errors(point.name, point.coordinates):
                problems.append(point.spec.build())
        predictions = [xr.Dataset()] * len(problems)
        if spec.theory.order != "none" and not problem_class.uncovered:
            predictions = in_threads(partial(_prediction, theory=spec.theory), problems)
        options = {**spec.simulation.estimator, **spec.simulation.sampling, "keep_queries": False}
        options |= {"checkpoint": checkpoint if size == 1 else None, "progress": progress}
        filled = problems + [problems[-1]] * (size - len(problems))
        first = points[0]
        with point_errors(first.name, first.coordinates) if size == 1 else nullcontext():
            data = estimate_many(filled, spec.simulation.seed, **options)
        data = data.isel({PROBLEM: slice(len(problems))})
        columns = columns_of(data, predictions, spec.theory.order)
        columns["rounding"] = data["rounding"].values
        for name in NOTES:
            columns[name] = []
            for note, prediction in zip(data[name].values, predictions, strict=True):
                columns[name].append("; ".join(filter(None, [note, *phrases(prediction, name)])))
        rows = {name: (POINT, values) for name, values in columns.items()}
        places = [int(point.name) for point in points]
        return xr.Dataset(rows, {POINT: places}, {"precision": data.attrs["precision"]})

    def _labelled(self, columns: xr.Dataset) -> xr.Dataset:
        """The rows of all points under their coordinates."""
        axes = self.sweep.axes
        is_grid = self.sweep.is_grid
        coordinates = {}
        for path, name in short_names(list(axes), VARIABLES).items():
            coordinates[name] = (name if is_grid else POINT, column(axes[path]), {"path": path})
        if is_grid:
            shape = [len(values) for values in axes.values()]
            columns = columns.drop_vars(POINT).map(
                lambda v: xr.DataArray(v.values.reshape(shape), dims=[*coordinates])
            )
        return described(columns.assign_coords(coordinates), MEANS)


def origin(spec: SweepSpec, columns: xr.Dataset) -> dict[str, str]:
    """Provenance of a sweep, as attributes of its file."""
    settings = spec.simulation.model_dump()
    facts = {
        "experiment": "none: a problem of one's own",
        "fidelity": "none",
        "method": "sweep: theory and simulation",
        "versions": provenance.versions(),
        **provenance.machine(),
        "fingerprint": digest(code.code("sweep", None), settings),
        "seed": spec.simulation.seed,
        "precision": columns.attrs["precision"],
        "replicates_total": int(columns["replicates"].sum()),
    }
    return {
        **attributes(facts),
        "title": "Bias, variance and covariance of an ensemble of Nadaraya-Watson heads",
        "theory": spec.theory.order,
        "specification": json.dumps(spec.model_dump(mode="json")),
        "provenance": json.dumps(facts),
    }


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
