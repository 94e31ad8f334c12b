"""``sims run``, and the steps of a run as the Snakefile calls them (``sims step``)."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from sims.base.errors import InputError, one_of
from sims.base.files import write, write_json
from sims.base.places import experiments
from sims.cli.listing import after_result, print_table
from sims.cli.options import check_kind, part_of, writable
from sims.judgement.agreement import agreement
from sims.judgement.answers import write_answers
from sims.study import ledger, runner
from sims.study.code import accelerated
from sims.study.experiment import Experiment, load_experiment
from sims.study.panels import CLAIMS

RUN_FILES = ("answers.json", "simulation.nc", "theory.nc")
DRAWN = ("caption.md", "figure.png")
"""Files of a run that ``sims run`` names: the results, and what is made of them."""
PUBLISHED = ("answers.json", "answers.md", "report.html")
"""Files of a finished run to publish, next to figures, captions and counterexamples."""


def run(name: str, fidelity: str, seed_offset: int, allow_code: bool, dry: bool) -> None:
    """Run one experiment, and print the paths of its files and a table of its answers."""
    check_kind(name, "an experiment")
    allowed = None if dry else allow_code
    experiment = load_experiment(name, fidelity, seed_offset, allowed)
    folder = Path("results", fidelity, experiment.name)
    writable(folder / DRAWN[-1])
    if dry:
        _plan(experiment, folder)
        return
    outcome = runner.run(
        name,
        fidelity,
        seed_offset=seed_offset,
        figure=False,
        progress=sys.stderr.isatty(),
        processes=_count_processes(),
        allow_code=allow_code,
    )
    written = [*RUN_FILES]
    with after_result("caption and figure"):
        runner.plot(outcome.experiment, folder / DRAWN[-1])
        written += DRAWN
    for file in written:
        print(outcome.folder / file)
    rows = []
    for answer in outcome.answers:
        rows.append((answer.question, answer.spoken(), answer.result.details()))
    print_table(("question", "answer", "how often"), rows)


def _count_processes() -> int:
    """Number of processes: one per core and 2 GiB of memory; a single one on an accelerator."""
    from sims.base.runtime import host_devices, memory

    return 1 if accelerated() else max(1, min(host_devices(), memory() // 2**31))


def _plan(experiment: Experiment, folder: Path) -> None:
    """Print what a run of the experiment would do, and where."""
    simulation = experiment.simulation
    times = f"{simulation.batches} batches of {simulation.replicates_per_batch}"
    files = ", ".join(sorted(path.name for path in experiment.folder.glob("*.py")))
    print(f"{experiment.name} at {experiment.fidelity}: nothing is run or written")
    print(f"law          {experiment.spec.law.get('text', '')}")
    print(f"replicates   {times} per unit, unless study.py overrides this")
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
        part: ``i/N``: simulate the i-th of N parts, and keep its batches.
    """
    steps = RUN_STEPS if experiment is None else STEPS
    if name not in steps:
        raise InputError("step", name, one_of(steps, name))
    file, action = steps[name]
    loaded = None if experiment is None else load_experiment(experiment, fidelity)
    folder = Path("results", fidelity, loaded.name if loaded else "")
    path = writable(output or folder / file)
    if loaded and part is not None:
        _simulate(loaded, path, part)
    else:
        action(loaded or fidelity, path)


def _simulate(experiment: Experiment, output: Path, part: str = "1/1") -> None:
    """Simulate all points, or one part, which leaves a marker file when finished."""
    index = part_of("--part", part)
    runner.simulate(experiment, output, sys.stderr.isatty(), _count_processes(), index)
    if index != (1, 1):
        mark = output.parent / f"shards/{index[0]}-of-{index[1]}.json"
        write_json({"part": part}, mark, f"part {part} of {experiment.identity}")


def _search(experiment: Experiment, output: Path) -> None:
    from sims.study.searching import search

    search(experiment, output)


