"""Experiments as they are declared: the content of experiment.yaml, read once. No JAX."""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sims.base.documents import read_yaml
from sims.base.errors import InputError, located, one_of
from sims.base.identity import combined_digest
from sims.base.places import CARRIED, experiments, place
from sims.base.validation import parse
from sims.study.papers import paper_of
from sims.study.referenced_files import resolve_files, without_paths
from sims.study.schema import ExperimentSpec

EXPERIMENTS = "experiments"
"""The folder of the experiments: see :mod:`sims.base.places`."""
ENTRY_POINTS = "sims.studies"
"""Group of entry points by which an installed package names its experiments: the package that has
experiment.yaml, by the experiment's name."""
PUBLISHED_FIDELITY = "paper"
"""Fidelity of published results, the only one with their salt."""
FIDELITIES = ("smoke", "standard", PUBLISHED_FIDELITY)
NUMBERS = ("simulate", "predict")
"""Steps that compute numbers; the others present them."""
PROSE = ("title", "aim", "derivation", "labels", "paper", "presentation", "questions")
"""Keys of experiment.yaml on which no number depends, but for conditions that enter the seed."""


@dataclass(frozen=True)
class Declaration:
    """An experiment's declaration.

    Attributes:
        content: content of experiment.yaml.
        name: name of the experiment.
        folder: its folder; None for one that is defined in Python alone.
        functions: name to function or class of an experiment without a folder.
        lender: the experiment whose law and seed it has, if its law is ``{of: NAME}``.
    """

    content: Mapping[str, Any]
    name: str
    folder: Path | None = None
    functions: Mapping[str, object] = field(default_factory=dict)
    lender: "Declaration | None" = None

    @classmethod
    def read(cls, experiment: str | Path) -> "Declaration":
        """Declaration of the experiment with a name or folder (:func:`folder_of`).

        A law ``{of: NAME}`` is the law of that experiment, with its seed: its very problems.

        Raises:
            InputError: there is none, its name cannot be an experiment's, or its file is no YAML.
        """
        folder = folder_of(experiment)
        if not re.fullmatch(r"\w+", name := folder.resolve().name, re.ASCII):
            raise InputError("folder of an experiment", name, "letters, digits and _")
        content = read_yaml(folder / "experiment.yaml")
        lender = None
        law = content.get("law")
        if isinstance(law, dict) and "of" in law:
            if not law.keys() <= {"of", "text"} or not isinstance(law["of"], str):
                raise InputError(f"{folder}: law", law, "`of` with an experiment's name, `text`")
            lender = cls.read(law["of"])
            content["law"] = lender.content["law"] | law
            del content["law"]["of"]
        return cls(content, name, folder, lender=lender)

    @property
    def location(self) -> str:
        """Where it stands, for errors."""
        return self.name if self.folder is None else str(self.folder / "experiment.yaml")

    @cached_property
    def spec(self) -> ExperimentSpec:
        """The content by the schema.

        Raises:
            InputError: it does not fit the schema, repeats a question or cites an unlisted claim.
        """
        spec = parse(ExperimentSpec, dict(self.content), self.location)
        with located(self.location):
            _check(spec)
        return spec

    @property
    def code(self) -> Path | None:
        """Path of ``study.py``; None if its law draws fields of a problem, which needs no code.

        Raises:
            InputError: there is no such file, although the law or another file needs it.
        """
        folder = self.folder or Path()
        path = folder / "study.py"
        if path.is_file():
            return path
        for name in ("statistic.py", "figure.py"):
            if (folder / name).is_file():
                raise InputError(str(path), f"file not found; a Study in it has to use {name}")
        if "problem" not in self.spec.law:
            needed = "a law without `problem` needs a Study in this file"
            raise InputError(str(path), f"file not found; {needed}")
        return None

    def resolved(self, value: Any) -> Any:
        """Part of the content, with located files and digests of their contents."""
        return resolve_files(value, self.folder or Path())

    @property
    def law(self) -> dict[str, Any]:
        """The law without its description, on which no number depends."""
        return {key: value for key, value in self.content["law"].items() if key != "text"}

    def seed(self, fidelity: str) -> int:
        """Seed of the problems of a run at a fidelity; a changed question gets new problems.

        It is the first bytes of a SHA-256 of the law without prose, the conditions of all
        questions, the revisions above 1 of their effects, and the salt. Rewording, renaming or
        reordering redraws nothing, and neither does a further question without a new condition.
        """
        if self.lender is not None:
            return self.lender.seed(fidelity)
        conditions = set()
        revisions = {}
        for question in self.content["questions"]:
            restriction = (question.get("restrict") or {}).get("where")
            for condition in filter(None, (restriction, *(question.get("strata") or {}).values())):
                conditions.add(json.dumps(condition, sort_keys=True))
            if question.get("revision", 1) > 1:
                revisions[question["effect"]] = question["revision"]
        declared = json.dumps([self.law, sorted(conditions), revisions], sort_keys=True)
        return int(combined_digest(declared, salt(self.name, fidelity)), 16) >> 1

    def part(self, step: str, fidelity: str) -> str:
        """The part of the declaration that a step reads, as JSON.

        For numbers it is everything at one fidelity but prose, with the seed.
        """
        changes = (self.content.get("fidelities") or {}).get(fidelity) or {}
        read = {key: value for key, value in self.content.items() if key != "fidelities"}
        if step in NUMBERS:
            read = {key: value for key, value in read.items() if key not in PROSE}
            read["law"] = self.law
        entries = {"whole": self.resolved(read), "fidelity": changes}
        entries["seed"] = self.seed(fidelity)
        return json.dumps(without_paths(entries), sort_keys=True, default=str)


