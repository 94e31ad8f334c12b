"""An experiment at a fidelity: its folder, its file, its grid points and its own modules."""

import re
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sims.documents import read_yaml
from sims.errors import InputError, one_of
from sims.formulas import sections
from sims.identity import digest
from sims.kinds import is_tested
from sims.papers import PAPERS, paper_of
from sims.places import CARRIED, place
from sims.study.code import EXPERIMENTS, FIDELITIES, seed_of, syntax
from sims.study.grid import changed, combinations, placed
from sims.study.located import check_consent, consented, loaded, sources
from sims.study.schema import (
    ClaimSpec,
    ExperimentSpec,
    SimulationSpec,
    TheorySpec,
)
from sims.study.stacking import Scalar
from sims.validation import parse

if TYPE_CHECKING:
    from sims.study.specification import ProblemSpec

SEED_STRIDE = 1000
"""What one step of a seed offset adds to the seed where heads learn or problems are drawn: more
than any experiment has batches, since what is drawn from the seed plus the batch is not shared."""
PROSE = {"statement", "formula", "rationale", "seen_before"}
"""What a claim says of itself to readers; everything else of it decides its test."""
MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Attributes:
        name: place in the grid, four digits.
        coordinates: every dotted path that the grid changes, to this point's value there, or to the
            label (else the kind) of what is no scalar; None where it has nothing.
        spec: its whole problem.
    """

    name: str
    coordinates: dict[str, Scalar]
    spec: "ProblemSpec"

    @property
    def digest(self) -> str:
        """Hash of the whole problem: two points with the same problem share it."""
        return digest(self.spec.model_dump())


@dataclass(frozen=True)
class Experiment:
    """An experiment at one fidelity, with the seed of its simulation moved by an offset.

    Attributes:
        folder: where its experiment.yaml is.
        spec: that file.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0; the same experiment with other draws.
        allow_code: whether Python of its folder may be imported; None for a plan.
    """

    folder: Path
    spec: ExperimentSpec
    fidelity: str = "standard"
    seed_offset: int = 0
    allow_code: bool | None = False

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
        return self.spec.settings_at(self.fidelity)

    @cached_property
    def simulation(self) -> SimulationSpec:
        """Simulation settings at the fidelity, the seed moved by the offset."""
        run = self.spec.simulation_at(self.fidelity)
        base = seed_of(self.folder) if self.spec.questions else run.seed
        seed = base + self.seed_offset * (SEED_STRIDE if self.redraws else 1)
        if seed >= 2**63:
            raise InputError("seed, with its offset", seed, "less than 2**63")
        return run.model_copy(update={"seed": seed})

    @property
    def theory(self) -> TheorySpec:
        """Theory settings at the fidelity."""
        return self.spec.theory_at(self.fidelity)

    @property
    def redraws(self) -> bool:
        """Whether the simulation's seed decides what both roads take, a batch each.

        These are heads that learn, or problems drawn from a law.
        """
        return bool(self.spec.questions) or "learning" in self.settings

    @property
    def contract(self) -> str:
        """Hash of what is fixed before a run: whatever decides its tests, prose apart.

        These are the claims (all but :data:`PROSE`), the settings and the grid points that the
        fidelity has, which theory is computed, and effects.py with the modules beside it that it
        imports, without their comments, docstrings and layout.

        Raises:
            InputError: its effects.py, or a module that it imports, is no Python.
        """
        effects = self.folder / "effects.py"
        return digest(
            [claim.model_dump(exclude=PROSE) for claim in self.claims],
            self.settings,
            self.theory.model_dump(),
            [problem for _, problem in self.problems],
            [syntax(path) for path in sources(effects)] if effects.is_file() else [],
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
        if not blocks:
            raise InputError("grid", blocks, "at least one block ({} is the base problem alone)")
        paths = list(dict.fromkeys(path for block in blocks for path in block))
        return [
            placed(changed(base, values), paths, self.folder) for values in combinations(blocks)
        ]

    @cached_property
    def points(self) -> list[Point]:
        """Every point of the grid, validated; empty without a base problem."""
        from sims.study.specification import ProblemSpec

        points = []
        for i, (coordinates, problem) in enumerate(self.problems):
            context = {"allow_code": self.allow_code}
            spec = parse(ProblemSpec, problem, f"grid point {i}", context=context)
            points.append(Point(f"{i:04d}", coordinates, spec))
        return points

    def module(self, name: str) -> ModuleType | None:
        """A module of its folder (simulate, predict, effects, statistic, figure), if it is there.

        It is imported as part of a package of that folder, whose modules may import one another
        (``from .effects import …``).

        Raises:
            InputError: there is no consent to run it.
        """
        path = self.folder / f"{name}.py"
        if not path.is_file():
            return None
        check_consent(str(path), "code", self.allow_code)
        return loaded(path)

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Errors that the experiment's own code makes of its settings are one line.

        Its own are those whose innermost frame, of all that are the project's, is in its folder.

        Raises:
            InputError: a key is not there, or a value is of another kind than the code needs.
        """
        try:
            yield
        except InputError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            own, package = self.folder.resolve(), Path(__file__).resolve().parents[1]
            frames = traceback.extract_tb(error.__traceback__)
            known = [(Path(f.filename).resolve(), f.lineno) for f in frames]
            path, line = next(
                (p, n) for p, n in reversed(known) if p.is_relative_to(own) or package in p.parents
            )
            if not path.is_relative_to(own):
                raise
            allowed = "settings, in experiment.yaml, that this code can use"
            got = f"{type(error).__name__}: {error}"
            raise InputError(f"{self.folder / path.name}, line {line}", got, allowed) from error


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
        for home in (place(EXPERIMENTS), Path(), CARRIED / EXPERIMENTS):
            if (home / experiment / "experiment.yaml").is_file():
                return home / experiment
    known = one_of(experiments(), experiment) or "a folder with an experiment.yaml"
    raise InputError("experiment", str(experiment), known)


