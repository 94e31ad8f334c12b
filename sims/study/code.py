"""Fingerprints of the steps of a run: the module that a step is, and a folder's files.

A step is the module of :mod:`sims.steps` with its name, and its code is that module's imports. In
an experiment's folder every file counts (:mod:`sims.study.sources`), but for those that
:data:`EXCLUDED` names for a step; what it imports all the same is recorded after the run, and
counts from then on. Of experiment.yaml everything counts but for prose.

The digests are parameters of the Snakemake rules: restyling a figure re-runs no simulation, editing
the engine does. Checkpoints and provenance carry the same ones. The Snakefile imports this module,
so it needs no JAX.
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
from sims.base.files import replace
from sims.base.identity import known_by_name
from sims.base.places import place
from sims.study.referenced_files import resolve_files
from sims.study.sources import (
    PRESENTATION,
    WORDS,
    combined_digest,
    content,
    folder_sources,
    package_sources,
)

EXPERIMENTS = "experiments"
"""The folder of the experiments: see :mod:`sims.base.places`."""
FIDELITIES = ("smoke", "standard", "paper")
FORMATS = dict.fromkeys(FIDELITIES, ("pdf", "png", "svg")) | {"smoke": ("png",)}
"""Fidelity to the formats of its figures."""
NUMBERS = ("simulate", "predict")
"""Steps that compute numbers; the others present them."""
EXCLUDED = {
    "simulate": ("predict.py", *PRESENTATION),
    "predict": ("simulate.py", *PRESENTATION),
}
"""Step to the names of files of an experiment's folder that do not count for it."""
PROSE = ("title", "aim", "derivation", "labels", "paper", "presentation", "questions")
"""Keys of experiment.yaml on which no number depends, but for conditions that enter the seed."""


def digest(
    step: str,
    experiment: Path | None = None,
    fidelity: str = "standard",
    results: Path | None = None,
) -> str:
    """Hash of all that a step depends on, but for its input files.

    Args:
        step: name of a module of :mod:`sims.steps`.
        experiment: folder of the experiment, for a step that has one.
        fidelity: at which it is run.
        results: folder of the experiment's results, with the record of what a run imported.
    """
    if experiment is None:
        return code(step, None)
    words = [experiment / "variables.yaml"]
    if step not in NUMBERS:
        words += [experiment / "caption.md", *sorted(place("papers").glob("*.yaml"))]
    contents = map(content, filter(Path.is_file, words))
    return combined_digest(
        code(step, experiment, results), part(step, experiment, fidelity), *contents
    )


def code(step: str, experiment: Path | None, results: Path | None = None) -> str:
    """Hash of the code and data that a step runs and reads: see :func:`digest`."""
    if experiment is None:
        return package_code(f"sims.steps.{step}")
    excluded = EXCLUDED.get(step, WORDS)
    if step in NUMBERS:
        excluded += tuple(read_yaml(experiment / "experiment.yaml").get("presentation") or ())
    sources = folder_sources(experiment, excluded, recorded(step, results))
    modules = {f"sims.steps.{step}", *sources.modules}
    if not (experiment / "study.py").is_file():
        modules.add("sims.study.drawn")
    return combined_digest(package_code(*modules), sources.digest())


def package_code(*modules: str) -> str:
    """Hash of modules of this package and of what they import."""
    return _package_digest(frozenset(modules))


@cache
def _package_digest(modules: frozenset[str]) -> str:
    return combined_digest(*map(content, package_sources(modules)))


def recorded(step: str, results: Path | None) -> list[str]:
    """Paths, relative to an experiment's folder, that an earlier run of a step imported unforeseen.

    They stand in ``.imports`` of the folder of results.
    """
    record = None if results is None else results / ".imports" / f"{step}.json"
    if record is None or not record.is_file():
        return []
    return [str(name) for name in json.loads(record.read_text("utf-8"))]


def record_imports(step: str, experiment: Path, results: Path, before: Iterable[str] = ()) -> None:
    """Record the user's files that a finished step imported, although they did not count for it.

    Args:
        step: simulate or predict.
        experiment: folder of the experiment.
        results: folder of its results.
        before: names of modules that were imported before the step began.
    """
    presentation = read_yaml(experiment / "experiment.yaml").get("presentation") or ()
    excluded = (*EXCLUDED.get(step, WORDS), *presentation)
    earlier = recorded(step, results)
    counted = {path.resolve() for path in folder_sources(experiment, excluded, earlier).files}
    home = experiment.resolve()
    unforeseen = {*earlier}
    for name in {*sys.modules} - {*before}:
        file = getattr(sys.modules[name], "__file__", None)
        if not known_by_name(file) and (path := Path(str(file)).resolve()) not in counted:
            unforeseen.add(os.path.relpath(path, home))
    if unforeseen:
        text = json.dumps(sorted(unforeseen))
        replace(text.encode(), results / ".imports" / f"{step}.json")


def part(step: str, experiment: Path, fidelity: str) -> str:
    """The part of the experiment file that a step reads, as JSON.

    For numbers it is everything at one fidelity but prose, with the seed.
    """
    specification, changes = _file(experiment, fidelity)
    read = {key: value for key, value in specification.items() if key != "fidelities"}
    if step in NUMBERS:
        read = {key: value for key, value in read.items() if key not in PROSE}
        read["law"] = without_prose(specification["law"])
    read["seed"] = seed_of(experiment)
    entries = {"whole": resolve_files(read, experiment), "fidelity": changes}
    return json.dumps(without_paths(entries), sort_keys=True, default=str)


def without_paths(value: Any) -> Any:
    """A copy without the paths of files whose content stands next to them."""
    if isinstance(value, list):
        return [without_paths(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = value if "content" not in value else {k: v for k, v in value.items() if k != "file"}
    return {key: without_paths(item) for key, item in kept.items()}


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
