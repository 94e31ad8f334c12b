"""``sims sweep --shards N``: the parts of a sweep and its end, as a run of Snakemake."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from typer import Exit

from sims.base.errors import InputError
from sims.base.places import CARRIED
from sims.base.runtime import host_devices

PLACES = "-[cje]|--(cores|jobs|executor|profile|workflow-profile)"
"""Options of snakemake that say where parts run."""
PATIENCE = 10
"""Seconds after which parts are told again to end: one may have begun meanwhile."""


def run_sharded(
    sweep: Sequence[str], output: Path, shards: int, source_digest: str, options: Sequence[str]
) -> None:
    """Compute the parts of a sweep and write its file, here or where Snakemake's options send them.

    Args:
        sweep: file of the sweep, and the options of ``sims sweep`` that its parts share.
        output: output path, ending in ``.nc``.
        shards: number of parts.
        source_digest: digest of all that determines the numbers; parts with another are recomputed.
        options: Snakemake's options, such as ``--workflow-profile slurm``; if empty, the parts run
            on this machine's cores.

    Raises:
        InputError: Snakemake cannot name a path or knows no such option, or a part failed.
        typer.Exit: a part refused its input and printed why.
    """
    if not re.fullmatch(r"[\w ./+-]+", str(output)):
        raise InputError("--output", str(output), "letters, digits, spaces and ./+-_")
    for path in (sweep[0], str(Path.cwd())):
        if re.search("[{}]", path):
            allowed = "paths without { and }, which are wildcards of snakemake"
            raise InputError("--shards", path, allowed)
    part = ["sims", "sweep", *sweep, "--output", str(output)]
    configuration = json.dumps({"command": part, "shards": shards, "made": source_digest})
    if "slurm" in " ".join(options) and find_spec("snakemake_executor_plugin_slurm") is None:
        allowed = "an installed executor; this is the extra: pip install 'nw-attention-sims[slurm]'"
        raise InputError("--shards", "slurm", allowed)
    check_options(options)
    local_options = ["--resources", "gpu=1", "--keep-going", "--quiet", "host", "rules", "progress"]
    # A profile is code: none is read, of this folder or of the environment, that is not asked for.
    settled = ["--workflow-profile", "none"]
    if not any(map(re.compile(PLACES).match, options)):
        settled += ["--cores", str(host_devices())]
    # A file of other numbers may be there, which Snakemake would take for this one: force it.
    command = [sys.executable, "-P", "-m", "snakemake", "--snakefile", str(CARRIED / "sweep.smk")]
    command += settled
    command += ["--forcerun", "gather", "--rerun-incomplete", *(options or local_options)]
    surroundings = os.environ | {"SIMS_SWEEP": configuration}
    surroundings.pop("SNAKEMAKE_PROFILE", None)
    run = subprocess.Popen(command, env=surroundings, start_new_session=True)
    try:
        code = run.wait()
    except BaseException:
        _end(run)
        raise
    if code:
        if code == 2:  # the part has printed why
            raise Exit(2)
        allowed = (
            "a run without failures: repeat the command to resume; with `-- --cores 1` "
            "snakemake prints more"
        )
        raise InputError("--shards", f"exit code {code} of snakemake", allowed)


def _end(run: subprocess.Popen[bytes]) -> None:
    """Have parts on this machine save what they have; Snakemake then cancels those elsewhere."""
    os.killpg(run.pid, signal.SIGTERM)
    run.send_signal(signal.SIGINT)
    while True:
        try:
            run.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGTERM)
        else:
            return


def check_options(options: Sequence[str]) -> None:
    """Raise InputError for options of which Snakemake would print a hundred lines of usage."""
    from snakemake.cli import get_argument_parser

    def refuse(reason: str) -> None:
        raise ValueError(reason)

    parser = get_argument_parser()
    parser.error = refuse
    try:
        parser.parse_args([*options])
    except Exception as error:  # of the parser, and of its readers of values
        raise InputError("options of snakemake, after --", str(error)) from None