def load_experiment(
    experiment: str | Path,
    fidelity: str = "standard",
    seed_offset: int = 0,
    allow_code: bool | None = False,
) -> Experiment:
    """The experiment of that name or in that folder; the rest is as in :class:`Experiment`.

    One in ``experiments`` has the consent to run its code, which another needs.

    Raises:
        InputError: there is none, its name is no word, its file does not fit the schema, makes one
            claim twice or over no population, names a section that docs/theory.md does not have,
            makes a claim that its paper does not list (where there are papers) or that lacks what
            its test needs, has no such fidelity, or has no consent.
    """
    folder = folder_of(experiment)
    if not re.fullmatch(r"\w+", name := folder.resolve().name, re.ASCII):
        raise InputError("folder of an experiment", name, "letters, digits and _")
    path = folder / "experiment.yaml"
    spec = parse(ExperimentSpec, read_yaml(path), str(path))
    try:
        spec.at(fidelity)
        _check(spec)
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from None
    if allow_code is False:
        homes = [home.resolve() for home in (place(EXPERIMENTS), CARRIED / EXPERIMENTS)]
        allow_code = consented(folder.parent.resolve() in homes)
        check_consent(str(folder), "its code", allow_code)
    return Experiment(folder, spec, fidelity, seed_offset, allow_code)


def _check(spec: ExperimentSpec) -> None:
    """Look at what the schema alone cannot say of an experiment, at all of its fidelities."""
    anchors = [f"#{anchor}" for anchor in sections()]
    stated = [*((c.paper, c.id) for c in spec.claims)]
    stated += [(q.paper, q.claim or q.id) for q in spec.questions]
    if place(PAPERS).is_dir():
        for paper, id in stated:
            about = paper_of(paper)
            listed = [c.id for c in (*about.claims, *about.ours)]
            if id not in listed:
                raise InputError(f"claim of {paper}", id, one_of(listed, id))
    for id, times in Counter(q.id for q in spec.questions).items():
        if times > 1:
            raise InputError("questions", id, "each id once")
    # Imported late: SciPy's statistics take a third of a second, and a problem's file needs none.
    from sims.judgement import Rule

    counts = Counter((claim.id, claim.regime) for claim in spec.claims)
    for claim in spec.claims:
        if counts[claim.id, claim.regime] > 1:
            raise InputError("claims", f"{claim.id}, {claim.regime}", "each id and regime once")
        where = f"claims, {claim.id} ({claim.regime})"
        least = 1 if is_tested(claim.kind) else 0
        if not least <= len(set(claim.over)) == len(claim.over):
            allowed = f"each population once, at least {least} for kind {claim.kind}"
            raise InputError(f"{where}, over", claim.over, allowed)
        if anchors and claim.formula.startswith("#") and claim.formula not in anchors:
            raise InputError(f"{where}, formula", claim.formula, one_of(anchors, claim.formula))
        try:
            Rule.of(claim)
        except InputError as error:
            raise InputError(f"{where}, {error.field}", error.value, error.allowed) from None
    for name in spec.fidelities:
        _ = spec.simulation_at(name), spec.theory_at(name), spec.settings_at(name)


def choose(config: Mapping[str, Any]) -> tuple[str, list[str], int]:
    """The fidelity, the experiments and the number of shards of ``snakemake --config``.

    Raises:
        InputError: an unknown key, fidelity or experiment, no such number, or an experiment file
            that cannot be used.
    """
    for key in config:
        if key not in (known := ("fidelity", "experiment", "shards")):
            raise InputError("--config", key, one_of(known, key))
    fidelity = config.get("fidelity", "standard")
    if fidelity not in FIDELITIES:
        raise InputError("fidelity", fidelity, one_of(FIDELITIES, fidelity))
    names, asked, shards = experiments(), config.get("experiment"), config.get("shards", 0)
    if asked not in (None, *names):
        raise InputError("experiment", asked, one_of(names, asked) or "none found")
    if type(shards) is not int or not 0 <= shards <= MOST_SHARDS:
        raise InputError("shards", shards, f"a whole number, 0 to {MOST_SHARDS}")
    for name in names if asked is None else [asked]:
        _ = load_experiment(name, fidelity).problems
    return fidelity, names if asked is None else [asked], shards
