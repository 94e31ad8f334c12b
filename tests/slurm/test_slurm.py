"""The shipped profile on a real Slurm without accounting: what jobs get, and what ends them."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys

import pytest
import xarray as xr

from tests.pipeline import ROOT
from tests.slurm.cluster import Cluster, missing

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
PROFILE = ("--workflow-profile", str(ROOT / "profiles/slurm"), "--latency-wait", "5")
PROFILE += ("--slurm-init-seconds-before-status-checks", "1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def test_a_step_gets_what_it_asks_for(cluster, copy):
    """One device, and after it was cancelled twice the time and memory."""
    wanted = ("--set-resources", "simulate:gpu=1", "simulate:cpus_per_task=2")
    command = (sys.executable, "-m", "snakemake", *PROFILE, "--config", "fidelity=smoke", *wanted)
    command += ("--until", "simulate")
    more = {"WAIT": "simulate", "PYTHONPATH": str(ROOT)}
    run = cluster.begin(*command, cwd=copy, more=more, stderr=subprocess.PIPE)
    for memory, limit in (("4000M", "00:20:00"), ("8000M", "00:40:00")):
        cluster.wait((copy / "begun").exists, "a simulation", 120)
        seen = json.loads((copy / "begun").read_text())
        (copy / "begun").unlink()
        job = cluster.ask("scontrol", "show", "job", seen["SLURM_JOB_ID"])
        found = dict(re.findall(r"(\w+)=(\S+)", job))
        assert (found["MinMemoryNode"], found["TimeLimit"]) == (memory, limit)
        assert found["JobName"].startswith("small_")
        assert found["Comment"] == "rule_simulate_wildcards_small"
        assert (found["NumCPUs"], seen["SIMS_HOST_DEVICES"]) == ("2", "2")  # its node has 8
        assert seen["CUDA_VISIBLE_DEVICES"] in ("0", "1")
        names = ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE", "PYTHONSAFEPATH")
        assert [seen[name] for name in names] == ["cuda", "false", "1"]
        if memory == "4000M":
            cluster.ask("scancel", seen["SLURM_JOB_ID"])
    (copy / "go").touch()
    said = run.communicate(timeout=120)[1].decode()
    assert run.returncode == 0
    assert "sacct:" not in said
    assert (copy / "results/smoke/small/simulation.nc").read_text() == "simulate"


SWEEP = """
problem:
  dimension: 2
  design: {kind: isotropic}
  target: {kind: matern, nu: 1.5, lengthscale: 2.0, features: 4}
  heads: {count: 2, width: 1, frames: {kind: haar}, kernel: gaussian, bandwidth: 1}
  n: 64
  noise_sd: 0.5
  queries: {kind: gaussian, count: 2, scale: 0.5}
simulation: {batches: 2, replicates_per_batch: 4}
sweep: {grid: {heads.bandwidth: {low: 0.4, high: 1.6, points: 1000}}}
"""


def test_a_sweep_of_a_thousand_points_outlives_what_ends_its_jobs(cluster, tmp_path):
    """One job is killed, one preempted, one has no memory left: the numbers are the same."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    command = ("sims", "sweep", "sweep.yaml", "--output")
    options = (*PROFILE, "--set-threads", "shard=1")
    run = cluster.begin(*command, "parts.nc", "--shards", "8", "--", *options, cwd=tmp_path)

    def stopped(number):
        """The process of a part, which waits as soon as it is there."""
        words = ("pgrep", "-nf", f"bin/sims sweep.*--shard {number}/8")
        cluster.wait(lambda: cluster.ask(*words), f"part {number}", 120)
        os.kill(process := int(cluster.ask(*words)), signal.SIGSTOP)
        return process

    def preempted():
        jobs = cluster.ask("scontrol", "--oneliner", "show", "job")
        return re.findall(r"Restarts=1 .* Comment=rule_shard_wildcards_parts_(\d)_8", jobs)

    parts = {number: stopped(number) for number in range(1, 9)}
    cluster.ask("sbatch", "-p", "high", "--mem", "100", "-o", "/dev/null", "--wrap", "true")
    cluster.wait(preempted, "a preempted job")
    del parts[int(preempted()[0])]
    killed, starved, *_ = parts.values()
    os.kill(killed, signal.SIGKILL)
    resource.prlimit(starved, resource.RLIMIT_AS, (1, 1))
    for process in parts.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
    assert run.wait(240) == 0
    jobs = cluster.ask("squeue", "--states", "all", "-o", "%k %m %l")
    assert len(re.findall("_parts_._8 16000M 4:00:00", jobs)) == 2
    subprocess.run((*command, "whole.nc"), cwd=tmp_path, env=cluster.environment, check=True)
    parts, whole = (xr.load_dataset(tmp_path / f"{name}.nc") for name in ("parts", "whole"))
    xr.testing.assert_equal(parts, whole)
    assert not (tmp_path / "parts.shards").exists()
