"""The shipped profile on a real Slurm without accounting: what jobs get, and what ends them."""

import json
import os
import re
import signal
import sys

import pytest

from tests.pipeline import ROOT, run
from tests.slurm.cluster import Cluster, missing

GOAL = "results/smoke/rates/verdicts.json"
RUN = (
    sys.executable,
    "-m",
    "snakemake",
    "--workflow-profile",
    "profiles/slurm",
    "--latency-wait",
    "5",
    "--slurm-init-seconds-before-status-checks",
    "1",
    "--retries",
    "2",
    "--set-resources",
    "simulate:gpu=1",
    "simulate:cpus_per_task=2",
    "--",
    GOAL,
)


@pytest.mark.slurm
@pytest.mark.timeout(600)
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_jobs_get_what_they_ask_for_and_outlive_what_ends_them(copy, tmp_path_factory):
    """Cancelled, killed, preempted: the run goes on to its end."""
    begun = copy / "begun"
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        more = {"WAIT": "simulate", "PYTHONPATH": str(ROOT)}
        command = [*RUN[:-2], "--config", "fidelity=smoke", *RUN[-2:]]
        whole = cluster.begin(*command, cwd=copy, more=more)

        def next_job():
            cluster.wait(lambda: begun.exists() or whole.poll() is not None, "a simulation", 120)
            assert whole.poll() is None
            seen = json.loads(begun.read_text())
            begun.unlink()
            text = cluster.ask("scontrol", "show", "job", seen["SLURM_JOB_ID"])
            words = ("NumCPUs", "MinMemoryNode", "TimeLimit", "Restarts")
            return seen, [re.search(rf"{word}=([\w:.]+)", text)[1] for word in words]

        seen, asked = next_job()
        assert asked == ["2", "4000M", "00:20:00", "0"]
        assert seen["SIMS_HOST_DEVICES"] == "2"  # its node has 8
        assert seen["CUDA_VISIBLE_DEVICES"] in ("0", "1")
        cluster.ask("scancel", seen["SLURM_JOB_ID"])
        seen, asked = next_job()
        assert asked[1:] == ["8000M", "00:40:00", "0"]
        os.kill(seen["PID"], signal.SIGKILL)
        seen, asked = next_job()
        assert asked[1:] == ["16000M", "01:20:00", "0"]
        cluster.ask("sbatch", "-p", "high", "-c", "8", "-o", "/dev/null", "--wrap", "sleep 1")
        again, asked = next_job()
        assert (again["SLURM_JOB_ID"], asked[3]) == (seen["SLURM_JOB_ID"], "1")
        (copy / "go").touch()
        assert whole.wait(300) == 0
    assert (copy / GOAL).read_text() == "judge"
    assert (
        "Nothing to be done"
        in run(copy, *RUN[1:3], "-c", "1", GOAL, "--config", "fidelity=smoke").stderr
    )
