"""Dependencies of each step of the pipeline: its imports, and a part of the experiment file.

Both are parameters of the Snakemake rules: restyling a figure re-runs no simulation, editing the
engine does, and a comment or docstring changes nothing. Checkpoints and provenance carry the same
digests. The Snakefile imports this module, so it needs no JAX.
"""

import fcntl
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sims.base.documents import read_yaml
from sims.base.errors import InputError
from sims.base.places import place
from sims.study.referenced_files import resolve_files
from sims.study.sources import (
    combined_digest,
    files_below,
    own_sources,
    package_sources,
    syntax,
)

EXPERIMENTS = "experiments"
"""The folder of the experiments: see :mod:`sims.base.places`."""
FIDELITIES = ("smoke", "standard", "paper")
FORMATS = dict.fromkeys(FIDELITIES, ("pdf", "png", "svg")) | {"smoke": ("png",)}
"""Fidelity to the formats of its figures."""
_ENTRIES = {
    "simulate": ("sims.study.units",),
    "predict": ("sims.study.results",),
    "judge": ("sims.study.judge",),
    "search": ("sims.study.searching",),
    "plot": ("sims.figures", "sims.report.text", "sims.study.results"),
    "ledger": ("sims.study.ledger", "sims.report.answers"),
    "report": ("sims.report",),
    "sweep": ("sims.study.sweeping",),
}
"""Step to the modules of this package from which it starts; their imports follow."""
STEPS = tuple(step for step in _ENTRIES if step != "sweep")
_METHODS = {
    "sampler": ("simulate",),
    "replicates": ("simulate",),
    "units": ("simulate",),
    "unit": ("simulate",),
    "theory": ("predict", "search"),
    "predictions": ("predict",),
    "predicted_coordinates": ("predict",),
    "search_row": ("search",),
    "effects": ("judge", "search", "plot"),
    "parameters": ("judge", "search", "plot"),
    "specifications": ("judge", "plot"),
    "as_file": ("judge", "search"),
    "figure": ("plot",),
    "headline": ("plot",),
    "numbers": ("plot",),
}
"""Method of a study to the steps that call it; the others are called by all."""
_PROSE = ("experiment.yaml", "variables.yaml", "caption.md")
"""Files of an experiment's folder that are no data of its code."""
_PARTS = {
    "simulate": ("simulation", "settings", "law"),
    "predict": ("settings", "law"),
    "judge": ("settings", "questions", "law", "paper", "labels"),
    "search": ("settings", "questions", "law"),
    "plot": ("settings", "title"),
}
"""Step to the keys of the experiment file that it reads."""


def digest(step: str, experiment: Path | None = None, fidelity: str = "standard") -> str:
    """Hash of all that a step depends on, but for its input files.

    Args:
        step: simulate, predict, judge, search, plot, ledger or report.
        experiment: folder of the experiment, for the five steps that have one.
        fidelity: at which it is run.
    """
    parts = [] if experiment is None else [part(step, experiment, fidelity)]
    return combined_digest(code(step, experiment), *parts)


def code(step: str, experiment: Path | None) -> str:
    """Hash of the code alone that a step runs, of an experiment if it is of one, or of a sweep.

    It is that of the modules that are imported, and of the data files of an experiment's folder.
    """
    modules = {*_ENTRIES[step]}
    files = list[Path]()
    without = frozenset(name for name, steps in _METHODS.items() if step not in steps)
    if experiment is not None:
        study = experiment / "study.py"
        if study.is_file():
            sources = own_sources(study, without)
            modules |= sources.modules
            files += sources.files
        else:
            modules.add("sims.study.drawn")
        files += [path for path in files_below(experiment) if path.name not in _PROSE]
        if step == "plot":
            files += filter(Path.is_file, [experiment / "caption.md"])
    digests = [syntax(file, without) for file in files]
    return combined_digest(_package_digest(frozenset(modules)), *digests)


@cache
def _package_digest(modules: frozenset[str]) -> str:
    return combined_digest(*map(syntax, package_sources(modules)))


