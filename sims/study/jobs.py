"""What the jobs of a run have in common: the Snakefile and sweep.smk set themselves up here."""

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from sims.errors import InputError
from sims.study.code import check_dates, hold

NOTE = "note() {{ trap '' TERM; tee \"$1\" >&2; }}; "
"""A function of the shell: into a log and on, to the last line of a step that is told to stop."""
Argument = TypeVar("Argument")
Out = TypeVar("Out")


def checked(function: Callable[[Argument], Out], argument: Argument) -> Out:
    """What a function returns; its refusal ends Snakemake, in one line, with exit code 2."""
    try:
        return function(argument)
    except InputError as error:
        print(f"snakemake: {error}", file=sys.stderr)
        sys.exit(2)


def doubled(**sizes: int) -> dict[str, Callable[..., int]]:
    """Resources of a rule that double at every attempt.

    A job that ran out of one goes on from what it saved.
    """
    return {k: lambda wildcards, attempt, n=n: n << attempt - 1 for k, n in sizes.items()}


def settle(workflow: Any) -> None:
    """Set up the shells and the log of Snakemake, in a run and in each of its jobs on a cluster.

    - Steps find ``sims``.
    - A job with an NVIDIA GPU computes there, or fails; it takes memory as it needs it.
    - A job that is preempted has saved what it has when its trap is reached. It waits for Slurm to
      put it in the queue again: if it left by itself, Slurm would call it failed.
    - The log of a job has what its step says, and errors. A run does not complain that it found no
      account, which most sites need not be told.
    """
    from snakemake.logging import logger
    from snakemake.shell import shell

    environment = os.environ
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    shell.prefix(f"trap {quote('sleep 600' if workflow.remote_exec else ':')} TERM; {NOTE}")
    if workflow.remote_exec or workflow.output_settings.quiet:
        logger.addFilter(lambda r: r.levelname == "ERROR" and not hasattr(r, "event"))
    else:
        logger.addFilter(lambda r: "SLURM account" not in str(r.msg))
    if not workflow.remote_exec:
        return
    if re.match("[0-9]|GPU|MIG", environment.get("CUDA_VISIBLE_DEVICES", "")):
        environment.setdefault("JAX_PLATFORMS", "cuda")
        environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"


def take(workflow: Any, results: str, files: Iterable[Path]) -> None:
    """Hold results that are made of these files, if this is a run: no dry one, nor a job of one."""
    running = workflow.executor_plugin and workflow.is_main_process
    if running and not workflow.dryrun and not workflow.touch:
        checked(check_dates, files)
        checked(hold, results)
