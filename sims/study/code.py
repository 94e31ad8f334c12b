"""Fingerprints of the steps of a run: the module that a step is, and a folder's files.

A step is the module of :mod:`sims.steps` with its name, and its code is that module's imports. In
an experiment's folder every file counts (:mod:`sims.study.sources`), but for those that
:data:`EXCLUDED` names for a step; what it imports all the same is recorded after the run, and
counts from then on. Of experiment.yaml everything counts but for prose.

The digests are parameters of the Snakemake rules: restyling a figure re-runs no simulation, editing
the engine does. Checkpoints and provenance carry the same ones. The Snakefile imports this module,
so it needs no JAX.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sims.base import identity
from sims.base.errors import InputError
from sims.base.files import locked, replace
from sims.base.identity import combined_digest
from sims.base.members import known_by_name
from sims.base.places import place
from sims.study.declaration import FIDELITIES, NUMBERS, Declaration
from sims.study.sources import (
    PRESENTATION,
    WORDS,
    content,
    folder_sources,
    package_sources,
)

FORMATS = dict.fromkeys(FIDELITIES, ("pdf", "png", "svg")) | {"smoke": ("png",)}
"""Fidelity to the formats of its figures."""
PRESENTING = ("effects", "parameters", "panels", "figure", "headline", "numbers")
"""Functions of an experiment without a folder that its numbers do not need."""
TABULATE = "tabulate"
"""Step that takes from results all that is judged and shown."""
EXCLUDED = {
    "simulate": ("predict.py", *PRESENTATION),
    "predict": ("simulate.py", *PRESENTATION),
    "draw": ("simulate.py", "predict.py", *PRESENTATION),
    TABULATE: ("figure.py", *WORDS),
}
"""Step, or the draw of problems, to the names of files of an experiment's folder that do not count
for it."""
ASKED = ("id", "effect", "restrict", "tolerance", "specifications")
"""Fields of a question on which the table of effects depends."""
_HELD = ExitStack()
"""Locks that this process holds until it ends."""


def digest(
    step: str,
    declared: Declaration | None = None,
    fidelity: str = "standard",
    results: Path | None = None,
) -> str:
    """Hash of all that a step depends on, but for its input files.

    Args:
        step: name of a module of :mod:`sims.steps`.
        declared: the experiment, for a step that has one.
        fidelity: at which it is run.
        results: folder of the experiment's results, with the record of what a run imported.
    """
    if declared is None:
        return code(step, None)
    words = []
    if declared.folder is not None:
        words.append(declared.folder / "variables.yaml")
    if declared.folder is not None and step not in (*NUMBERS, TABULATE):
        words += [declared.folder / "caption.md", *sorted(place("papers").glob("*.yaml"))]
    contents = map(content, filter(Path.is_file, words))
    part = declared.part(NUMBERS[0] if step == TABULATE else step, fidelity)
    if step == TABULATE:
        asked = []
        for question in declared.content["questions"]:
            asked.append([question.get(name) for name in ASKED])
        part += json.dumps(asked)
    return combined_digest(code(step, declared, results), part, *contents)


def code(step: str, declared: Declaration | None, results: Path | None = None) -> str:
    """Hash of the code and data that a step runs and reads: see :func:`digest`."""
    modules = {f"sims.steps.{step}"}
    if declared is None:
        return package_code(*modules)
    if declared.folder is None:
        functions = dict(declared.functions)
        if step in NUMBERS:
            functions = {name: f for name, f in functions.items() if name not in PRESENTING}
        return combined_digest(package_code(*modules), identity.digest(functions))
    sources = folder_sources(declared.folder, _excluded(step, declared), recorded(step, results))
    modules |= sources.modules
    if not (declared.folder / "study.py").is_file():
        modules.add("sims.study.drawn")
    return combined_digest(package_code(*modules), sources.digest())


def code_of_draws(declared: Declaration) -> str:
    """Hash of the code and data that draw an experiment's problems, without either method's own."""
    assert declared.folder is not None
    sources = folder_sources(declared.folder, _excluded("draw", declared))
    return combined_digest(package_code("sims.problem.law", *sources.modules), sources.digest())


def _excluded(step: str, declared: Declaration) -> tuple[str, ...]:
    """Names of files of an experiment's folder that do not count for a step."""
    excluded = EXCLUDED.get(step, WORDS)
    if step in (*NUMBERS, "draw"):
        excluded += tuple(declared.content.get("presentation") or ())
    return excluded


@cache
def package_code(*modules: str) -> str:
    """Hash of modules of this package and of what they import."""
    return combined_digest(*map(content, package_sources(modules)))


def recorded(step: str, results: Path | None) -> list[str]:
    """Paths, relative to an experiment's folder, that an earlier run of a step imported unforeseen.

    They stand in ``.imports`` of the folder of results.
    """
    record = None if results is None else results / ".imports" / f"{step}.json"
    if record is None or not record.is_file():
        return []
    return [str(name) for name in json.loads(record.read_text("utf-8"))]


def record_imports(
    step: str, declared: Declaration, results: Path, before: Iterable[str] = ()
) -> None:
    """Record the user's files that a finished step imported, although they did not count for it.

    Args:
        step: simulate or predict.
        declared: the experiment; nothing is recorded of one without a folder.
        results: folder of its results.
        before: names of modules that were imported before the step began.
    """
    if declared.folder is None:
        return
    earlier = recorded(step, results)
    sources = folder_sources(declared.folder, _excluded(step, declared), earlier)
    counted = {path.resolve() for path in sources.files}
    unforeseen = {*earlier}
    for name in {*sys.modules} - {*before}:
        file = getattr(sys.modules[name], "__file__", None)
        if not known_by_name(file) and (path := Path(str(file)).resolve()) not in counted:
            unforeseen.add(os.path.relpath(path, declared.folder.resolve()))
    if unforeseen:
        text = json.dumps(sorted(unforeseen))
        replace(text.encode(), results / ".imports" / f"{step}.json")


def lock_results(results: str) -> None:
    """Lock a folder of results for this process, so that no other run writes there.

    The system releases the lock whenever the process ends, so Snakemake's remaining locks on these
    results belong to a killed run. On a file system without locks only Snakemake's locks apply, and
    a line says so.

    Raises:
        InputError: another run has the lock.
    """
    locks = Path(".snakemake")
    hold = locked(locks / f"{combined_digest(results)}.hold", results, "stop it")
    if error := _HELD.enter_context(hold):
        advice = "after a killed run, `snakemake --unlock`"
        print(f"{locks}: no file locks ({error.strerror}): {advice}", file=sys.stderr)
        return
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
