"""Files of one problem and of a sweep: their schema, and their points."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field, model_validator

from sims.base.documents import mapping, read_yaml
from sims.base.errors import InputError
from sims.base.validation import Strict, parse
from sims.study.declaration import PUBLISHED_FIDELITY, Declaration
from sims.study.grid import Point, changed, coordinate, label, point_errors, unlabelled
from sims.study.referenced_files import resolve_files
from sims.study.running import Run
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec

MAX_BATCHES = 4096
"""Default maximum number of batches under ``rel_mcse``."""
MAX_POINTS = 100_000


class DecomposeSpec(Strict):
    """File of one problem, which ``sims decompose`` reads, and a sweep of one point."""

    about: str = ""
    """Description of the problem."""
    problem: ProblemSpec
    simulation: SimulationSpec = Field(
        default=SimulationSpec(),
        description=f"max_batches is {MAX_BATCHES} under rel_mcse where it is left out",
    )
    theory: TheorySpec = TheorySpec()


Spec = TypeVar("Spec", bound=DecomposeSpec)


class Span(Strict):
    """Numbers from ``low`` to ``high``, in equal steps on a linear or logarithmic scale."""

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    points: int = Field(default=2, ge=2, le=MAX_POINTS)
    """Number of values, both ends included."""

    @model_validator(mode="after")
    def _ends_are_ordered(self) -> "Span":
        """The span, after a check that its ends are ordered (positive on a log scale)."""
        if not self.low < self.high:
            raise InputError("low and high", [self.low, self.high], "low < high")
        if self.scale == "log" and self.low <= 0:
            raise InputError("low", self.low, "> 0 on a logarithmic scale")
        return self

    def values(self, integer: bool) -> list[float]:
        """Its numbers, rounded to integers, or to twelve digits."""
        shares = np.linspace(0.0, 1.0, self.points)
        if self.scale == "log":
            values = self.low * (self.high / self.low) ** shares
        else:
            values = self.low + shares * (self.high - self.low)
        return [round(value) if integer else float(f"{value:.12g}") for value in values.tolist()]


class DesignSpec(Strict):
    """The points of a sweep: exactly one of the two fields."""

    grid: dict[str, Any] | None = None
    """Every combination; dotted path of the problem: a list of values, or {low, high, points,
    scale}; a value that is not a scalar as {label: …, value: […]}."""
    list: Sequence[dict[str, Any]] | None = Field(default=None, min_length=1)
    """Points, each a mapping of dotted paths to values."""

    @model_validator(mode="after")
    def _has_one_design(self) -> "DesignSpec":
        """The design, after a check that it is either a grid or a list."""
        designs = [k for k in ("grid", "list") if getattr(self, k) is not None]
        if len(designs) != 1:
            raise InputError("sweep", designs, "exactly one of grid, list")
        return self


class SweepSpec(DecomposeSpec):
    """File that ``sims sweep`` reads: a problem, and the values of its fields."""

    sweep: DesignSpec = DesignSpec(grid={})
    """Default: the problem only."""


def _numbered(path: str) -> tuple[str, int] | None:
    """The experiment and the number of ``NAME#17``; None of what is a file."""
    name, _, index = path.partition("#")
    return (name, int(index)) if index.isdecimal() and not Path(path).exists() else None


def unread_code(path: str) -> list[str]:
    """Lines of a plan for the problem ``NAME#17`` if code builds it, which is not run."""
    numbered = _numbered(path)
    code = numbered and Declaration.read(numbered[0]).code
    if code is None:
        return []
    return [f"{path}: nothing is run or written", f"problem      built by {code}: not read"]


def read_problem(path: str, allow_code: bool | None = False) -> dict[str, Any]:
    """Content of a problem or sweep file; for ``NAME#17``, problem 17 of a published run's law.

    Raises:
        InputError: the file cannot be read, the experiment's problems cannot be files, or consent
            to run its code is missing.
    """
    numbered = _numbered(path)
    if numbered is None:
        return read_yaml(path)
    name, number = numbered
    run = Run.load(name, PUBLISHED_FIDELITY, allow_code=allow_code)
    with run.code_errors():
        problem = run.study.file_of(number)
    if problem is None:
        raise InputError(path, "an experiment without problem files", "such as house#17")
    return problem


def parse_file(
    model: type[Spec],
    data: dict[str, Any],
    path: str,
    simulation: Mapping[str, Any] | None = None,
    consent: bool | None = False,
) -> Spec:
    """Validated file, with the options of the command line.

    Args:
        model: class of the file.
        data: content of the file.
        path: path of the file, to which the problem's files are relative.
        simulation: settings that override the file's.
        consent: whether the Python files that it names may be imported, and its data may be outside
            its folder; None is for a plan, which imports nothing.

    Raises:
        InputError: it does not fit the schema, a setting is meaningless without claims, or consent
            to run code is missing.
    """
    data = {"simulation": {}, **data}
    if isinstance(data["simulation"], dict):
        data["simulation"] = {**data["simulation"], **(simulation or {})}
    if "problem" in data:
        data["problem"] = resolve_files(data["problem"], Path(path).parent, consent=consent)
    spec = parse(model, data, path, context={"allow_code": consent})
    settings = spec.simulation
    if settings.rel_mcse is None or settings.max_batches is not None:
        return spec
    limit = {"max_batches": max(MAX_BATCHES, settings.batches)}
    return spec.model_copy(update={"simulation": settings.model_copy(update=limit)})


