"""The steps of an experiment and of a run, as the command line and the Snakefile call them."""

import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path

from sims.cli.options import writable
from sims.errors import InputError
from sims.judgement import read_ledger
from sims.study import ledger as ledgers
from sims.study import predicting, runner
from sims.study.code import accelerated
from sims.study.experiment import Experiment, folder_of, load_experiment
from sims.study.shards import Shard

WRITTEN = ("simulation.nc", "theory.nc", "verdicts.json", "caption.md", "figure.png")
"""What ``sims run`` names at its end, the figure last."""


def run(options: Namespace) -> None:
    """``sims run``: one experiment from both roads to its figure."""
    experiment, figure = _experiment(options), _output(options, "figure.png")
    if options.dry:
        _plan(experiment, figure.parent)
        return
    outcome = runner.run(
        options.experiment, options.fidelity, seed_offset=options.seed_offset,
        progress=sys.stderr.isatty(), processes=_processes(),
    )  # fmt: skip
    for v in outcome.verdicts:
        print(f"{v.verdict:12} {v.claim} ({v.regime}): {v.reason}")
    print(*(outcome.folder / name for name in WRITTEN), sep="\n")


def _processes() -> int:
    """One a core, and 2 GiB for each; on an accelerator one alone, which then has its memory."""
    from sims.runtime import host_devices, memory

    return 1 if accelerated() else max(1, min(host_devices(), memory() // 2**31))


def _plan(experiment: Experiment, folder: Path) -> None:
    """Print what a run of the experiment would do, and where."""
    from sims.study.planning import costs, described
    from sims.study.units import units_of

    found, units = costs(experiment), units_of(experiment)
    own = [n for n in ("simulate.py", "predict.py") if (experiment.folder / n).is_file()]
    print(f"{experiment.name} at {experiment.fidelity}: nothing is run or written")
    if found:
        print(*described(found, experiment.simulation), sep="\n")
    if own:
        print(f"own code     {', '.join(own)}, {len(units)} units: not estimated")
    print(f"theory       {experiment.theory.order}; not estimated")
    print(f"output       {folder}{', which exists: finished points are kept' * folder.exists()}")


def simulate(options: Namespace) -> None:
    """``sims simulate``: estimate every point of an experiment, or one shard's part of it."""
    experiment, output = _experiment(options), _output(options, "simulation.nc")
    if options.shard is not None:
        shard = Shard.parse(options.shard)
        runner.simulate_shard(experiment, output, shard, sys.stderr.isatty(), options.turn)
        return
    if options.turn != 1:
        raise InputError("--turn", options.turn, "nothing without --shard")
    from sims.study.workers import Crew

    theory = output.with_name("theory.nc")
    with Crew(experiment, output, _processes()) as crew:
        runner.simulate(experiment, output, theory, sys.stderr.isatty(), crew=crew)
    _say(options, str(output))


def gather(options: Namespace) -> None:
    """``sims gather``: the file of a simulation, of what shards computed."""
    experiment, output = _experiment(options), _output(options, "simulation.nc")
    runner.simulate(experiment, output, output.with_name("theory.nc"), closed=True)


def plan(options: Namespace) -> None:
    """``sims plan``: which batches the shards of a turn are to compute."""
    from sims.study import turns

    experiment, output = _experiment(options), _output(options, "simulation.nc")
    turns.plan(experiment, output, output.with_name("theory.nc"), options.turn)


def predict(options: Namespace) -> None:
    """``sims predict``: predict every point of an experiment."""
    output = _output(options, "theory.nc")
    predicting.predict(_experiment(options), output)
    _say(options, str(output))


def judge(options: Namespace) -> None:
    """``sims judge``: one verdict for every claim of the experiment file."""
    output = _output(options, "verdicts.json")
    simulation, theory = (output.with_name(f"{road}.nc") for road in ("simulation", "theory"))
    experiment = _experiment(options)
    runner.judge(experiment, simulation, theory, output)
    whose = f"verdicts.json of {experiment.name} at {experiment.fidelity}"
    counts = Counter(verdict.verdict for verdict in read_ledger(output, whose))
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    _say(options, f"{experiment.name}: {found}; {output}")


def plot(options: Namespace) -> None:
    """``sims plot``: the figure, and its caption with the numbers."""
    output = _output(options, "figure.pdf")
    runner.plot(_experiment(options), output.parent, output)
    _say(options, str(output))


def ledger(options: Namespace) -> None:
    """``sims ledger``: the verdicts of all experiments that have been judged, adjusted by Holm."""
    output = _output(options, "ledger.json")
    ledgers.gather(output.parent, options.fidelity, output)
    _say(options, str(output))


def report(options: Namespace) -> None:
    """``sims report``: one self-contained page."""
    from sims.report import write_report

    output = _output(options, "report.html")
    write_report(output.parent, options.fidelity, output)
    _say(options, str(output))


def _say(options: Namespace, line: str) -> None:
    """What came out, unless the caller said where it goes and so knows."""
    if not options.output:
        print(line)


def _experiment(options: Namespace) -> Experiment:
    offset = getattr(options, "seed_offset", 0)
    return load_experiment(options.experiment, options.fidelity, offset)


def _output(options: Namespace, name: str) -> Path:
    if getattr(options, "output", None):
        return writable(Path(options.output))
    parts = [folder_of(options.experiment).resolve().name] if "experiment" in options else []
    return writable(Path("results", options.fidelity, *parts, name))
