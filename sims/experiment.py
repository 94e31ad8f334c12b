"""The experiment file: its schema, its grid, and the problems it stands for.

One source for everything: the pydantic models below give the defaults, the validation and the
JSON schema (``sims schema``). The problem itself is in :mod:`sims.specification`, imported only
where points are made: judging and plotting need the file but not JAX.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from sims.errors import InputError
from sims.formulas import sections
from sims.validation import Strict, parse, read_yaml

if TYPE_CHECKING:
    from sims.specification import ProblemSpec

FIDELITIES = ("smoke", "standard", "paper")


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
    decide: Literal["no", "adaptive", "equal"] = Field(
        default="no",
        description="go on, up to max_batches, until every claim is decided: adaptive gives "
        "batches to the points that open claims need, equal to all points alike",
    )
    negligible: float = Field(
        default=1e-3,
        ge=0,
        description="share of the MSE below which a term does not hold up stopping",
    )
    precision: Literal["float32", "float64"] = "float32"
    control_variate: bool = Field(
        default=False,
        description="take most of the spread out of the signal covariance, unbiased and without "
        "theory; estimates need no longer be positive semidefinite (n >= 2)",
    )
    raw_labels: bool = Field(default=True, description="also estimate from drawn labels")
    keep_queries: bool = Field(
        default=False, description="keep estimates at every query, not only their average"
    )


class TheorySpec(Strict):
    """Which theory to compute."""

    order: Literal["first", "exact"] = "first"
    rtol: float | None = Field(
        default=None,
        gt=0,
        description="accuracy asked of exact theory; 1e-4, or 1e-3 if the design is not Gaussian",
    )


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
        from sims.specification import ProblemSpec

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
    spec: "ProblemSpec"

    @property
    def digest(self) -> str:
        """Hash of the whole problem: two points with the same problem share it."""
        text = json.dumps(self.spec.model_dump(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_experiment(folder: str | Path) -> ExperimentSpec:
    """The experiment in a folder.

    Raises:
        InputError: the file does not fit the schema, makes one claim twice, or names a section
            that docs/theory.md does not have.
    """
    path = Path(folder) / "experiment.yaml"
    found = parse(ExperimentSpec, read_yaml(path), str(path))
    anchors, seen = [f"#{anchor}" for anchor in sections()], set()
    for claim in found.claims:
        if (claim.id, claim.regime) in seen:
            allowed = "each id and regime once"
            raise InputError(f"{path}: claims", f"{claim.id}, {claim.regime}", allowed)
        seen.add((claim.id, claim.regime))
        if anchors and claim.formula.startswith("#") and claim.formula not in anchors:
            where = f"{path}: claims, {claim.id}, formula"
            raise InputError(where, claim.formula, ", ".join(anchors))
    return found


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
