"""A sweep of one's own: both methods at every point, in one labelled file."""

import hashlib
import json
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims import provenance, store
from sims.errors import InputError
from sims.identity import digest
from sims.runtime import host_devices, in_threads
from sims.simulation.many import estimate_many
from sims.study import code
from sims.study.classes import ProblemClass, classify
from sims.study.describing import KEYS, VARIABLES, Words, attributes, described
from sims.study.grid import Point, point_errors
from sims.study.planning import RATE
from sims.study.planning import described as plan_lines
from sims.study.results import read, write
from sims.study.roads import estimate_terms, predict_terms
from sims.study.specification import Problem
from sims.study.stacking import POINT, column, short_names
from sims.study.sweepfile import Sweep, SweepSpec
from sims.terms import BATCH, PROBLEM, SCALARS, phrases

MEANS = {
    "n_eff": Words("effective number of keys of a head, mean", KEYS),
    "n_eff_least": Words("effective number of keys of a head at a query, least", KEYS),
    "n_third": Words("third-moment keys of a head at a query, least", KEYS),
}
"""What is of single queries and heads elsewhere, and of all of them here."""
MAX_GROUP = 64
"""Points of a group, which is computed by one call of a program and kept when it is done."""
LONG = 20.0
"""Seconds that a group of several points takes at most."""


