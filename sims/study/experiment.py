"""An experiment at a fidelity: its folder, its file, its grid points and its own modules."""

import hashlib
import importlib
import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sims.documents import read_yaml
from sims.errors import InputError, one_of
from sims.formulas import sections
from sims.kinds import is_tested
from sims.papers import PAPERS, claim_of, paper_of
from sims.places import CARRIED, place
from sims.study.checking import check
from sims.study.code import EXPERIMENTS, check_name
from sims.study.grid import changed, combinations, coordinate, moved, without_labels
from sims.study.located import located
from sims.study.schema import (
    ClaimSpec,
    ExperimentSpec,
    PopulationSpec,
    SimulationSpec,
    TheorySpec,
)
from sims.study.stacking import Scalar
from sims.validation import parse

if TYPE_CHECKING:
    from sims.study.specification import ProblemSpec

POPULATION = "population"
"""The key of a grid block that draws problems in place of one; the rest is of that problem."""
SEED_STRIDE = 1000
"""What one step of a seed offset adds to the seed where heads learn or problems are drawn, and to
every seed of problems that are drawn anew: more than any experiment has batches or seeds side by
side, since what is drawn from the seed plus the batch is not to be shared."""


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Attributes:
        name: place in the grid, four digits.
        coordinates: every dotted path that the grid changes, to this point's value there, or to the
            label (else the kind) of what is no scalar; None where it has nothing.
        spec: its whole problem; of a population, one with the seeds that the file gives.
        population: what is drawn in its place, a problem a batch; None for just this problem.
    """

    name: str
    coordinates: dict[str, Scalar]
    spec: "ProblemSpec"
    population: PopulationSpec | None = None

    @property
    def digest(self) -> str:
        """Hash of the whole problem: two points with the same problem share it."""
        text = json.dumps(self.spec.model_dump(), sort_keys=True)
        if self.population is not None:
            text += json.dumps(self.population.model_dump(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Experiment:
    """An experiment at one fidelity, with its seeds moved by an offset.

    Attributes:
        folder: where its experiment.yaml is.
        spec: that file.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0; the same experiment with other draws.
        decide: another rule of allocation than the file's, or None.
        redrawn: whether the offset moves every seed of the problems and settings too, so that
            targets, frames, queries and rotations are other draws as well.
    """

    folder: Path
    spec: ExperimentSpec
    fidelity: str = "standard"
    seed_offset: int = 0
    decide: str | None = None
    redrawn: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.resolve().name

    @property
    def identity(self) -> str:
        """What its files are of: its name and the fidelity."""
        return f"{self.name} at {self.fidelity}"

    @property
    def claims(self) -> list[ClaimSpec]:
        """Its claims, in the file's order."""
        return self.spec.claims

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Its own settings at the fidelity."""
        return self._reseeded(self.spec.settings_at(self.fidelity))

    @cached_property
    def simulation(self) -> SimulationSpec:
        """Simulation settings at the fidelity, the seed moved by the offset."""
        run = self.spec.simulation_at(self.fidelity)
        seed = run.seed + self.seed_offset * (SEED_STRIDE if self.redraws else 1)
        if seed >= 2**63:
            raise InputError("seed, with its offset", seed, "less than 2**63")
        return run.model_copy(update={"seed": seed, "decide": self.decide or run.decide})

    @property
    def theory(self) -> TheorySpec:
        """Theory settings at the fidelity."""
        return self.spec.theory_at(self.fidelity)

    @property
    def redraws(self) -> bool:
        """Whether the simulation's seed decides what both roads take, a batch each.

        These are heads that learn, or problems drawn from a population.
        """
        return "learning" in self.settings or any(
            POPULATION in problem for _, problem in self.problems
        )

    @cached_property
    def problems(self) -> list[tuple[dict[str, Scalar], dict[str, Any]]]:
        """Coordinates and problem of every point of the grid, as the file has them.

        Files that a problem names are found, with their content. Nothing is validated, so nothing
        of JAX is needed. Empty without a base problem.
        """
        if self.spec.problem is None:
            return []
        at = self.spec.at(self.fidelity)
        base = changed(self.spec.problem, at.problem)
        blocks = self.spec.grid if at.grid is None else at.grid
        paths = list(dict.fromkeys(path for block in blocks for path in block))
        labelled = [self._reseeded(changed(base, values)) for values in combinations(blocks)]
        if not labelled:
            raise InputError("grid", blocks, "at least one block ({} is the base problem alone)")
        return [
            (
                {path: coordinate(problem, path) for path in paths},
                located(without_labels(problem), self.folder),
            )
            for problem in labelled
        ]

    @cached_property
    def points(self) -> list[Point]:
        """Every point of the grid, validated; empty without a base problem."""
        from sims.study.specification import ProblemSpec

        points = []
        for i, (coordinates, problem) in enumerate(self.problems):
            own = {key: value for key, value in problem.items() if key != POPULATION}
            spec, drawn = parse(ProblemSpec, own, f"grid point {i}"), None
            if problem.get(POPULATION) is not None:
                drawn = parse(PopulationSpec, problem[POPULATION], f"grid point {i}: {POPULATION}")
            points.append(Point(f"{i:04d}", coordinates, spec, drawn))
        return points

    def _reseeded(self, mapping: dict[str, Any]) -> dict[str, Any]:
        """A problem, or the settings, with the offset in their seeds if they are redrawn."""
        return moved(mapping, self.seed_offset * SEED_STRIDE) if self.redrawn else mapping

    @property
    def problems_by_name(self) -> dict[str, dict[str, Any]]:
        """A point's name to its whole problem, as a road's file has it."""
        return {point.name: point.spec.model_dump(mode="json") for point in self.points}

    def module(self, name: str) -> ModuleType | None:
        """A module of its folder (simulate, predict, effects, figure), if there is one."""
        return load_module(self.folder, name)


def experiments() -> list[str]:
    """Names of all experiments that are here (:mod:`sims.places`)."""
    return sorted(path.parent.name for path in place(EXPERIMENTS).glob("*/experiment.yaml"))


def folder_of(experiment: str | Path) -> Path:
    """The folder of an experiment, given as a name or as a path.

    A name that is not here may be that of one that came with the package.

    Raises:
        InputError: there is no such experiment.
    """
    with suppress(OSError, ValueError):  # a name too long, or with a NUL
        places = (place(EXPERIMENTS), Path(), CARRIED / EXPERIMENTS)
        for folder in (home / experiment for home in places):
            if (folder / "experiment.yaml").is_file():
                return folder
    known = one_of(experiments(), experiment) or "a folder with an experiment.yaml"
    raise InputError("experiment", str(experiment), known)


def load_experiment(
    experiment: str | Path,
    fidelity: str = "standard",
    seed_offset: int = 0,
    decide: str | None = None,
    redrawn: bool = False,
) -> Experiment:
    """The experiment of that name or in that folder; the rest is as in :class:`Experiment`.

    Raises:
        InputError: there is none, its name is no word, its file does not fit the schema, makes one
            claim twice or over no population, names a section that docs/theory.md does not have,
            or makes a claim that
            its paper does not list (where there are papers), or it has no such
            fidelity.
    """
    folder = folder_of(experiment)
    check_name(folder.resolve().name)
    path = folder / "experiment.yaml"
    spec = parse(ExperimentSpec, read_yaml(path), str(path))
    anchors, seen = [f"#{anchor}" for anchor in sections()], set()
    for claim in spec.claims:
        if (claim.id, claim.regime) in seen:
            allowed = "each id and regime once"
            raise InputError(f"{path}: claims", f"{claim.id}, {claim.regime}", allowed)
        seen.add((claim.id, claim.regime))
        least = 1 if is_tested(claim.kind) else 0
        if not least <= len(set(claim.over)) == len(claim.over):
            where = f"{path}: claims, {claim.id} ({claim.regime}), over"
            allowed = f"each population once, at least {least} for kind {claim.kind}"
            raise InputError(where, claim.over, allowed)
        if anchors and claim.formula.startswith("#") and claim.formula not in anchors:
            where = f"{path}: claims, {claim.id}, formula"
            raise InputError(where, claim.formula, one_of(anchors, claim.formula))
    if place(PAPERS).is_dir():
        try:
            papers = {id: paper_of(id) for id in {claim.paper for claim in spec.claims}}
            for claim in spec.claims:
                claim_of(papers[claim.paper], claim.id)
        except InputError as error:
            raise InputError(f"{path}: {error.field}", error.value, error.allowed) from None
    try:
        spec.at(fidelity)
        check(spec)
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from None
    return Experiment(folder, spec, fidelity, seed_offset, decide, redrawn)


def load_module(folder: Path, name: str) -> ModuleType | None:
    """A module of an experiment's folder, imported as part of a package of that folder.

    Its modules may import one another (``from .effects import …``), wherever the folder is. An
    edited file is loaded again: the package's name holds the time of the last edit in the folder.
    """
    if not (folder / f"{name}.py").is_file():
        return None
    latest = max(path.stat().st_mtime_ns for path in folder.glob("*.py"))
    where = hashlib.sha256(f"{folder.resolve()} {latest}".encode()).hexdigest()[:8]
    package = f"experiment_{re.sub(r'[^0-9A-Za-z_]', '_', folder.resolve().name)}_{where}"
    if package not in sys.modules:
        parent = ModuleType(package)
        parent.__path__ = [str(folder.resolve())]
        sys.modules[package] = parent
        importlib.invalidate_caches()
    return importlib.import_module(f"{package}.{name}")


def among(experiment: Experiment, claims_by_paper: Mapping[str, int]) -> Experiment:
    """The experiment with every claim at a share 1/k of its 1 − level, of k claims of its paper.

    A claim decided so survives Holm's adjustment whatever the others do.
    """
    claims = [
        claim.model_copy(
            update={"level": 1 - (1 - claim.level) / claims_by_paper.get(claim.paper, 1)}
        )
        for claim in experiment.claims
    ]
    return replace(experiment, spec=experiment.spec.model_copy(update={"claims": claims}))
