# What jobs have in common, of the Snakefile and of sweep.smk.
import os
import re
import sys
from pathlib import Path
from shlex import quote

from snakemake.logging import logger

from sims.base.errors import InputError
from sims.study.code import check_dates, lock_results


def checked(function, argument):
    try:
        return function(argument)
    except InputError as error:
        print(f"snakemake: {error}", file=sys.stderr)
        sys.exit(2)


def take(results, files, name):
    """Hold results that are made of these files, if this is a run: no dry one, nor a job of one.

    Names of its Slurm jobs begin with the name that is given; their comments are rule, experiment or sweep, and part.
    """
    running = workflow.executor_plugin and workflow.is_main_process
    if running and not workflow.dryrun and not workflow.touch:
        checked(check_dates, files)
        checked(lock_results, results)
        if getattr(workflow.executor_settings, "jobname_prefix", None) == "":
            name = re.sub(r"[^\w-]", "-", name, flags=re.ASCII)[:50]
            workflow.executor_settings.jobname_prefix = name


def doubled(**sizes):
    """Resources that double at every attempt: a job that ran out of one goes on from what it saved."""
    return {k: lambda w, attempt, n=n: n << attempt - 1 for k, n in sizes.items()}


def is_said(record):
    """In a job its step's own words and what failed; in a run all but that it was not told an account."""
    if workflow.remote_exec or workflow.output_settings.quiet:
        return record.levelname == "ERROR" and not hasattr(record, "event")
    return "SLURM account" not in str(record.msg)


logger.addFilter(is_said)
PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
os.environ.update(PATH=PATH, PYTHONSAFEPATH="1")
# A job that is preempted has saved what it has when its trap is reached. It waits for Slurm to put it in the queue again:
# if it left by itself, Slurm would call it failed.
TRAP = "sleep 600" if workflow.remote_exec else ":"
# Into a log and on, to the last line of a step that is told to stop.
NOTE = "note() {{ trap '' TERM; tee \"$1\" >&2; }}; "
shell.prefix(f"trap {quote(TRAP)} TERM; {NOTE}")
# A job with an NVIDIA GPU computes there, or fails; it takes memory as it needs it.
if workflow.remote_exec and re.match(
    "[0-9]|GPU|MIG", os.environ.get("CUDA_VISIBLE_DEVICES", "")
):
    os.environ.setdefault("JAX_PLATFORMS", "cuda")
    os.environ.update(XLA_PYTHON_CLIENT_PREALLOCATE="false")