@dataclass(frozen=True)
class Run:
    """A sweep, and the file that it is written to; what is unfinished lies in a folder beside it.

    Attributes:
        sweep: the problems.
        output: the file.
        shards: parts that are computed apart, each of whole groups of points.
    """

    sweep: Sweep
    output: Path
    shards: int = 1

    @property
    def identity(self) -> str:
        """The name with which the sweep's files are sealed."""
        return f"sweep {self.output.stem}"

    @property
    def folder(self) -> Path:
        """Folder of what is finished until it is gathered.

        Files are named by the digest of code, settings and points: of one digest the place of a
        point says which problem it is, whatever the number of parts.
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

    @cached_property
    def source_digest(self) -> str:
        """Digest of the code, the settings and the problems that make its numbers."""
        problems = hashlib.sha256()
        for point in self.sweep.points:
            problems.update(point.spec.model_dump_json().encode())
        spec = self.sweep.spec
        settings = spec.simulation.model_dump(), spec.theory.model_dump()
        return digest(code.code("sweep", None), *settings, problems.hexdigest())

    def plan(self) -> list[str]:
        """Lines for people: sizes and cost, and what theory does not cover."""
        spec, axes, counts = self.sweep.spec, self.sweep.axes, [len(c.points) for c in self.classes]
        lines = plan_lines([c.cost for c in self.classes], spec.simulation, counts)
        if axes:
            lines[0] += f" ({' x '.join(f'{len(v)} of {p}' for p, v in axes.items())})"
        missing = Counter[str]()
        for problem_class, count in zip(self.classes, counts, strict=True):
            missing[problem_class.uncovered] += count
        covered = missing.pop("", 0) * (spec.theory.order != "none")
        lines.append(f"theory       {spec.theory.order}: {covered} of {sum(counts)} points")
        for reason, count in missing.items():
            lines.append(f"             not at {count}: {reason}")
        return lines

    def groups(self, index: int) -> list[tuple[ProblemClass, list[Point], int]]:
        """Points of the i-th part that are computed together, with the size they are filled up to.

        They are of one class. Groups of a class have one size, since a program is compiled for
        each; and they stay together, so that a part compiles few programs.
        """
        groups = []
        for problem_class in self.classes:
            seconds = problem_class.cost.work / RATE / host_devices()
            limit = min(MAX_GROUP, int(LONG / seconds))
            if self.sweep.spec.simulation.rel_mcse is not None:
                limit = 1
            count = max(
                -(-len(problem_class.points) // max(limit, 1)),
                min(self.shards, len(problem_class.points)),
            )
            size = -(-len(problem_class.points) // count)
            groups += [
                (problem_class, problem_class.points[i : i + size], size)
                for i in range(0, len(problem_class.points), size)
            ]
        work = np.array(
            [len(points) * problem_class.cost.work for problem_class, points, _ in groups]
        )
        middle = (np.cumsum(work) - work / 2) / work.sum()
        part = (middle * self.shards).astype(int) + 1
        return [group for group, number in zip(groups, part, strict=True) if number == index]

    def compute(self, index: int = 1, progress: bool = False) -> xr.Dataset:
        """The i-th part, kept as a file if there are others: both methods at its points.

        Points that an earlier run finished, in whatever parts, are taken from what it kept.

        Raises:
            InputError: a problem cannot be simulated; the line names the point.
        """
        kept = self._kept_rows()
        finished = {int(place) for data in kept for place in data[POINT].values}
        groups = self.groups(index)
        places = [int(point.name) for _, points, _ in groups for point in points]
        rows = [data.isel({POINT: np.isin(data[POINT], places)}) for data in kept]
        for problem_class, points, size in groups:
            if missing := [point for point in points if int(point.name) not in finished]:
                group = self._run_group(problem_class, missing, size, progress)
                store.save(group, self._group_file(missing))
                rows.append(group)
        columns = xr.concat(rows, POINT, combine_attrs="override") if rows else xr.Dataset()
        print(f"{self.identity}: part {index}/{self.shards}", file=sys.stderr)
        if self.shards > 1:
            write(columns, self.part(index), self._seal(index))
        return columns

    def _group_file(self, points: Sequence[Point]) -> Path:
        places = digest([point.name for point in points])
        return self.folder / f"group_{places}-{self.source_digest}.npz"

    def _kept_rows(self) -> list[xr.Dataset]:
        """Rows of the points that are finished, each once."""
        files = sorted(self.folder.glob(f"group_*-{self.source_digest}.npz"))
        kept = [data for file in files if (data := store.load(file)) is not None]
        if not kept:
            return []
        together = xr.concat(kept, POINT, combine_attrs="override")
        return [together.drop_duplicates(POINT)]

    def _seal(self, index: int) -> str:
        return f"part {index} of {self.shards} of {self.identity}, made {self.source_digest}"

    def gather(self, columns: xr.Dataset | None = None) -> xr.Dataset:
        """The labelled result, written into the file; of all parts where no columns are given.

        Raises:
            InputError: a part is missing, damaged, or of another sweep or other settings; or the
                parts do not hold every point once.
        """
        if columns is None:
            numbers = range(1, self.shards + 1)
            read_parts = [read(self.part(i), self._seal(i)) for i in numbers]
            columns = xr.concat([p for p in read_parts if p.sizes], POINT, combine_attrs="override")
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
        """True if the file is complete and has the numbers of this sweep."""
        try:
            data = read(self.output, f"{self.output.name} of {self.identity}")
        except InputError:
            return False
        return data.attrs.get("made") == self.source_digest

    def _run_group(
        self, problem_class: ProblemClass, points: Sequence[Point], size: int, progress: bool
    ) -> xr.Dataset:
        """Terms by both roads at points of one class, one row per point."""
        spec, problems = self.sweep.spec, []
        for point in points:
            with point_errors(point.name, point.coordinates):
                problems.append(point.spec.build())
        covered = spec.theory.order != "none" and not problem_class.uncovered

        def theory(problem: Problem) -> xr.Dataset | None:
            try:
                with warnings.catch_warnings():
                    # Of accuracy that was missed; the bound on the error says the same.
                    warnings.filterwarnings("ignore", "exact theory: ", UserWarning)
                    return predict_terms(problem, spec.theory).isel(order=0) if covered else None
            except InputError as error:  # seen only when it computes, such as too few attended keys
                reason = f"no theory: {error.field} {error.value}; covered: {error.allowed}"
                return xr.Dataset(attrs={"cautions": reason})

        predictions = in_threads(theory, problems)
        settings = spec.simulation.model_copy(update={"keep_queries": False})
        if size == 1:
            with point_errors(points[0].name, points[0].coordinates):
                checkpoint = self.folder / f"batches_{points[0].name}-{self.source_digest}.npz"
                terms = estimate_terms(problems[0], settings, None, progress, checkpoint)
            checkpoint.unlink(missing_ok=True)
            messages = {k: [phrases(terms, k)] for k in ("faults", "cautions")}
            data, rounding = terms.expand_dims(PROBLEM), [terms.attrs["rounding"]]
        else:
            filled = problems + [problems[-1]] * (size - len(problems))
            names = ("precision", "control_variate", "raw_labels", "keep_queries")
            counts = ("batches", "replicates_per_batch")
            options = settings.model_dump(include={*names, *counts})
            data = estimate_many(filled, settings.seed, **options, progress=progress)
            data = data.isel({PROBLEM: slice(len(problems))})
            messages = {k: [*map(str.splitlines, data[k].values)] for k in ("faults", "cautions")}
            rounding = data["rounding"].values.tolist()
        columns = columns_of(data, predictions, spec.theory.order)
        columns |= {"rounding": rounding}
        for name, lines in messages.items():
            theory_messages = [[] if p is None else phrases(p, name) for p in predictions]
            columns[name] = [
                "; ".join([*a, *b]) for a, b in zip(lines, theory_messages, strict=True)
            ]
        rows = {name: (POINT, column(list(values))) for name, values in columns.items()}
        places = [int(point.name) for point in points]
        return xr.Dataset(rows, {POINT: places}, {"precision": data.attrs["precision"]})

    def _labelled(self, columns: xr.Dataset) -> xr.Dataset:
        """The rows of all points under their coordinates."""
        points, axes = self.sweep.points, self.sweep.axes
        names = short_names(list(points[0].coordinates), {*VARIABLES})
        data = columns
        if axes is None:
            for path, name in names.items():
                values = column([point.coordinates[path] for point in points])
                data = data.assign_coords({name: (POINT, values)})
        else:
            coordinates = {names[path]: column(values) for path, values in axes.items()}
            shape = tuple(map(len, coordinates.values()))
            data = data.drop_vars(POINT)
            data = data.map(
                lambda v: xr.DataArray(v.values.reshape(shape), coordinates, [*coordinates])
            )
        for path, name in names.items():
            data[name].attrs["path"] = path
        return described(data, MEANS)


def origin(spec: SweepSpec, columns: xr.Dataset) -> dict[str, str]:
    """Provenance of a sweep, as attributes of its file."""
    settings = spec.simulation.model_dump()
    facts = {
        "experiment": "none: a problem of one's own",
        "fidelity": "none",
        "road": "sweep: both roads",
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


def columns_of(
    estimate: xr.Dataset, predictions: Sequence[xr.Dataset | None], order: str
) -> dict[str, Any]:
    """Scalars of problems: every term by both roads, NaN where a road has nothing, and its keys.

    ``<term>`` and ``<term>_mcse`` are the simulation's mean and its Monte Carlo standard error,
    ``<term>_theory`` the prediction and ``<term>_theory_error`` the bound on exact theory's error.

    Args:
        estimate: with the dimension ``problem``.
        predictions: of each problem; None where theory has nothing.
        order: of theory.
    """
    count = estimate.sizes[PROBLEM]
    theory = [xr.Dataset() if prediction is None else prediction for prediction in predictions]
    out: dict[str, Any] = {}
    for term in SCALARS:
        out[term] = estimate[term].mean(BATCH).values.tolist()
        out[f"{term}_mcse"] = estimate[f"{term}_mcse"].values.tolist()
        out[f"{term}_theory"] = [float(t.variables.get(term, np.nan)) for t in theory]
        if order in ("exact", "auto"):
            out[f"{term}_theory_error"] = [
                float(t.variables.get(f"{term}_error", np.nan)) for t in theory
            ]
    keys = [t.variables["n_eff"].values if "n_eff" in t else np.nan for t in theory]
    out["n_eff"], out["n_eff_least"] = ([float(f(k)) for k in keys] for f in (np.mean, np.min))
    if order != "exact":
        third = (t.variables["n_third"].values if "n_third" in t else np.nan for t in theory)
        out["n_third"] = [float(np.min(k)) for k in third]
    rates = estimate["mean_empty_rate"]
    out["empty_rate"] = rates.mean([d for d in rates.dims if d != PROBLEM]).values.tolist()
    for name in ("batches", "replicates"):
        out[name] = [int(estimate.attrs[name])] * count
    return out
