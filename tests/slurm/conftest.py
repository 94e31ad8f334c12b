"""A cluster for each test of this folder, where Slurm is installed and daemons may be run."""

import contextlib
import os
import subprocess

import pytest

from tests.cluster import Cluster, missing


@pytest.fixture
def cluster(tmp_path_factory):
    if reason := missing():
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(Cluster(tmp_path_factory.mktemp("cluster")))
        except (OSError, AssertionError) as error:
            if not os.environ.get("SLURM_OPTIONAL"):
                raise
            pytest.skip(f"Slurm does not start here: {str(error).splitlines()[0]}")
        yield cluster


@pytest.fixture
def begin(cluster):
    """``begin(folder, *command, **environment)``: a program on the cluster; killed at the end."""
    running = []

    def start(folder, *command, **environment):
        output = (folder / "output").open("ab")
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output,
            env=cluster.environment | {"PYTHONPATH": str(folder)} | environment,
        )  # fmt: skip
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