def salt(name: str, fidelity: str) -> str:
    """The text that is hashed with a declaration into its seed.

    It is ``dev`` at smoke and standard, so that work in progress does not look at the problems
    that will judge. At paper it is the salt of the experiment's published answers. The variable
    SIMS_SALT overrides both; ``make publish`` draws a new one.
    """
    if (given := os.environ.get("SIMS_SALT")) is not None:
        return given
    published = place("results/published") / "answers.json"
    if fidelity == PUBLISHED_FIDELITY and published.is_file():
        for row in json.loads(published.read_text("utf-8")):
            if row["experiment"] == name:
                return str(row["salt"])
    return "dev"


def folder_of(experiment: str | Path) -> Path:
    """Folder of an experiment, given by name or path.

    A name that is not in this folder may be one of the package's, or of an installed package that
    has an entry point (:data:`ENTRY_POINTS`).

    Raises:
        InputError: the experiment does not exist.
    """
    with suppress(OSError, ValueError):  # a name too long, or with a NUL
        for home in (place(EXPERIMENTS), Path(), CARRIED / EXPERIMENTS):
            if (home / experiment / "experiment.yaml").is_file():
                return home / experiment
    installed = installed_experiments()
    if str(experiment) in installed:
        return installed[str(experiment)]
    allowed = one_of([*experiments(), *installed], experiment) or "a folder with experiment.yaml"
    raise InputError("experiment", str(experiment), allowed)


def is_known(folder: Path) -> bool:
    """True for an experiment in ``experiments``, of this package, or of an installed one."""
    homes = [home.resolve() for home in (place(EXPERIMENTS), CARRIED / EXPERIMENTS)]
    installed = [path.resolve() for path in installed_experiments().values()]
    return folder.parent.resolve() in homes or folder.resolve() in installed


def installed_experiments() -> dict[str, Path]:
    """Experiments of installed packages: name to folder."""
    found = {}
    for entry in entry_points(group=ENTRY_POINTS):
        with suppress(ImportError):
            spec = find_spec(entry.value)
            for folder in (spec and spec.submodule_search_locations) or ():
                found[entry.name] = Path(folder)
    return found


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
