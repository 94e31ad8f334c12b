"""The files of one problem and of a sweep of it: their schema, and the points they stand for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from sims.documents import mapping, read_yaml
from sims.errors import InputError
from sims.study.experiment import Point
from sims.study.grid import changed, combinations, placed
from sims.study.located import located
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec
from sims.study.stacking import Scalar
from sims.validation import Strict, parse

MOST_BATCHES = 4096
"""Limit under ``rel_mcse`` where the file sets none."""
MOST_POINTS = 100_000


class DecomposeSpec(Strict):
    """The file of one problem: what ``sims decompose`` reads, and a sweep of one point."""

    problem: ProblemSpec
    simulation: SimulationSpec = Field(
        default=SimulationSpec(),
        description=f"max_batches is {MOST_BATCHES} under rel_mcse where it is left out",
    )
    theory: TheorySpec = TheorySpec()


class Span(Strict):
    """Numbers from ``low`` to ``high``, at equal steps of themselves or of their logarithm."""

    low: float
    high: float
    points: int = Field(default=2, ge=2, le=MOST_POINTS, description="how many, both ends included")
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _is_a_range(self) -> "Span":
        """The ends are in order, and have logarithms where those are needed."""
        if not self.low < self.high:
            raise InputError("low and high", [self.low, self.high], "low < high")
        if self.scale == "log" and self.low <= 0:
            raise InputError("low", self.low, "> 0 on a logarithmic scale")
        return self

    def at(self, shares: np.ndarray, whole: bool) -> list[float]:
        """The numbers at shares (0 to 1) of the way from low to high, to twelve digits.

        Args:
            shares: of the way.
            whole: whether they are rounded to whole numbers.
        """
        low, high = (math.log(e) if self.scale == "log" else e for e in (self.low, self.high))
        values = [low + share * (high - low) for share in shares.tolist()]
        if self.scale == "log":
            values = [math.exp(value) for value in values]
        return [round(value) if whole else float(f"{value:.12g}") for value in values]


class RandomSpec(Strict):
    """Points drawn independently: numbers from spans, others from lists, all equally likely."""

    points: int = Field(ge=1, le=MOST_POINTS)
    seed: int = Field(default=0, ge=0, lt=2**63)
    fields: dict[str, Any] = Field(
        min_length=1, description="dotted path: a list of values, or {low, high, scale}"
    )


class DesignSpec(Strict):
    """Which points a sweep has: exactly one of the three."""

    grid: dict[str, Any] | None = Field(
        default=None,
        description="every combination; dotted path of the problem: a list of values, or {low, "
        "high, points, scale}; what is no scalar as {label: …, value: […]}",
    )
    random: RandomSpec | None = None
    list: Sequence[dict[str, Any]] | None = Field(
        default=None, description="the points one by one, each dotted path: value", min_length=1
    )

    @model_validator(mode="after")
    def _is_one(self) -> "DesignSpec":
        """It is a grid, or a list, or drawn."""
        given = [k for k in ("grid", "random", "list") if getattr(self, k) is not None]
        if len(given) != 1:
            raise InputError("sweep", given, "exactly one of grid, list, random")
        return self


class SweepSpec(DecomposeSpec):
    """The file that ``sims sweep`` reads: a problem, and at which values of its fields."""

    sweep: DesignSpec = Field(
        default=DesignSpec(grid={}), description="left out: the problem alone"
    )


@dataclass(frozen=True)
class Sweep:
    """The problems of a sweep.

    Attributes:
        spec: the file.
        points: its problems.
        axes: of a grid, dotted path to the coordinates along it: points are in the order of their
            combinations, the last path's changing fastest. None where points are no grid.
    """

    spec: SweepSpec
    points: list[Point]
    axes: dict[str, list[Scalar]] | None


def with_options(
    data: dict[str, Any], rel_mcse: float | None = None, seed: int | None = None
) -> dict[str, Any]:
    """The file with the command line's options in it, so that both are validated alike."""
    given = {"rel_mcse": rel_mcse, "seed": seed}
    simulation = data.get("simulation", {})
    if not isinstance(simulation, dict):
        raise InputError("simulation", simulation, "a mapping of keys to values")
    simulation = simulation | {key: value for key, value in given.items() if value is not None}
    if simulation.get("rel_mcse") is not None and simulation.get("max_batches") is None:
        least = simulation.get("batches")
        simulation["max_batches"] = max(MOST_BATCHES, least if isinstance(least, int) else 0)
    return {**data, "simulation": simulation}


