"""What a run of Snakemake needs before it begins: this folder for itself, and no damaged result.

The Snakefile imports this module, so it needs nothing but the standard library.
"""

import fcntl
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sims import files
from sims.errors import InputError

LOCKS = Path(".snakemake")


def begin(fidelity: str) -> None:
    """Hold a fidelity's results for this process, and clear what cannot be gone on with.

    The system gives the hold back when the process ends, however it ends; so Snakemake's locks on
    these results that are there once it is held are of a run that was killed. Damaged results are
    removed, each with a line on stderr, and so made again.

    Args:
        fidelity: of the run.

    Raises:
        InputError: another run holds them, or a damaged one cannot be removed.
    """
    LOCKS.mkdir(exist_ok=True)
    handle = os.open(LOCKS / f"{fidelity}.hold", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        allowed = "one run of a fidelity at a time in a folder"
        raise InputError(f"results/{fidelity}", "held by another run", allowed) from None
    for lock in LOCKS.glob("locks/*.lock"):
        if f"results/{fidelity}/" in lock.read_text():
            lock.unlink()
    home = Path("results", fidelity)
    shards = [(path, None) for path in sorted(home.glob("*/shards/**/*.json"))]
    for path, of in [*results(home), *shards]:
        try:
            (files.read_json if path.suffix == ".json" else files.read)(path, of)
        except InputError as damage:
            try:
                path.unlink()
            except OSError as error:
                raise InputError(str(path), error.strerror, "a file that can be removed") from None
            print(f"{path}: got {damage.value!r}; it is made again", file=sys.stderr)


def remember_job_age() -> None:
    """Keep Snakemake's Slurm plugin with ``squeue`` while the controller does not answer.

    Before every look at its jobs the plugin (2.8) asks the controller for how long it remembers
    ended ones. It takes no answer for too short a time and turns to ``sacct``, which is installed
    everywhere and without a database of accounts never answers: the run would wait for ever. From
    here on it gets the last answer there was. Nothing, where the plugin is not loaded.
    """
    plugin: Any = sys.modules.get("snakemake_executor_plugin_slurm")
    if plugin is None:
        return
    ask, last = plugin.get_min_job_age, None

    def remembered() -> int | None:
        nonlocal last
        last = ask() or last
        return last

    plugin.get_min_job_age = remembered


def results(folder: Path) -> list[tuple[Path, str]]:
    """The results that lie in the folder of a fidelity, and what each is of."""
    own = [folder / name for name in ("ledger.json", "report.html")]
    names = ("simulation.nc", "theory.nc", "verdicts.json", "caption.md", "figure.*")
    of = {path: f"{path.name} of {folder.name}" for path in own if path.exists()}
    of |= {
        path: f"{path.name} of {path.parent.name} at {folder.name}"
        for name in names
        for path in sorted(folder.glob(f"*/{name}"))
    }
    return list(of.items())


def outcome(fidelity: str, names: Sequence[str]) -> list[str]:
    """What a finished run found, for its last lines: verdicts and figure by experiment, the report.

    Nothing, where the run was asked for single files and there is no ledger that can be believed.

    Args:
        fidelity: of the run.
        names: of its experiments.
    """
    home = Path("results", fidelity)
    try:
        rows = files.read_json(home / "ledger.json", f"ledger.json of {fidelity}")
    except InputError:
        return []
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    for row in rows:
        if row["experiment"] in found:
            found[row["experiment"]][row["verdict"]] += 1
    width = max(map(len, names))
    lines = []
    for name, counts in found.items():
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        lines.append(f"{name:{width}}  {said or 'no claims'}; {home / name / 'figure.png'}")
    return [*lines, f"{'report':{width}}  {home / 'report.html'}"]
