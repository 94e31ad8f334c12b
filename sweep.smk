# A sweep in parts, as `sims sweep FILE --shards N [-- OPTIONS OF snakemake]` runs it (sims/cli/sharded.py).
import json
import os
from pathlib import Path
from shlex import join

from sims.study.code import accelerated


include: "jobs.smk"


envvars:
    "SIMS_SWEEP",


SWEEP = json.loads(os.environ["SIMS_SWEEP"])
WHOLE, SHARDS = Path(SWEEP["command"][-1]).with_suffix(""), SWEEP["shards"]
# Of this machine's cores each part has its share; on a cluster, what its job was allotted.
CORES = workflow.resource_settings.cores
EACH = max(1, CORES // SHARDS) if CORES else 4
if workflow.remote_exec:
    EACH = int(os.environ.get("SLURM_CPUS_PER_TASK", EACH))


localrules:
    gather,


wildcard_constraints:
    name=r"[^/]+",
    shard=r"[1-9]\d*",
    of=r"[1-9]\d*",


def parts(w):
    made = WHOLE.parent.glob(f"{WHOLE.name}.shards/*.done")
    take(f"{WHOLE}.shards", [Path(SWEEP["command"][2]), *made], WHOLE.name)
    ending = f"of-{SHARDS}-{SWEEP['made']}.done"
    return [f"{WHOLE}.shards/{i}-{ending}" for i in range(1, SHARDS + 1)]


def command(w):
    """By a function, since braces in a text would be wildcards."""
    return join(SWEEP["command"])


# What no part has computed it computes itself.
rule gather:
    input:
        parts,
    output:
        multiext(str(WHOLE), ".nc", ".png"),
    params:
        command=command,
        made=SWEEP["made"],
    shell:
        "{params.command}"


# A part is kept group by group beside its mark. Its wildcards, and so its job's comment and log on a cluster, are the sweep and the part.
rule shard:
    input:
        SWEEP["command"][2],
    output:
        touch(
            str(WHOLE.parent / "{name}.shards/{shard}-of-{of}-")
            + SWEEP["made"]
            + ".done"
        ),
    log:
        WHOLE.parent / "{name}.shards/{shard}-of-{of}.log",
    threads: EACH
    resources:
        **doubled(runtime=120, mem_mb=8000),
        gpu=int(accelerated()),
    params:
        command=command,
        made=SWEEP["made"],
    shell:
        "SIMS_HOST_DEVICES={threads} {params.command} --shard {wildcards.shard}/{wildcards.of} "
        "2> >(note {log:q})"