def _ledger(fidelity: str, output: Path) -> None:
    from sims.report.answers import all_tables

    answers = ledger.gather(fidelity, output.parent)
    title = "# How often is it true?\n\n95 % intervals over problems in parentheses.\n\n"
    write(title + all_tables(answers), output.with_name("answers.md"), f"answers.md of {fidelity}")


def _report(fidelity: str, output: Path) -> None:
    from sims.report import write_report

    write_report(output.parent, fidelity, output)


def _publish(fidelity: str, report: Path) -> None:
    """Copy a finished run's answers, figures and report, and fill its texts into README.md."""
    from sims.report.learnt import readme_texts

    source, target = report.parent, ledger.PUBLISHED
    figures = [drawn for name in experiments() if (drawn := _figure_of(source / name))]
    files = [path for name in PUBLISHED if (path := source / name).is_file()]
    if len(files) < len(PUBLISHED) or not figures:
        raise InputError(str(source), "no finished run", "make reproduce, first")
    answers = ledger.read_run(source, fidelity)
    texts = readme_texts(answers)
    shutil.rmtree(target, ignore_errors=True)
    (target / CLAIMS).mkdir(parents=True)
    for figure in figures:
        name = figure.parent.name
        shutil.copy(figure, target / f"{name}{figure.suffix}")
        shutil.copy(figure.with_name("caption.md"), target / f"{name}.md")
    for panel in source.glob(f"*/{CLAIMS}/*.svg"):
        shutil.copy(panel, target / CLAIMS)
    # README.md is shown on white, the site on any ground.
    for path in [*files, *source.glob("*/headline.png"), *source.glob("*/headline.svg")]:
        shutil.copy(path, target)
    for name, text in texts.items():
        _fill(name, text)
    # The numbers of a counterexample are in its file; the published answer names its fields.
    brief = [
        replace(answer, problem=answer.problem and dict.fromkeys(answer.problem))
        for answer in answers
    ]
    write_answers(brief, target / "answers.json", f"answers.json of {fidelity}")
    if (source / "counterexamples").is_dir():
        shutil.copytree(source / "counterexamples", target / "counterexamples")


def _figure_of(folder: Path) -> Path | None:
    """The figure of an experiment: its SVG, or the PNG of a smoke run; None without one."""
    paths = (folder / f"figure.{kind}" for kind in ("svg", "png"))
    return next((path for path in paths if path.is_file()), None)


def _again(fidelity: str, marker: Path) -> None:
    """Print how many answers from fresh draws agree with the published ones; fill in README.md."""
    found = agreement(ledger.read_run(ledger.PUBLISHED), ledger.read_run(marker.parent))
    text = f"With fresh draws {found.in_words()}\n"
    _fill("again", text)
    print(text, end="")


def _compare(fidelity: str, marker: Path) -> None:
    """Print the report's path, and how many answers agree with the published ones, if any."""
    print(marker.with_name("report.html"))
    if published := [*chain(*ledger.published_answers().values())]:
        found = agreement(published, ledger.read_run(marker.parent, fidelity))
        print(found.in_words(" with the published ones"))


def _fill(name: str, text: str) -> None:
    """Fill a text into README.md, if it has a place for it."""
    from sims.report.answers import filled

    if (readme := Path("README.md")).is_file():
        readme.write_text(filled(readme.read_text("utf-8"), name, text), encoding="utf-8")


STEPS: dict[str, tuple[str, Callable[[Any, Path], object]]] = {
    "simulate": ("simulation.nc", _simulate),
    "predict": ("theory.nc", runner.predict),
    "judge": ("answers.json", runner.judge),
    "search": ("search.json", _search),
    "plot": ("figure.png", runner.plot),
}
"""Step of an experiment to the file that it writes and its function."""
RUN_STEPS: dict[str, tuple[str, Callable[[Any, Path], object]]] = {
    "ledger": ("answers.json", _ledger),
    "report": ("report.html", _report),
    "publish": ("answers.json", _publish),
    "again": ("answers.json", _again),
    "compare": ("answers.json", _compare),
}
"""Step of a full run to its file (read by the last three) and its function."""
