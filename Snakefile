# One rule a step, each a `sims` command: snakemake --config fidelity=smoke|standard|paper experiment=NAME shards=N
# A step runs again when its inputs change, code among them, or its part of experiment.yaml (params).
import json
import os
import sys
from functools import cache
from pathlib import Path
from shlex import quote

from sims.errors import InputError
from sims.places import place
from sims.study.code import (
    EXPERIMENTS,
    FIDELITIES,
    accelerated,
    choose,
    files,
    needs_theory,
    part,
    shards,
)
from sims.study.workflow import begin, outcome, remember_job_age


def checked(function, argument):
    try:
        return function(argument)
    except InputError as error:
        print(f"snakemake: {error}", file=sys.stderr)
        sys.exit(2)


FIDELITY, NAMES = checked(choose, config)
SHARDS = checked(shards, config)
TURNS = range(2, 7)
HOME = place(EXPERIMENTS)
# What formulas in the report are read from, where it is there.
THEORY = [str(path) for path in (place("docs/theory.md"),) if path.is_file()]

OUT = f"results/{FIDELITY}"
# Cores of a step that uses more than one. Of several experiments some run side by side, since each compiles on a single core; a smoke
# run mostly starts up.
CORES = workflow.resource_settings.cores  # None on a cluster
ALONE = CORES and len(NAMES) == 1
EACH = 1 if FIDELITY == "smoke" else CORES if ALONE else (CORES or 16) // 4 or 1
if workflow.remote_exec:
    # A job of a cluster: what it was allotted, not what its node has.
    EACH = int(os.environ.get("SLURM_CPUS_PER_TASK", EACH))
GPU = int(accelerated() and FIDELITY != "smoke")

# What a cluster is asked for, smoke, standard, paper; a local run does not look at it.
MINUTES = {
    "simulate": (20, 120, 1440),
    "predict": (20, 60, 480),
    "other": (20, 40, 120),
}
MEGABYTES = {"simulate": (4000, 8000, 32000), "other": (4000, 8000, 16000)}
PATH = f"PATH={quote(str(Path(sys.executable).parent))}:$PATH; "
# A job that is preempted has saved what it has when this is reached. It waits for Slurm to put it in the queue again:
# if it left by itself, Slurm would call it failed.
shell.prefix(("trap 'sleep 600' TERM; " if workflow.remote_exec else "") + PATH)


@cache
def prepare():
    """Before any file is looked for, if this is a run: no dry one, nor a job of one."""
    running = workflow.executor_plugin and workflow.is_main_process
    if running and not workflow.dryrun and not workflow.touch:
        checked(begin, FIDELITY)
        remember_job_age()


def code(step):
    def of(w):
        prepare()
        return files(step, HOME / w.name if "name" in w.keys() else None)

    return of


def settings(step):
    return lambda w: part(step, HOME / w.name, FIDELITY)


def ask(table, step="other"):
    """Doubled at every attempt: a job that ran out of either goes on from what it saved."""
    amount = table.get(step, table["other"])[FIDELITIES.index(FIDELITY)]
    return lambda w, attempt: amount * 2 ** (attempt - 1)


wildcard_constraints:
    name=r"\w+",
    shard=r"[1-9]\d*",
    of=r"[1-9]\d*",
    turn=r"[1-9]",


def everything(w):
    prepare()
    figures = ("figure.pdf", "figure.png", "figure.svg")
    each = ("simulation.nc", "theory.nc", "verdicts.json", "caption.md", *figures)
    return [
        f"{OUT}/ledger.json",
        f"{OUT}/report.html",
        *expand(f"{OUT}/{{name}}/{{file}}", name=NAMES, file=each),
    ]


onsuccess:
    for line in outcome(FIDELITY, NAMES):
        print(line, file=sys.stderr)


# All results, since a file in the middle is not missed while what was made of it is there.
rule all:
    input:
        everything,


