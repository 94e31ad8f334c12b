# One rule a step, each a `sims step`: snakemake --config fidelity=smoke|standard|paper experiment=NAME shards=N
# A step runs again when its inputs change, or (params) its code or its part of experiment.yaml.
import os
import sys
from functools import cache
from pathlib import Path

# Snakemake puts this folder first; no file here is to stand for a module.
sys.path.append(sys.path.pop(0))

from snakemake_interface_logger_plugins.common import LogEvent

from sims.base.places import place
from sims.study.choosing import choose
from sims.study.code import FORMATS, accelerated, digest
from sims.study.declaration import EXPERIMENTS, FIDELITIES, Declaration
from sims.study.timing import expected, in_minutes


include: "jobs.smk"


FIDELITY, NAMES, SHARDS = checked(choose, config)
HOME = place(EXPERIMENTS)
OUT = f"results/{FIDELITY}"
ANSWERS = f"{OUT}/answers.json"
DECLARED = {name: Declaration.read(HOME / name) for name in NAMES}
# Of several experiments some run side by side, since each compiles on a single core; a smoke run mostly starts up.
CORES = workflow.resource_settings.cores  # None on a cluster
ALONE = len(NAMES) == 1
EACH = (
    1 if FIDELITY == "smoke" else CORES if CORES and ALONE else (CORES or 16) // 4 or 1
)
if workflow.remote_exec:
    # A job of a cluster: what it was allotted, not what its node has.
    EACH = int(os.environ.get("SLURM_CPUS_PER_TASK", EACH))
FILES = [HOME / name / "experiment.yaml" for name in NAMES]
PAPERS = sorted(place("papers").glob("*.yaml"))
FIGURE = [f"figure.{kind}" for kind in FORMATS[FIDELITY]]
GPU = int(accelerated() and FIDELITY != "smoke")
# The longest experiments begin first, so that all cores are busy to the end.
FIRST = "training house allocation unification rates temperature hidden_scores".split()
urgency = lambda w: len(FIRST) + 1 - [*FIRST, w.name].index(w.name)


@cache
def prepare():  # before any file is looked for
    made = [*Path(OUT).glob("*"), *Path(OUT).glob("*/*")]
    take(OUT, FILES + PAPERS + made, NAMES[0] if ALONE else FIDELITY)


def code(step):
    """What a step depends on beside its input files, with what a run of it imported unforeseen."""
    return lambda w: (
        digest(step, DECLARED[w.name], FIDELITY, Path(OUT, w.name))
        if "name" in w.keys()
        else digest(step)
    )


def ask(minutes, megabytes=(4000, 8000, 16000), **more):
    """What a cluster is asked for at smoke, standard, paper; doubled at every attempt."""
    place = FIDELITIES.index(FIDELITY)
    return more | doubled(runtime=minutes[place], mem_mb=megabytes[place])


# Questions and figure on two problems, before a long run.
REHEARSE = (
    ""
    if FIDELITY == "smoke"
    else "SIMS_HOST_DEVICES={threads} sims step rehearse {wildcards.name} --fidelity {params.fidelity} "
    "2> >(note {log:q}) && "
)
SMALL = ask((20, 40, 120))
LARGE = ask((20, 120, 1440), (4000, 8000, 32000), gpu=GPU)


wildcard_constraints:
    name=r"\w+",
    shard=r"[1-9]\d*",
    of=r"[1-9]\d*",


def everything(w):
    """All results, since a file in the middle is not missed while what was made of it is there."""
    prepare()
    each = [
        "simulation.nc",
        "theory.nc",
        "answers.json",
        "effects.nc",
        "panels.nc",
        "caption.md",
        *FIGURE,
    ]
    return [
        ANSWERS,
        f"{OUT}/report.html",
        *expand(f"{OUT}/{{name}}/{{file}}", name=NAMES, file=each),
    ]


rule all:
    input:
        everything,


def say_time(words):
    """The time of what has not run yet; unknown of a cluster."""
    jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name != "all"]
    if CORES and jobs:
        named = [(job.wildcards_dict.get("name", ""), job.rule.name) for job in jobs]
        time = in_minutes(expected(FIDELITY, named) / CORES)
        print(f"{FIDELITY}: {time} {words}", file=sys.stderr, flush=True)


def say_time_left(record):
    if getattr(record, "event", None) == LogEvent.PROGRESS:
        say_time("left")
    return True


logger.addFilter(say_time_left)


onstart:
    say_time("on this machine")


