"""The shipped profile on a real Slurm without accounting: what jobs get, and what ends them."""

import json
import os
import re
import signal
import sys

import pytest

from sims import files
from sims.study.workflow import results
from tests.pipeline import run

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]
RUN = (
    sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm",
    "--config", "fidelity=smoke", "--latency-wait", "5",
    "--slurm-init-seconds-before-status-checks", "1",
)  # fmt: skip


def _asked(cluster, job):
    """CPUs, GPUs, MB and minutes that a job asks for, and how often it was put back."""
    text = cluster.ask("scontrol", "show", "job", job)
    hours, minutes = re.search(r"TimeLimit=(\d+):(\d+):", text).groups()
    memory, unit = re.search(r"MinMemoryNode=([\d.]+)([MG])", text).groups()
    return {
        "cpus": int(re.search(r"NumCPUs=(\d+)", text)[1]),
        "gpus": "gpu" in text,
        "mb": float(memory) * (1024 if unit == "G" else 1),
        "minutes": 60 * int(hours) + int(minutes),
        "restarts": int(re.search(r"Restarts=(\d+)", text)[1]),
    }


def _contents(folder):
    return {
        str(path.relative_to(folder)): (
            files.read_json if path.suffix == ".json" else files.read
        )(path, of)
        for path, of in results(folder / "results/smoke")
    }  # fmt: skip


def test_jobs_get_what_they_ask_for_and_outlive_what_ends_them(copy, cluster, begin):
    """Cancelled, killed, preempted, node and controller restarted: the run goes on to its end."""
    asked = ("--set-resources", "simulate:gpu=1", "simulate:cpus_per_task=2")
    whole = begin(copy, *RUN, *asked, WAIT="simulate")
    begun = copy / "begun"

    def next_job():
        def until():
            assert whole.poll() is None, (copy / "output").read_text()[-3000:]
            return begun.exists()

        cluster.wait(until, "the simulation to begin", 120)
        seen = json.loads(begun.read_text())
        begun.unlink()
        return seen, seen["SLURM_JOB_ID"], _asked(cluster, seen["SLURM_JOB_ID"])

    seen, first, job = next_job()
    assert job == {"cpus": 2, "gpus": True, "mb": 4000, "minutes": 20, "restarts": 0}
    assert seen["SIMS_HOST_DEVICES"] == "2"  # a simulation at smoke has 1, its node 8
    assert seen["CUDA_VISIBLE_DEVICES"] in ("0", "1")

    cluster.ask("scancel", first)
    seen, second, job = next_job()
    assert second != first
    assert (job["mb"], job["minutes"]) == (8000, 40)

    os.kill(seen["PID"], signal.SIGKILL)
    seen, third, job = next_job()
    assert third not in (first, second)
    assert (job["mb"], job["minutes"]) == (16000, 80)

    cluster.ask("sbatch", "-p", "high", "-c", "8", "-o", "/dev/null", "--wrap", "sleep 1")
    _, fourth, job = next_job()
    assert (fourth, job["restarts"]) == (third, 1)
    assert (job["mb"], job["minutes"]) == (16000, 80)

    for name in ("slurmd", "slurmctld"):
        cluster.stop(name, signal.SIGKILL)
    cluster.start("slurmctld")
    cluster.start("slurmd")
    (copy / "go").touch()
    assert whole.wait(200) == 0, (copy / "output").read_text()[-3000:]
    on_cluster = _contents(copy)
    done = run(copy, "-m", "snakemake", "--config", "fidelity=smoke", "--cores", "2", "--forceall")
    assert done.returncode == 0, done.stderr
    assert _contents(copy) == on_cluster
    assert len(on_cluster) == 10