def with_files(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The file's data with the files found that its problem names; see :mod:`.located`.

    Args:
        data: as read.
        folder: where the file is.

    Raises:
        InputError: one is not there.
    """
    return {k: located(v, folder) if k == "problem" else v for k, v in data.items()}


def check(spec: DecomposeSpec) -> None:
    """Raise InputError where a setting makes no sense without claims."""
    if spec.theory.order == "both":
        raise InputError("theory.order", "both", "first, exact, auto, none (one at a time)")
    if spec.simulation.decide != "no":
        allowed = "no: there are no claims to decide"
        raise InputError("simulation.decide", spec.simulation.decide, allowed)


def read_sweep(
    path: str, sets: Sequence[str] = (), rel_mcse: float | None = None, seed: int | None = None
) -> Sweep:
    """The sweep of a file, with what the command line adds.

    Args:
        path: the file.
        sets: ``heads.bandwidth=0.3:1:5``, ``n=256:4096:5:log``, ``heads.kernel=gaussian,softmax``:
            axes of the grid, in place of the file's own at these paths.
        rel_mcse: in place of the file's.
        seed: in place of the file's.

    Raises:
        InputError: it cannot be read, or a point is no problem; the line names the point.
    """
    data = with_options(read_yaml(path), rel_mcse, seed)
    if sets:
        design = data.get("sweep", {"grid": {}})
        if not isinstance(design, dict) or not isinstance(design.get("grid"), dict):
            raise InputError("--set", sets[0], "an axis of a grid: this file has another design")
        data["sweep"] = {**design, "grid": design["grid"] | dict(map(_axis, sets))}
    folder = Path(path).parent
    spec = parse(SweepSpec, with_files(data, folder), path)
    check(spec)
    base = data["problem"]
    changes = list(_changes(spec.sweep, base, path))
    paths = list(dict.fromkeys(p for change in changes for p in change))
    points = []
    for i, change in enumerate(changes):
        coordinates, problem = placed(changed(base, change), paths, folder)
        where = f"{path}: point {i}{_said(change)}"
        points.append(Point(f"{i:05d}", coordinates, parse(ProblemSpec, problem, where)))
    axes = None
    if spec.sweep.grid is not None:
        axes = {p: list(dict.fromkeys(point.coordinates[p] for point in points)) for p in paths}
        if math.prod(map(len, axes.values())) != len(points):
            allowed = "different values along an axis, each with a label of its own"
            raise InputError(f"{path}: sweep.grid", "a value twice", allowed)
    return Sweep(spec, points, axes)


def _said(change: Mapping[str, Any]) -> str:
    shown = {p: v.get("label") if isinstance(v, Mapping) else v for p, v in change.items()}
    return f" ({', '.join(f'{p}: {v}' for p, v in shown.items())})" if change else ""


def _axis(text: str) -> tuple[str, Any]:
    """The path and the values that an option ``--set`` names."""
    path, equals, values = text.partition("=")
    allowed = "PATH=LOW:HIGH:POINTS, PATH=LOW:HIGH:POINTS:log or PATH=VALUE,VALUE,…"
    if not (path.strip() and equals and values.strip()):
        raise InputError("--set", text, allowed)
    parts = values.split(":")
    if len(parts) not in (3, 4):
        return path.strip(), mapping(f"values: [{values}]", f"--set {path}")["values"]
    names = ("low", "high", "points", "scale")
    lines = "\n".join(f"{name}: {part}" for name, part in zip(names, parts, strict=False))
    return path.strip(), mapping(lines, f"--set {path}")


def _changes(design: DesignSpec, base: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Of every point, its dotted paths to their values."""
    if design.list is not None:
        return [one for block in design.list for one in combinations([block])]
    if design.random is not None:
        return _drawn(design.random, base, where)
    axes = {}
    for path, values in (design.grid or {}).items():
        if isinstance(values, Mapping) and "label" not in values:
            span = parse(Span, values, f"{where}: sweep.grid.{path}")
            numbers = span.at(np.linspace(0.0, 1.0, span.points), _is_whole(base, path))
            values = list(dict.fromkeys(numbers))
        axes[path] = values
    count = math.prod(len(v) if isinstance(v, list) else 1 for v in axes.values())
    if count > MOST_POINTS:
        raise InputError(f"{where}: sweep.grid", f"{count:,} points", f"at most {MOST_POINTS:,}")
    return list(combinations([axes]))


def _drawn(design: RandomSpec, base: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The points of a random design: more of them begin with those of fewer."""
    shares = np.random.default_rng(design.seed).uniform(size=(design.points, len(design.fields)))
    columns = {}
    for place, (path, values) in enumerate(design.fields.items()):
        field = f"{where}: sweep.random.fields.{path}"
        if isinstance(values, list) and values:
            columns[path] = [values[int(share * len(values))] for share in shares[:, place]]
        else:
            span = parse(Span, values, field)
            if "points" in span.model_fields_set:
                raise InputError(f"{field}.points", span.points, "nothing: points are drawn")
            columns[path] = span.at(shares[:, place], _is_whole(base, path))
    rows = zip(*columns.values(), strict=True)
    return [one for row in rows for one in combinations([dict(zip(columns, row, strict=True))])]


def _is_whole(base: Mapping[str, Any], path: str) -> bool:
    """Whether a field of the problem takes whole numbers alone, as its schema says."""
    try:
        parse(ProblemSpec, changed(base, {path: 1.5}), path)
    except InputError as error:
        return "integer" in error.allowed
    return False