def marks(turn):
    """What the shards of a turn leave behind."""
    of = "" if turn == 1 else f"turn-{turn}/"
    return expand(
        f"{OUT}/{{{{name}}}}/shards/{of}{{i}}-of-{SHARDS}.json", i=range(1, SHARDS + 1)
    )


def shards_of(w):
    """All shards, turn by turn as far as their plans say that points go on."""
    found = list(marks(1)) if SHARDS else []
    if SHARDS and needs_theory(w.name, FIDELITY):
        for turn in TURNS:
            with open(checkpoints.plan.get(name=w.name, turn=turn).output[0]) as file:
                if not json.load(file)["points"]:
                    break
            found += marks(turn)
    return [mark.format(name=w.name) for mark in found]


# A part of a simulation, for a job of its own; its batches lie in .points, where the whole finds them.
rule shard:
    input:
        code=code("simulate"),
    output:
        f"{OUT}/{{name}}/shards/{{shard}}-of-{{of}}.json",
    log:
        f"{OUT}/logs/{{name}}/shard-{{shard}}-of-{{of}}.log",
    priority: 3
    threads: EACH
    resources:
        gpu=GPU,
        mem_mb=ask(MEGABYTES, "simulate"),
        runtime=ask(MINUTES, "simulate"),
    params:
        fidelity=FIDELITY,
        settings=settings("simulate"),
        output=f"{OUT}/{{name}}/simulation.nc",
    shell:
        "SIMS_HOST_DEVICES={threads} sims simulate {wildcards.name} --fidelity {params.fidelity} "
        "--output {params.output} --shard {wildcards.shard}/{wildcards.of} "
        "2> >(tee {log} >&2)"


# Where sampling goes on until claims are decided: a look at the turns before, and what it leaves to do.
checkpoint plan:
    input:
        shards=lambda w: [mark.format(name=w.name) for mark in marks(int(w.turn) - 1)],
        theory=f"{OUT}/{{name}}/theory.nc",
        code=code("judge"),
    output:
        f"{OUT}/{{name}}/shards/turn-{{turn}}/plan.json",
    log:
        f"{OUT}/logs/{{name}}/plan-{{turn}}.log",
    priority: 3
    resources:
        mem_mb=ask(MEGABYTES),
        runtime=ask(MINUTES),
    params:
        fidelity=FIDELITY,
        settings=settings("judge"),
        output=f"{OUT}/{{name}}/simulation.nc",
    shell:
        "SIMS_HOST_DEVICES=1 sims plan {wildcards.name} --fidelity {params.fidelity} "
        "--output {params.output} --turn {wildcards.turn} "
        "2> >(tee {log} >&2)"


rule shard_of_turn:
    input:
        plan=f"{OUT}/{{name}}/shards/turn-{{turn}}/plan.json",
    output:
        f"{OUT}/{{name}}/shards/turn-{{turn}}/{{shard}}-of-{{of}}.json",
    log:
        f"{OUT}/logs/{{name}}/shard-{{turn}}-{{shard}}-of-{{of}}.log",
    priority: 3
    threads: EACH
    resources:
        gpu=GPU,
        mem_mb=ask(MEGABYTES, "simulate"),
        runtime=ask(MINUTES, "simulate"),
    params:
        fidelity=FIDELITY,
        output=f"{OUT}/{{name}}/simulation.nc",
    shell:
        "SIMS_HOST_DEVICES={threads} sims simulate {wildcards.name} --fidelity {params.fidelity} "
        "--output {params.output} --shard {wildcards.shard}/{wildcards.of} --turn {wildcards.turn} "
        "2> >(tee {log} >&2)"


