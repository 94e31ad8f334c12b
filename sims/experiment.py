"""The experiment file: its schema, its grid, and the problems it stands for.

One source for everything: the pydantic models below give the defaults, the validation and the
JSON schema (``sims schema``), and the choices for designs, targets, frames and queries are read
off the registries of :mod:`sims.problem`, so a new entry there is at once allowed here.
"""

import hashlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
from pydantic import BaseModel, Field, create_model

from sims.errors import InputError
from sims.problem import (
    DESIGNS,
    FRAMES,
    KERNELS,
    QUERIES,
    TARGETS,
    Heads,
    Task,
    TrigonometricSeries,
    redundant_views,
)
from sims.validation import Strict, parse, read_yaml

FIDELITIES = ("smoke", "standard", "paper")


def _union(registry: Mapping[str, Any], label: str, given: tuple[str, ...]) -> Any:
    """A union of models told apart by ``kind``: one for each entry, fields from its signature."""
    members = []
    for kind, factory in registry.items():
        fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
        for name, parameter in inspect.signature(factory).parameters.items():
            if name in given:
                continue
            required = parameter.default is inspect.Parameter.empty
            annotation = (
                Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation
            )
            fields[name] = (annotation, ... if required else parameter.default)
        members.append(create_model(f"{label}_{kind}", __base__=Strict, **fields))
    return Annotated[reduce(or_, members), Field(discriminator="kind")]


def _arguments(choice: BaseModel) -> dict[str, Any]:
    return {name: getattr(choice, name) for name in type(choice).model_fields if name != "kind"}


def _called(factory: Callable[..., Any], choice: BaseModel, **given: Any) -> Any:
    """The factory's result; of ``given`` it gets what it has parameters for."""
    taken = inspect.signature(factory).parameters
    fitting = {name: value for name, value in given.items() if name in taken}
    return factory(**fitting, **_arguments(choice))


def _redundant_views(noise: float, correlation: float = 0.0) -> None:
    """Stands for :func:`sims.problem.redundant_views`, which makes design and frames together."""


if TYPE_CHECKING:  # the unions exist only at run time
    DesignChoice = Any
    TargetChoice = Any
    FramesChoice = Any
    QueriesChoice = Any
else:
    DesignChoice = _union(
        {**DESIGNS, "redundant_views": _redundant_views}, "Design", ("dimension",)
    )
    TargetChoice = _union(TARGETS, "Target", ("dimension",))
    FramesChoice = _union(FRAMES, "Frames", ("dimension", "count", "width"))
    QueriesChoice = _union(QUERIES, "Queries", ("dimension",))


class HeadsSpec(Strict):
    """The heads: H frames of width d_k, a kernel and a bandwidth (one, or one a head)."""

    count: int = Field(ge=1, description="H, number of heads")
    width: int = Field(ge=1, description="d_k, dimension of a head")
    frames: FramesChoice | None = Field(
        default=None,
        description="subspaces; left out only with design.kind redundant_views",
    )
    kernel: Literal[tuple(KERNELS)] = "gaussian"  # type: ignore[valid-type]
    bandwidth: float | list[float] = Field(description="b > 0; softmax: temperature b²")


class Problem(NamedTuple):
    """What both roads take."""

    task: Task
    heads: Heads
    n: int
    queries: Any


class ProblemSpec(Strict):
    """A problem as data.

    With ``design.kind: redundant_views``, ``dimension`` is the latent dimension r; the ambient
    dimension is then r + H·d_k, the target is a function of the latent coordinates, and queries
    have ξ = 0.
    """

    dimension: int = Field(ge=1, description="d, dimension of the keys")
    design: DesignChoice = Field(description="law of the keys")
    target: TargetChoice = Field(description="regression function m")
    noise_sd: float = Field(ge=0, description="σ")
    heads: HeadsSpec
    n: int = Field(ge=1, description="number of keys")
    queries: QueriesChoice

    def build(self) -> Problem:
        """The arrays.

        Raises:
            InputError: the parts do not fit together, or a value is out of its range.
        """
        try:
            return self._build()
        except TypeError as error:
            # A list where a number is expected and the like, seen only when arrays are made.
            raise InputError(
                "problem", str(error), "numbers and lists as in `sims schema`"
            ) from None

    def _build(self) -> Problem:
        heads, design, target = self.heads, self.design, self.target
        queries = QUERIES[self.queries.kind](self.dimension, **_arguments(self.queries))
        series = TARGETS[target.kind](self.dimension, **_arguments(target))
        if design.kind == "redundant_views":
            if heads.frames is not None:
                raise InputError(
                    "heads.frames", heads.frames.kind, "nothing (views set the frames)"
                )
            law, frames = redundant_views(
                self.dimension, heads.count, heads.width, **_arguments(design)
            )
            extra = law.dimension - self.dimension
            series = TrigonometricSeries(
                series.amplitude,
                jnp.pad(series.frequency, ((0, 0), (0, extra))),
                series.phase,
            )
            queries = jnp.pad(queries, ((0, 0), (0, extra)))
        else:
            if heads.frames is None:
                raise InputError("heads.frames", None, ", ".join(FRAMES))
            law = _called(DESIGNS[design.kind], design, dimension=self.dimension)
            if law.dimension != self.dimension:
                raise InputError("design.dimension", law.dimension, f"{self.dimension}")
            frames = FRAMES[heads.frames.kind](
                self.dimension, heads.count, heads.width, **_arguments(heads.frames)
            )
        return Problem(
            Task(law, series, self.noise_sd),
            Heads(frames, heads.kernel, jnp.asarray(heads.bandwidth)),
            self.n,
            queries,
        )