# A part of the points of a simulation, for a job of its own; they lie in .points, where the whole finds them.
rule shard:
    output:
        f"{OUT}/{{name}}/shards/{{shard}}-of-{{of}}.json",
    log:
        f"{OUT}/logs/{{name}}/shard-{{shard}}-of-{{of}}.log",
    priority: urgency
    threads: EACH
    resources:
        **LARGE,
    params:
        fidelity=FIDELITY,
        code=code("simulate"),
        whole=f"{OUT}/{{name}}/simulation.nc",
    shell:
        REHEARSE
        + "SIMS_HOST_DEVICES={threads} sims step simulate {wildcards.name} --output {params.whole} "
        "--part {wildcards.shard}/{wildcards.of} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


# What no shard has computed it computes itself.
rule simulate:
    input:
        shards=expand(
            f"{OUT}/{{{{name}}}}/shards/{{i}}-of-{SHARDS}.json", i=range(1, SHARDS + 1)
        ),
    output:
        f"{OUT}/{{name}}/simulation.nc",
    log:
        f"{OUT}/logs/{{name}}/simulate.log",
    priority: urgency
    threads: EACH
    resources:
        **LARGE,
    params:
        fidelity=FIDELITY,
        code=code("simulate"),
    shell:
        REHEARSE
        + "SIMS_HOST_DEVICES={threads} sims step simulate {wildcards.name} --output {output} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


rule predict:
    output:
        f"{OUT}/{{name}}/theory.nc",
    log:
        f"{OUT}/logs/{{name}}/predict.log",
    priority: urgency
    threads: EACH
    resources:
        **ask((20, 60, 480)),
    params:
        fidelity=FIDELITY,
        code=code("predict"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims step predict {wildcards.name} --output {output} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


# All that is judged and shown: words and looks are made of these files alone.
rule tabulate:
    input:
        simulation=f"{OUT}/{{name}}/simulation.nc",
        theory=f"{OUT}/{{name}}/theory.nc",
    output:
        table=f"{OUT}/{{name}}/effects.nc",
        panels=f"{OUT}/{{name}}/panels.nc",
    log:
        f"{OUT}/logs/{{name}}/tabulate.log",
    resources:
        **SMALL,
    params:
        fidelity=FIDELITY,
        code=code("tabulate"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims step tabulate {wildcards.name} --output {output.table} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


rule judge:
    input:
        table=f"{OUT}/{{name}}/effects.nc",
    output:
        answers=f"{OUT}/{{name}}/answers.json",
    log:
        f"{OUT}/logs/{{name}}/judge.log",
    resources:
        **SMALL,
    params:
        fidelity=FIDELITY,
        code=code("judge"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims step judge {wildcards.name} --output {output.answers} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


rule ledger:
    input:
        answers=expand(f"{OUT}/{{name}}/answers.json", name=NAMES),
        # Holm's family are all questions of the files that say always, answered or not.
        questions=FILES,
        papers=PAPERS,
    output:
        json=ANSWERS,
        page=f"{OUT}/answers.md",
    log:
        f"{OUT}/logs/ledger.log",
    resources:
        **SMALL,
    params:
        fidelity=FIDELITY,
        code=code("ledger"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims step ledger --output {output.json} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


rule plot:
    input:
        table=f"{OUT}/{{name}}/effects.nc",
        panels=f"{OUT}/{{name}}/panels.nc",
        answers=ANSWERS,
    output:
        caption=f"{OUT}/{{name}}/caption.md",
        figure=multiext(f"{OUT}/{{name}}/", *FIGURE),
    log:
        f"{OUT}/logs/{{name}}/plot.log",
    resources:
        **SMALL,
    params:
        fidelity=FIDELITY,
        code=code("plot"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims step plot {wildcards.name} --output {output.figure[0]} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"


rule report:
    input:
        answers=ANSWERS,
        figures=expand(f"{OUT}/{{name}}/figure.png", name=NAMES),
        captions=expand(f"{OUT}/{{name}}/caption.md", name=NAMES),
        files=FILES,
        papers=PAPERS,
    output:
        f"{OUT}/report.html",
    log:
        f"{OUT}/logs/report.log",
    resources:
        **SMALL,
    params:
        fidelity=FIDELITY,
        code=code("report"),
    shell:
        "SIMS_HOST_DEVICES={threads} sims step report --output {output} "
        "--fidelity {params.fidelity} 2> >(note {log:q})"