def part(step: str, experiment: Path, fidelity: str) -> str:
    """The part of the experiment file that a step reads, as JSON: prose of others is left out."""
    specification, changes = _file(experiment, fidelity)
    if step in ("simulate", "predict"):
        specification = specification | {"law": without_prose(specification["law"])}
    entries = {}
    for name, data in (("whole", specification), ("fidelity", changes)):
        read = {key: data.get(key) for key in _PARTS.get(step, ())}
        entries[name] = resolve_files(read, experiment)
    if step in ("simulate", "predict"):
        entries["seed"] = seed_of(experiment)
    return json.dumps(entries, sort_keys=True, default=str)


def salt() -> str:
    """The text that is hashed with a declaration into its seed: ``dev``, or the published salt.

    The published salt is in experiments/salt.txt; the variable SIMS_SALT overrides it.
    """
    published = place(EXPERIMENTS) / "salt.txt"
    default = published.read_text("utf-8").strip() if published.is_file() else "dev"
    return os.environ.get("SIMS_SALT", default)


def seed_of(experiment: Path) -> int:
    """Seed of an experiment's problems; a changed question gets new problems.

    It is the first bytes of a SHA-256 of the law without prose, the conditions of all questions,
    the revisions above 1 of their effects, and the salt. Rewording, renaming or reordering redraws
    nothing, and neither does a further question without a new condition.
    """
    specification, _ = _file(experiment, FIDELITIES[0])
    law = without_prose(specification["law"])
    conditions = set()
    revisions = {}
    for question in specification["questions"]:
        restriction = (question.get("restrict") or {}).get("where")
        for condition in filter(None, (restriction, *(question.get("strata") or {}).values())):
            conditions.add(json.dumps(condition, sort_keys=True))
        if question.get("revision", 1) > 1:
            revisions[question["effect"]] = question["revision"]
    declared = json.dumps([law, sorted(conditions), revisions], sort_keys=True)
    return int(combined_digest(declared, salt()), 16) >> 1


def without_prose(law: dict[str, Any]) -> dict[str, Any]:
    """Law without its description, on which no number depends."""
    return {key: value for key, value in law.items() if key != "text"}


def searches(experiment: Path) -> bool:
    """True if a question of an experiment requests a search."""
    questions = _file(experiment, FIDELITIES[0])[0].get("questions") or []
    return any(question.get("search") for question in questions)


def lock_results(results: str) -> None:
    """Lock a folder of results for this process, so that no other run writes there.

    The system releases the lock whenever the process ends, so Snakemake's remaining locks on these
    results belong to a killed run. On a file system without locks only Snakemake's locks apply, and
    a line says so.

    Raises:
        InputError: another run has the lock.
    """
    locks = Path(".snakemake")
    locks.mkdir(exist_ok=True)
    handle = os.open(locks / f"{combined_digest(results)}.hold", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 200).decode(errors="replace") or "it"
        allowed = f"one run per results folder: wait for {holder}, or stop it"
        raise InputError(results, "in use by another run", allowed) from None
    except OSError as error:
        line = (
            f"{locks}: no file locks ({error.strerror}): after a killed run, `snakemake --unlock`"
        )
        print(line, file=sys.stderr)
        return
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} of {platform.node()}".encode())
    for lock in locks.glob("locks/*.lock"):
        if f"{results}/" in lock.read_text():
            lock.unlink()


def check_dates(paths: Iterable[Path]) -> None:
    """Refuse files dated in the future: their results would be older, which stops a run.

    Raises:
        InputError: a file is dated more than a minute from now.
    """
    for path in filter(Path.is_file, paths):
        if (dated := path.stat().st_mtime) > time.time() + 60:
            allowed = "a past date: set the clock, or `touch` it (`find . -newermt now` lists all)"
            raise InputError(str(path), f"dated {time.ctime(dated)}", allowed)


def accelerated() -> bool:
    """True if JAX is installed for a GPU or TPU, on which simulations take turns."""
    return any(map(find_spec, ("jax_cuda12_plugin", "jax_cuda13_plugin", "libtpu")))


def _file(experiment: Path, fidelity: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The experiment file and the changes of a fidelity."""
    specification = read_yaml(experiment / "experiment.yaml")
    return specification, (specification.get("fidelities") or {}).get(fidelity) or {}
