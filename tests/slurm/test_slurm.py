"""The shipped profile on a real Slurm without accounting: what jobs get, and what ends them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
import yaml

from sims import files
from sims.study.workflow import results
from tests.faults import test_killed as slow
from tests.faults.test_damage import OFF_GRID
from tests.pipeline import ROOT, run

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]
RUN = (
    sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm",
    "--latency-wait", "5", "--slurm-init-seconds-before-status-checks", "1",
)  # fmt: skip
SMOKE = ("--config", "fidelity=smoke")
SWEEP = """
problem:
  dimension: 8
  design: {kind: isotropic}
  target: {kind: matern, nu: 1.5, lengthscale: 4.0}
  noise_sd: 0.5
  heads:
    count: 2
    width: 2
    frames: {kind: equiangular, angle: 60}
    kernel: gaussian
    bandwidth: 0.7
  n: 256
  queries: {kind: gaussian, count: 4, scale: 0.5}
simulation: {batches: 8, replicates_per_batch: 8}
sweep: {grid: {heads.bandwidth: [0.5, 0.7, 1.0]}}
"""


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
    asked = ("--set-resources", "simulate:gpu=1", "simulate:cpus_per_task=2", "--retries", "2")
    goal = "results/smoke/angles/verdicts.json"
    whole = begin(copy, *RUN, *asked, goal, *SMOKE, WAIT="simulate")
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

    # What jobs did in its last five seconds a killed controller may not have written down.
    time.sleep(8)
    for name in ("slurmd", "slurmctld"):
        cluster.stop(name, signal.SIGKILL)
    time.sleep(20)  # so that a look at the state of the jobs falls into the outage
    cluster.start("slurmctld")
    cluster.start("slurmd")
    (copy / "go").touch()
    assert whole.wait(300) == 0, (copy / "output").read_text()[-3000:]
    on_cluster = _contents(copy)
    done = run(copy, "-m", "snakemake", "--cores", "2", "--forceall", goal, *SMOKE)
    assert done.returncode == 0, done.stderr
    assert _contents(copy) == on_cluster
    assert len(on_cluster) == 3


@pytest.mark.slow
def test_preempted_shards_go_on_from_their_last_batch(tmp_path, cluster, begin):
    """The numbers of a run without shards or Slurm, and no batch that was saved is made again."""
    for name, pause in (("here", 0.0), ("there", 0.5)):
        own = tmp_path / name / "experiments/slow"
        own.mkdir(parents=True)
        sizes = {"replicates_per_batch": 4, "batches": slow.BATCHES}
        (own / "experiment.yaml").write_text(yaml.safe_dump(OFF_GRID | {"simulation": sizes}))
        text = slow.SIMULATE.replace("time.sleep(0.05)", f"time.sleep({pause})")
        (own / "simulate.py").write_text(text)
    here, there = tmp_path / "here", tmp_path / "there"
    alone = [sys.executable, "-m", "sims", "step", "simulate", "slow", "--fidelity", "smoke"]
    subprocess.run(alone, cwd=here, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})

    shutil.copy(ROOT / "Snakefile", there)
    shutil.copytree(ROOT / "profiles", there / "profiles")
    goal = str(slow.HOME / "simulation.nc")
    running = begin(
        there, *RUN, goal, *SMOKE, "shards=2", PYTHONPATH=str(ROOT), SIMS_CHECKPOINT_SECONDS="0"
    )
    cluster.wait(lambda: len(slow._groups(there)) >= 3, "three batches", 120)
    urgent = cluster.ask(
        "sbatch", "--parsable", "-p", "high", "-c", "8", "-o", "/dev/null", "--wrap", "sleep 2"
    )
    cluster.wait(lambda: cluster.jobs() == [urgent], "the shards to make way")
    kept, done = slow._on_disk(there), len(slow._log(there))
    assert 3 <= kept < 3 * slow.BATCHES
    assert running.wait(240) == 0, (there / "output").read_text()[-3000:]
    assert len(slow._log(there)) - done == 3 * slow.BATCHES - kept
    expected, found = slow._values(here), slow._values(there)
    for name in expected.data_vars:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_sweep_is_an_array_and_a_job_that_gathers_it(tmp_path, cluster, begin):
    """The numbers of a sweep in one process, shard by shard."""
    (tmp_path / "mine.yaml").write_text(SWEEP)
    sweep = [sys.executable, "-m", "sims", "sweep", "mine.yaml", "--output", "alone.nc"]
    subprocess.run(sweep, cwd=tmp_path, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    script = (str(ROOT / "profiles/slurm/sweep.sh"), "mine.yaml", "2", "--cpus-per-task", "1")
    assert begin(tmp_path, *script, PYTHONPATH=str(ROOT)).wait(30) == 0
    cluster.wait(lambda: not cluster.jobs("pending,running"), "the end of the sweep", 240)
    said = "".join(p.read_text() for p in tmp_path.glob(".snakemake/slurm_logs/*.log"))
    whole = tmp_path / "results/sweeps/mine.nc"
    assert whole.exists(), said
    with xr.open_dataset(whole) as found, xr.open_dataset(tmp_path / "alone.nc") as expected:
        assert set(found.data_vars) == set(expected.data_vars)
        for name in expected.data_vars:
            if expected[name].dtype.kind == "f":
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)
