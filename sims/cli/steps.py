"""``sims run``, and the steps of a run as the Snakefile calls them (``sims step``)."""

import os
import sys
from pathlib import Path

from sims import steps
from sims.base.errors import InputError, one_of
from sims.base.files import write_json
from sims.cli.listing import after_result, print_table
from sims.cli.options import check_kind, part_of, writable
from sims.study.code import accelerated
from sims.study.running import Run
from sims.study.timing import expected, in_minutes, kept, timed

RUN_FILES = ("answers.json", "simulation.nc", "theory.nc")
DRAWN = ("caption.md", "figure.png")
"""Files of a run that ``sims run`` names: the results, and what is made of them."""


def run(name: str, fidelity: str, seed_offset: int, allow_code: bool, dry: bool) -> None:
    """Run one experiment, and print the paths of its files and a table of its answers."""
    check_kind(name, "an experiment")
    allowed = None if dry else allow_code
    opened = Run.load(name, fidelity, seed_offset, allow_code=allowed)
    folder = opened.home
    writable(folder / DRAWN[-1])
    if dry:
        _plan(opened)
        return
    with timed(folder, "run"):
        answers = opened.complete(sys.stderr.isatty(), _count_processes())
    written = [*RUN_FILES]
    with after_result("caption and figure"):
        opened.figure()
        written += DRAWN
    for file in written:
        print(folder / file)
    rows = []
    for answer in answers:
        rows.append((answer.question, answer.spoken(), answer.result.details()))
    print_table(("question", "answer", "how often"), rows)


def _count_processes() -> int:
    """Number of processes: one per core and 2 GiB of memory; a single one on an accelerator."""
    from sims.base.runtime import host_devices, memory

    return 1 if accelerated() else max(1, min(host_devices(), memory() // 2**31))


def _plan(planned: Run) -> None:
    """Print what a run of the experiment would do, and where."""
    simulation = planned.simulation
    folder = planned.home
    assert planned.study.folder is not None
    times = f"{simulation.batches} batches of {simulation.replicates_per_batch}"
    files = ", ".join(sorted(path.name for path in planned.study.folder.glob("*.py")))
    print(f"{planned.identity}: nothing is run or written")
    print(f"law          {planned.spec.law.get('text', '')}")
    print(f"replicates   {times} per unit, unless study.py overrides this")
    parts = [(planned.name, step) for step in ("simulate", "predict", "tabulate", "plot")]
    seconds = kept(folder, "run") or expected(planned.fidelity, parts)
    print(f"time         {in_minutes(seconds / (os.cpu_count() or 1))} on this machine")
    print(f"code         {files}: not read")
    print(f"output       {folder}{', which exists; finished units are kept' * folder.exists()}")


def step(
    name: str, experiment: str | None, fidelity: str, output: Path | None, part: str | None
) -> None:
    """Run one step of an experiment or of a full run.

    Args:
        name: name of the step.
        experiment: name of the experiment; None for a step of a full run.
        fidelity: smoke, standard or paper.
        output: file to write, in the folder of the earlier steps' files.
        part: ``i/N``: simulate the i-th of N parts, keep its batches, and leave a marker file.
    """
    files = steps.OF_RUN if experiment is None else steps.OF_EXPERIMENT
    if name not in files:
        raise InputError("step", name, one_of(files, name))
    # Judging reads a table, and runs no code of an experiment.
    allowed = None if name == "judge" else False
    loaded = None if experiment is None else Run.load(experiment, fidelity, allow_code=allowed)
    folder = Path("results", fidelity, loaded.name if loaded else "")
    path = writable(output or folder / files[name])
    with timed(path.parent, name if part is None else "shard"):
        if loaded and name == "simulate":
            index = part_of("--part", part or "1/1")
            progress = sys.stderr.isatty()
            steps.function(name)(loaded, path, progress, _count_processes(), index)
            if index != (1, 1):
                mark = path.parent / f"shards/{index[0]}-of-{index[1]}.json"
                write_json({"part": part}, mark, f"part {part} of {loaded.identity}")
        else:
            steps.function(name)(loaded or fidelity, path)