def read_points(
    path: str,
    sets: Sequence[str] = (),
    simulation: Mapping[str, Any] | None = None,
    consent: bool | None = False,
) -> tuple[SweepSpec, list[Point]]:
    """A sweep's file and its points, with the options of the command line.

    Args:
        path: the file.
        sets: ``heads.bandwidth=0.3:1:5``, ``n=256:4096:5:log``, ``heads.kernel=gaussian,softmax``:
            axes of the grid, which replace the file's at these paths.
        simulation: settings that override the file's.
        consent: as in :func:`parse_file`.

    Raises:
        InputError: the file cannot be read, or a point is not a problem; the line names the point.
    """
    data = read_problem(path, consent)
    if sets:
        design = data.get("sweep", {"grid": {}})
        if not isinstance(design, dict) or not isinstance(design.get("grid"), dict):
            raise InputError("--set", sets[0], "an axis of a grid: this file has another design")
        axes = dict(map(_axis, sets))
        if len(axes) < len(sets):
            raise InputError("--set", ", ".join(sets), "each path once")
        data["sweep"] = {**design, "grid": design["grid"] | axes}
    spec = parse_file(SweepSpec, data, path, simulation, consent)
    changes = _changes(spec.sweep, data["problem"], path)
    paths = list(dict.fromkeys(itertools.chain(*changes)))
    points = []
    for number, change in enumerate(changes):
        problem = changed(data["problem"], {key: unlabelled(change[key]) for key in change})
        coordinates = {key: label(change.get(key, coordinate(problem, key))) for key in paths}
        name = f"{number:05d}"
        with point_errors(name, coordinates):
            problem = resolve_files(problem, Path(path).parent, consent=consent)
            point_spec = parse(ProblemSpec, problem, "", context={"allow_code": consent})
        points.append(Point(name, coordinates, point_spec))
    places = {tuple(point.coordinates.values()) for point in points}
    if len(places) < len(points):
        allowed = "distinct points; labels tell values apart that are not scalars"
        raise InputError(f"{path}: sweep", "a point twice", allowed)
    return spec, points


def _axis(text: str) -> tuple[str, Any]:
    """Path and values of an option ``--set``."""
    path, equals, values = text.partition("=")
    allowed = "PATH=LOW:HIGH:POINTS, PATH=LOW:HIGH:POINTS:log or PATH=VALUE,VALUE,…"
    if not (path.strip() and equals and values.strip()):
        raise InputError("--set", text, allowed)
    parts = values.split(":")
    if len(parts) not in (3, 4):
        return path.strip(), mapping(f"values: [{values}]", f"--set {path}")["values"]
    pairs = zip(("low", "high", "points", "scale"), parts, strict=False)
    lines = "\n".join(map(": ".join, pairs))
    return path.strip(), mapping(lines, f"--set {path}")


def _changes(design: DesignSpec, base: Mapping[str, Any], location: str) -> list[dict[str, Any]]:
    """Dotted path to value, for every point."""
    if design.list is not None:
        changes = [*design.list]
    else:
        changes = _combine(design.grid or {}, base, f"{location}: sweep.grid")
    for path, value in itertools.chain.from_iterable(change.items() for change in changes):
        if isinstance(value, list) or (isinstance(value, Mapping) and "label" not in value):
            allowed = (
                "a scalar, or a mapping with a `label`, the coordinate: {label: …, value: […]}"
            )
            raise InputError(f"{location}: sweep: {path}", value, allowed)
    for paths in {tuple(change) for change in changes}:
        for path in paths:
            if inner := next((other for other in paths if other.startswith(f"{path}.")), None):
                raise InputError(f"{location}: sweep", [path, inner], "each field set once")
    return changes


def _combine(
    axes: Mapping[str, Any], base: Mapping[str, Any], location: str
) -> list[dict[str, Any]]:
    """Every combination of the values of axes."""
    lists = []
    for path, values in axes.items():
        if isinstance(values, Mapping) and "label" not in values:
            values = _span(values, _is_integer(base, path), f"{location}.{path}")
        lists.append(values if isinstance(values, list) else [values])
    count = math.prod(map(len, lists))
    if not 1 <= count <= MAX_POINTS:
        raise InputError(location, f"{count:,} points", f"at least 1, at most {MAX_POINTS:,}")
    return [dict(zip(axes, choice, strict=True)) for choice in itertools.product(*lists)]


def _span(values: Mapping[str, Any], integer: bool, location: str) -> list[float]:
    """Values of a span, of which no two are equal."""
    span = parse(Span, values, location)
    numbers = span.values(integer)
    if (distinct := len(set(numbers))) < span.points:
        kind = "whole numbers" if integer else "numbers of twelve digits"
        allowed = f"distinct values; of these, {distinct} are distinct {kind}"
        raise InputError(f"{location}: points", span.points, allowed)
    return numbers


def _is_integer(base: Mapping[str, Any], path: str) -> bool:
    """True if a field of the problem takes only integers, by its schema."""
    try:
        parse(ProblemSpec, changed(base, {path: 1.5}), path)
    except InputError as error:
        return "integer" in error.allowed
    return False