class SimulationSpec(Strict):
    """How much to simulate."""

    seed: int = Field(default=0, ge=0)
    replicates_per_batch: int = Field(default=32, ge=2)
    batches: int = Field(default=16, ge=2, description="batches to run at least")
    max_batches: int | None = Field(default=None, ge=2, description="limit; default: batches")
    rel_mcse: float | None = Field(
        default=None,
        gt=0,
        description="stop when every term's MCSE is below this share of it",
    )
    negligible: float = Field(
        default=1e-3,
        ge=0,
        description="share of the MSE below which a term does not hold up stopping",
    )
    precision: Literal["float32", "float64"] = "float32"
    remainders: bool = Field(
        default=False,
        description="also estimate what first-order theory leaves out, by control variates "
        "(use float64)",
    )
    raw_labels: bool = Field(default=True, description="also estimate from drawn labels")
    keep_queries: bool = Field(
        default=False, description="keep estimates at every query, not only their average"
    )


class TheorySpec(Strict):
    """Which theory to compute."""

    order: Literal["first", "exact"] = "first"
    rtol: float = Field(default=1e-4, gt=0, description="requested accuracy of the exact road")


class DecomposeSpec(Strict):
    """The file that ``sims decompose`` reads."""

    problem: ProblemSpec
    simulation: SimulationSpec = SimulationSpec()
    theory: TheorySpec = TheorySpec()


class ClaimSpec(Strict):
    """A claim and its margin, fixed before the run."""

    id: str = Field(description="claim id, as `sims claims` lists them")
    regime: str = Field(default="all", description="where it is tested")
    statement: str
    margin: float = Field(ge=0)
    level: float = Field(default=0.95, gt=0, lt=1, description="confidence of the interval")
    formula: str = Field(description="the section of docs/theory.md behind it")


class FidelitySpec(Strict):
    """What a fidelity changes: simulation settings, problem values, the grid."""

    simulation: dict[str, Any] = Field(default_factory=dict)
    problem: dict[str, Any] = Field(default_factory=dict, description="dotted path: value")
    grid: list[dict[str, Any]] | None = None


class ExperimentSpec(Strict):
    """One experiment: one question.

    The five texts follow the ADEMP plan for simulation studies (Morris, White & Crowther 2019,
    doi:10.1002/sim.8086). ``grid`` is a list of blocks; a block maps dotted paths of the problem
    to a list (swept; the block is the product of its lists) or to a value (set).
    """

    title: str
    aim: str
    data_generating_process: str
    estimands: str
    methods: str
    performance_measures: str
    problem: dict[str, Any] | None = Field(
        default=None,
        description="base problem; null when the experiment's own simulate.py makes it",
    )
    grid: list[dict[str, Any]] = Field(default=[{}])
    simulation: SimulationSpec = SimulationSpec()
    theory: TheorySpec = TheorySpec()
    fidelities: dict[Literal["smoke", "standard", "paper"], FidelitySpec]
    claims: list[ClaimSpec] = Field(min_length=1)
    settings: dict[str, Any] = Field(
        default_factory=dict, description="free values for the experiment's own code"
    )

    def at(self, fidelity: str) -> FidelitySpec:
        """The settings of a fidelity."""
        if fidelity not in self.fidelities:
            raise InputError("fidelity", fidelity, ", ".join(self.fidelities))
        return self.fidelities[fidelity]  # type: ignore[index]

    def simulation_at(self, fidelity: str) -> SimulationSpec:
        """Simulation settings with the fidelity's changes."""
        changed = self.simulation.model_dump() | self.at(fidelity).simulation
        return parse(SimulationSpec, changed, f"fidelities.{fidelity}.simulation")

    def points(self, fidelity: str) -> list["Point"]:
        """Every point of the grid at a fidelity, validated; empty without a base problem."""
        if self.problem is None:
            return []
        settings = self.at(fidelity)
        base = _with(self.problem, settings.problem)
        blocks = self.grid if settings.grid is None else settings.grid
        points = []
        for index, coordinates in enumerate(_product(blocks)):
            spec = parse(ProblemSpec, _with(base, coordinates), f"grid point {index}")
            points.append(Point(f"{index:04d}", coordinates, spec))
        if not points:
            raise InputError("grid", blocks, "at least one block ({} is the base problem alone)")
        return points


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Attributes:
        name: place in the grid, four digits.
        coordinates: dotted path to the value that this point has there.
        spec: its whole problem.
    """

    name: str
    coordinates: dict[str, Any]
    spec: ProblemSpec

    @property
    def digest(self) -> str:
        """Hash of the whole problem: two points with the same problem share it."""
        text = json.dumps(self.spec.model_dump(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_experiment(folder: str | Path) -> ExperimentSpec:
    """The experiment in a folder."""
    path = Path(folder) / "experiment.yaml"
    return parse(ExperimentSpec, read_yaml(path), str(path))


def _with(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a nested mapping with dotted paths set; a path may add a key, not a level."""
    copy = deepcopy(dict(base))
    for path, value in changes.items():
        *parents, last = path.split(".")
        node = copy
        for parent in parents:
            if not isinstance(node.get(parent), dict):
                raise InputError(path, parent, f"one of {', '.join(map(str, node))}")
            node = node[parent]
        node[last] = value
    return copy


def _product(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        axes = [
            [(path, v) for v in value] if isinstance(value, list) else [(path, value)]
            for path, value in block.items()
        ]
        for path, value in block.items():
            if value == []:
                raise InputError(f"grid: {path}", value, "at least one value")
        yield from (dict(choice) for choice in itertools.product(*axes))