# What no shard has computed it computes itself.
rule simulate:
    input:
        code=code("simulate"),
        theory=lambda w: needs_theory(w.name, FIDELITY),
        shards=shards_of,
    output:
        f"{OUT}/{{name}}/simulation.nc",
    log:
        f"{OUT}/logs/{{name}}/simulate.log",
    priority: 2
    threads: EACH
    resources:
        gpu=GPU,
        mem_mb=ask(MEGABYTES, "simulate"),
        runtime=ask(MINUTES, "simulate"),
    params:
        fidelity=FIDELITY,
        settings=settings("simulate"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims simulate {wildcards.name} --fidelity {params.fidelity} --output {output} "
        "2> >(tee {log} >&2)"


rule predict:
    input:
        code=code("predict"),
    output:
        f"{OUT}/{{name}}/theory.nc",
    log:
        f"{OUT}/logs/{{name}}/predict.log",
    priority: 1
    threads: EACH
    resources:
        mem_mb=ask(MEGABYTES),
        runtime=ask(MINUTES, "predict"),
    params:
        fidelity=FIDELITY,
        settings=settings("predict"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims predict {wildcards.name} --fidelity {params.fidelity} --output {output} "
        "2> >(tee {log} >&2)"


rule judge:
    input:
        simulation=f"{OUT}/{{name}}/simulation.nc",
        theory=f"{OUT}/{{name}}/theory.nc",
        code=code("judge"),
    output:
        f"{OUT}/{{name}}/verdicts.json",
    log:
        f"{OUT}/logs/{{name}}/judge.log",
    resources:
        mem_mb=ask(MEGABYTES),
        runtime=ask(MINUTES),
    params:
        fidelity=FIDELITY,
        settings=settings("judge"),
    shell:
        "SIMS_HOST_DEVICES=1 sims judge {wildcards.name} --fidelity {params.fidelity} --output {output} "
        "2> >(tee {log} >&2)"


rule ledger:
    input:
        verdicts=expand(f"{OUT}/{{name}}/verdicts.json", name=NAMES),
        # Holm's family are all claims that the files make, judged or not.
        claims=[f"{HOME}/{name}/experiment.yaml" for name in NAMES],
        code=code("ledger"),
    output:
        f"{OUT}/ledger.json",
    log:
        f"{OUT}/logs/ledger.log",
    resources:
        mem_mb=ask(MEGABYTES),
        runtime=ask(MINUTES),
    params:
        fidelity=FIDELITY,
    shell:
        "sims ledger --fidelity {params.fidelity} --output {output} "
        "2> >(tee {log} >&2)"


rule plot:
    input:
        simulation=f"{OUT}/{{name}}/simulation.nc",
        theory=f"{OUT}/{{name}}/theory.nc",
        ledger=f"{OUT}/ledger.json",
        code=code("plot"),
    output:
        figure=f"{OUT}/{{name}}/figure.pdf",
        more=[
            f"{OUT}/{{name}}/figure.png",
            f"{OUT}/{{name}}/figure.svg",
            f"{OUT}/{{name}}/caption.md",
        ],
    log:
        f"{OUT}/logs/{{name}}/plot.log",
    resources:
        mem_mb=ask(MEGABYTES),
        runtime=ask(MINUTES),
    params:
        fidelity=FIDELITY,
        settings=settings("plot"),
    shell:
        "SIMS_HOST_DEVICES=1 sims plot {wildcards.name} --fidelity {params.fidelity} --output {output.figure} "
        "2> >(tee {log} >&2)"


rule report:
    input:
        ledger=f"{OUT}/ledger.json",
        figures=expand(f"{OUT}/{{name}}/figure.png", name=NAMES),
        captions=expand(f"{OUT}/{{name}}/caption.md", name=NAMES),
        files=[f"{HOME}/{name}/experiment.yaml" for name in NAMES],
        papers=sorted(map(str, place("papers").glob("*.yaml"))),
        theory=sorted(map(str, place("docs").glob("theory*/*.md"))) + THEORY,
        code=code("report"),
    output:
        f"{OUT}/report.html",
    log:
        f"{OUT}/logs/report.log",
    resources:
        mem_mb=ask(MEGABYTES),
        runtime=ask(MINUTES),
    params:
        fidelity=FIDELITY,
    shell:
        "sims report --fidelity {params.fidelity} --output {output} "
        "2> >(tee {log} >&2)"
