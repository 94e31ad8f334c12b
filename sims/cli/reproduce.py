"""``sims reproduce``: the workflow, wherever the package is installed."""

import os
import sys
from argparse import Namespace

from sims.places import CARRIED
from sims.study.code import choose


def reproduce(options: Namespace) -> None:
    """Run Snakemake in this folder, in place of this process, with what came with the package.

    Raises:
        InputError: there is no such experiment, or its file cannot be read.
    """
    config = {"fidelity": options.fidelity}
    if options.experiment is not None:
        config["experiment"] = options.experiment
    choose(config)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(CARRIED / "Snakefile")]
    command += ["--config", *(f"{key}={value}" for key, value in config.items())]
    sys.stdout.flush()
    os.execv(sys.executable, command)
