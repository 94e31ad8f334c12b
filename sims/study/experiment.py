"""Experiments at a fidelity: folder, file and modules."""

import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sims.base.documents import read_yaml
from sims.base.errors import InputError, one_of
from sims.base.places import CARRIED, experiments, place
from sims.base.validation import parse
from sims.study.code import EXPERIMENTS, FIDELITIES, seed_of
from sims.study.papers import paper_of
from sims.study.referenced_files import (
    MissingModels,
    check_consent,
    checkpoint,
    resolve_files,
    resolved_consent,
)
from sims.study.schema import ExperimentSpec, SimulationSpec

SEED_STRIDE = 1000
"""Increase of the seed per seed offset: more than the number of batches."""
MAX_SHARDS = 10_000


@dataclass(frozen=True)
class Experiment:
    """An experiment at one fidelity, with an offset of its simulation's seed.

    Attributes:
        folder: folder of its experiment.yaml.
        spec: content of that file.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0, for the same experiment with other draws.
        allow_code: whether Python in its folder may be imported; None for a plan.
    """

    folder: Path
    spec: ExperimentSpec
    fidelity: str = "standard"
    seed_offset: int = 0
    allow_code: bool | None = False

    @property
    def name(self) -> str:
        """Name of the experiment's folder."""
        return self.folder.resolve().name

    @property
    def identity(self) -> str:
        """Experiment's name and fidelity, with which its files are sealed."""
        return f"{self.name} at {self.fidelity}"

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The experiment's settings at its fidelity."""
        return self.spec.experiment_settings(self.fidelity)

    @cached_property
    def simulation(self) -> SimulationSpec:
        """Simulation settings at the fidelity; the seed follows from questions and offset."""
        seed = seed_of(self.folder) + self.seed_offset * SEED_STRIDE
        if seed >= 2**63:
            raise InputError("seed, with its offset", seed, "less than 2**63")
        return self.spec.simulation_settings(self.fidelity).model_copy(update={"seed": seed})

    @contextmanager
    def code_errors(self) -> Iterator[None]:
        """Context in which an error of the experiment's code becomes a line about its settings.

        Such an error has its innermost project frame in the experiment's folder.

        Raises:
            InputError: a key is missing, or a value has the wrong kind for the code.
        """
        try:
            yield
        except InputError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            folder = self.folder.resolve()
            package = Path(__file__).resolve().parents[1]
            for frame in reversed(traceback.extract_tb(error.__traceback__)):
                path = Path(frame.filename).resolve()
                if path.is_relative_to(folder) or package in path.parents:
                    break
            if not path.is_relative_to(folder):
                raise
            allowed = "settings in experiment.yaml that this code can use"
            message = f"{type(error).__name__}: {error}"
            location = f"{self.folder / path.name}, line {frame.lineno}"
            raise InputError(location, message, allowed) from error


def folder_of(experiment: str | Path) -> Path:
    """Folder of an experiment, given by name or path.

    A name that is not in this folder may be one of the package's.

    Raises:
        InputError: the experiment does not exist.
    """
    with suppress(OSError, ValueError):  # a name too long, or with a NUL
        for home in (place(EXPERIMENTS), Path(), CARRIED / EXPERIMENTS):
            if (home / experiment / "experiment.yaml").is_file():
                return home / experiment
    allowed = one_of(experiments(), experiment) or "a folder with an experiment.yaml"
    raise InputError("experiment", str(experiment), allowed)


def load_experiment(
    experiment: str | Path,
    fidelity: str = "standard",
    seed_offset: int = 0,
    allow_code: bool | None = False,
) -> Experiment:
    """Experiment with the given name or folder; other arguments as in :class:`Experiment`.

    Experiments in ``experiments`` have consent to run their code; others need it.

    Raises:
        InputError: the experiment does not exist, its name is invalid, its file does not fit the
            schema, repeats a question, cites an unlisted claim, names a missing file or lacks the
            fidelity; or consent is missing.
    """
    folder = folder_of(experiment)
    if not re.fullmatch(r"\w+", name := folder.resolve().name, re.ASCII):
        raise InputError("folder of an experiment", name, "letters, digits and _")
    path = folder / "experiment.yaml"
    consent = allow_code
    if allow_code is False:
        homes = [home.resolve() for home in (place(EXPERIMENTS), CARRIED / EXPERIMENTS)]
        consent = resolved_consent(folder.parent.resolve() in homes)
    spec = parse(ExperimentSpec, read_yaml(path), str(path))
    try:
        spec.fidelity_changes(fidelity)
        _check(spec)
        resolve_files(spec.law, folder, "law", consent is not False)
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from None
    if consent is not None:
        check_consent(str(folder), "its code", consent)
    return Experiment(folder, spec, fidelity, seed_offset, consent)


def _check(spec: ExperimentSpec) -> None:
    """Check what the schema alone cannot, at all fidelities of an experiment."""
    for id, count in Counter(q.id for q in spec.questions).items():
        if count > 1:
            raise InputError("questions", id, "each id once")
    for question in spec.questions:
        if question.own:
            continue
        paper = paper_of(question.paper)
        listed = [claim.id for claim in paper.every]
        if (id := question.claim or question.id) not in listed:
            allowed = f"{one_of(listed, id)}; or, for a claim of no paper, own: TEXT"
            raise InputError(f"claim of {question.paper}", id, allowed)
    for name in spec.fidelities:
        _ = spec.simulation_settings(name), spec.experiment_settings(name)


def choose(config: Mapping[str, Any]) -> tuple[str, list[str], int]:
    """Fidelity, experiments and number of shards of ``snakemake --config``.

    If no experiment is requested, those without their trained models are skipped, with a line on
    stderr.

    Raises:
        InputError: a key, fidelity, experiment or number is invalid, an experiment file cannot be
            used, or the requested experiment lacks its trained models.
    """
    keys = ("fidelity", "experiment", "shards")
    for key in config:
        if key not in keys:
            raise InputError("--config", key, one_of(keys, key))
    fidelity = config.get("fidelity", "standard")
    if fidelity not in FIDELITIES:
        raise InputError("fidelity", fidelity, one_of(FIDELITIES, fidelity))
    shards = config.get("shards", 0)
    if type(shards) is not int or not 0 <= shards <= MAX_SHARDS:
        raise InputError("shards", shards, f"an integer from 0 to {MAX_SHARDS}")
    names = experiments()
    experiment = config.get("experiment")
    if experiment not in (None, *names):
        raise InputError("experiment", experiment, one_of(names, experiment) or "none found")
    if experiment is not None:
        _check_checkpoints(experiment, fidelity)
        return fidelity, [experiment], shards
    chosen = []
    for name in names:
        try:
            _check_checkpoints(name, fidelity)
        except MissingModels as error:
            print(f"snakemake: without {name}: {error}", file=sys.stderr)
        else:
            chosen.append(name)
    return fidelity, chosen, shards


def _check_checkpoints(name: str, fidelity: str) -> None:
    """Raise MissingModels if an experiment lacks its trained models."""
    law = load_experiment(name, fidelity).spec.law
    for file in law.get("checkpoints", {}).values():
        checkpoint(file)
