"""Core seconds that steps take: kept next to their results, and expected of a run. No JAX."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from sims.base.files import read_json, write_json

TABLE = files("sims.study") / "seconds.json"
"""Core seconds by fidelity, experiment and step, as ``python -m benchmarks.minutes`` writes it."""
RESUMES = ("simulate", "run")
"""Steps that keep finished units."""


@contextmanager
def timed(folder: Path, step: str) -> Iterator[None]:
    """Context of a step, whose core seconds are kept in the folder of its results.

    They are wall seconds, with those to start the process, times its cores. Those of a step that
    found finished units are not kept: they tell nothing of a complete one.
    """
    begun = time.time()
    start = sum(os.times()[:4])  # of this process, which does nothing else
    yield
    seconds = start + time.time() - begun
    units = folder.glob(".points/*") if step in RESUMES else ()
    if all(unit.stat().st_mtime >= begun for unit in units):
        cores = int(os.environ.get("SIMS_HOST_DEVICES") or os.cpu_count() or 1)
        write_json({"core_seconds": seconds * cores}, _file(folder, step), f"seconds of {step}")


def kept(folder: Path, step: str) -> float | None:
    """Core seconds of the last complete run of a step; None if there was none."""
    path = _file(folder, step)
    return read_json(path)["core_seconds"] if path.is_file() else None


def _file(folder: Path, step: str) -> Path:
    return folder / ".seconds" / f"{step}.json"


def expected(fidelity: str, steps: Iterable[tuple[str, str]]) -> float:
    """Core seconds that steps take, from their last runs here, or else from the shipped table.

    The table is scaled by the ratio of both for the steps that have run here.

    Args:
        fidelity: smoke, standard or paper.
        steps: experiment ("" for a step of the run) and name of each step.
    """
    here = 0.0
    there = 0.0
    table = json.loads(TABLE.read_text("utf-8"))
    for name, experiments in table.items():
        for experiment, row in experiments.items():
            for step, shipped in row.items():
                if (seconds := kept(Path("results", name, experiment), step)) is not None:
                    here += seconds
                    there += shipped
    scale = here / there if there else 1.0
    total = 0.0
    for experiment, step in steps:
        seconds = kept(Path("results", fidelity, experiment), step)
        if seconds is None:
            shipped = table.get(fidelity, {}).get(experiment, {}).get(step, 0.0)
            seconds = scale * shipped
        total += seconds
    return total


def in_minutes(seconds: float) -> str:
    """A duration in words, in whole minutes; 0 is unknown."""
    if not seconds:
        return "an unknown time, as nothing of it has run here"
    minutes = max(1, round(seconds / 60))
    return f"about {minutes} minute{'s' * (minutes > 1)}"
