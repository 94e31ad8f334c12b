"""Simulations that are killed, stopped, damaged or doubled, and come to the same numbers.

``make test-faults`` prints the table. A batch is *recomputed* if it was on the disk, whole, when
the fault happened, and was computed once more.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml

from sims.montecarlo import store
from tests.faults.test_damage import OFF_GRID

REPO = Path(__file__).parents[2]
SIMULATE = """
import time

import jax

from sims.montecarlo import HostBatches, HostReplicates, Replicates
from sims.study.units import SampledUnit


def noted(draw, kind):
    if draw.batch < 1000:  # not the pilot
        with open("computed", "a") as log:
            print(kind, draw.batch, file=log, flush=True)


def pilot(draw):
    return draw.rng().normal(size=2)


def one(draw, shared, batch):
    if draw.replicate == 0:
        time.sleep(0.05)
        noted(draw, "replicates")
    return {"x": draw.rng().normal(size=2) * shared}


def whole(draw, replicates, shared):
    time.sleep(0.05)
    noted(draw, "batches")
    return {"x": draw.rng().normal(size=(replicates, 2)).mean(0) * shared}


def drawn(draw):
    time.sleep(0.05)
    noted(draw, "jax")
    return draw.rng().normal(size=2)


def traced(key, shared, batch):
    return {"x": jax.random.normal(key, (2,)) + batch}


def units(experiment):
    shape = {"dims": {"x": "side"}}
    return {
        "replicates": SampledUnit(HostReplicates(one, prepare=pilot, **shape)),
        "batches": SampledUnit(HostBatches(whole, prepare=pilot, **shape)),
        "jax": SampledUnit(Replicates(traced, per_batch=drawn, **shape)),
    }
"""
UNITS, BATCHES = ("replicates", "batches", "jax"), 12
HOME = Path("results/smoke/slow")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """A folder with one slow experiment, and what it comes to when nothing happens."""
    folder = tmp_path_factory.mktemp("slow")
    own = folder / "experiments/slow"
    own.mkdir(parents=True)
    spec = OFF_GRID | {"simulation": {"replicates_per_batch": 4, "batches": BATCHES}}
    (own / "experiment.yaml").write_text(yaml.safe_dump(spec))
    (own / "simulate.py").write_text(SIMULATE)
    running = _begin(folder)
    assert running.wait(60) == 0, running.stderr.read()
    values = _values(folder)
    shutil.rmtree(folder / "results")
    (folder / "computed").unlink()
    return folder, values


def _begin(folder, *more, limit=None):
    """``sims simulate`` in the background, which keeps every batch as soon as it has it."""
    environment = os.environ | {
        "PYTHONPATH": str(REPO), "SIMS_CHECKPOINT_SECONDS": "0", "SIMS_HOST_DEVICES": "1",
    }  # fmt: skip

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "sims", "step", "simulate", "slow", "--fidelity", "smoke", *more]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True,
        preexec_fn=limited if limit else None,
    )  # fmt: skip


def _groups(folder):
    return sorted((folder / HOME / ".points").glob("*/[0-9]*.npz"))


def _until(running, folder, count):
    """Wait for so many batches on the disk, or for the end."""
    deadline = time.monotonic() + 60
    while running.poll() is None and len(_groups(folder)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _values(folder):
    with xr.open_dataset(folder / HOME / "simulation.nc", engine="h5netcdf") as data:
        return data.load()


def _on_disk(folder):
    """How many batches of all points are on the disk, whole."""
    finished = (folder / HOME / ".points").glob("*.npz")
    whole = [data.sizes["batch"] for p in finished if (data := store.load(p)) is not None]
    groups = [data.sizes["batch"] for p in _groups(folder) if (data := store.load(p)) is not None]
    return sum(whole) + sum(groups)


def _log(folder):
    return (folder / "computed").read_text().split("\n")[:-1]


def _sigkill(folder, rng):
    running = _begin(folder)
    _until(running, folder, rng.randrange(1, BATCHES))
    running.send_signal(signal.SIGKILL)
    running.wait(60)


def _sigterm(folder, rng):
    running = _begin(folder)
    _until(running, folder, rng.randrange(1, BATCHES))
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 75, said
    assert said.splitlines()[-1] == "sims step: stopped; the same command goes on"
    assert "Traceback" not in said


def _truncated(folder, rng):
    _sigkill(folder, rng)
    path = rng.choice(_groups(folder))
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def _flipped(folder, rng):
    _sigkill(folder, rng)
    path = rng.choice(_groups(folder))
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _full_disk(folder, rng):
    _sigkill(folder, rng)
    running = _begin(folder, limit=300)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 2, said
    assert len([x for x in said.splitlines() if not x.startswith("slow: ")]) == 1
    assert "got 'File too large'" in said


def _read_only(folder, rng):
    """With a real file system, or without rights; whoever may do neither has the full disk."""
    _sigkill(folder, rng)
    home = folder / "results"
    mount = [["mount", "--bind", home, home], ["mount", "-o", "remount,ro,bind", home]]
    if os.geteuid():
        mount = [["chmod", "-R", "a-w", home]]
    try:
        for command in mount:
            if subprocess.run(command, capture_output=True).returncode:
                return
        running = _begin(folder)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 2, said
        assert len([x for x in said.splitlines() if not x.startswith("slow: ")]) == 1
    finally:
        undo = ["chmod", "-R", "u+w", home] if os.geteuid() else ["umount", home]
        subprocess.run(undo, capture_output=True)


def _snakemake(folder, rng):
    """Snakemake and its step killed at once, as by a power cut."""
    text = (REPO / "Snakefile").read_text(encoding="utf-8")
    lines = [x if not x.startswith("shell.prefix") else 'shell.prefix("PATH=./bin:$PATH; ")'
             for x in text.splitlines()]  # fmt: skip
    (folder / "Snakefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/sims").write_text(f'#!/bin/sh\nexec {sys.executable} -m sims "$@"\n')
    (folder / "bin/sims").chmod(0o755)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--config", "fidelity=smoke",
               "--", str(HOME / "simulation.nc")]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(REPO), "SIMS_CHECKPOINT_SECONDS": "0"}
    with open(folder / "log", "w") as log:
        running = subprocess.Popen(
            command, cwd=folder, env=environment, stderr=log, start_new_session=True
        )
    _until(running, folder, rng.randrange(1, BATCHES))
    assert running.poll() is None, (folder / "log").read_text()
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _two_at_once(folder, rng):
    """The second ends first or last, and each leaves the other's batches alone."""
    first = _begin(folder)
    _until(first, folder, rng.randrange(1, BATCHES))
    second = _begin(folder, "--seed-offset", "1", "--output", str(folder / HOME / "simulation.nc"))
    time.sleep(rng.random())
    first.send_signal(signal.SIGKILL)
    first.wait(60)
    assert second.wait(60) == 0, second.stderr.read()


def _clock(folder, rng):
    """All that is on the disk is of tomorrow, or of a year ago."""
    _sigkill(folder, rng)
    when = time.time() + rng.choice([86400, -86400 * 365])
    for path in (folder / HOME / ".points").rglob("*"):
        os.utime(path, (when, when))


def _shards(folder, rng):
    """Three shards in random order, one killed, and another seed's run in the same folder."""
    for index in rng.sample(range(1, 4), 3):
        running = _begin(folder, "--shard", f"{index}/3")
        _until(running, folder, len(_groups(folder)) + rng.randrange(1, 4))
        running.send_signal(signal.SIGKILL)
        running.wait(60)
        if index != 2:  # the run itself computes what a shard did not
            assert _begin(folder, "--shard", f"{index}/3").wait(60) == 0


FAULTS = {
    "SIGKILL": _sigkill,
    "SIGKILL of Snakemake": _snakemake,
    "SIGTERM": _sigterm,
    "group truncated": _truncated,
    "bit of a group flipped": _flipped,
    "full disk": _full_disk,
    "read-only folder": _read_only,
    "two runs at once": _two_at_once,
    "clock jumps": _clock,
    "shards, killed": _shards,
}
FEW = ("SIGTERM",)


@pytest.mark.parametrize(
    "times", [1, pytest.param(3, marks=pytest.mark.faults)], ids=["few", "many"]
)
@pytest.mark.timeout(900)
def test_nothing_finished_is_lost(quiet, capsys, times):
    folder, values = quiet
    rows, rng = [], random.Random(18)
    for name, fault in FAULTS.items():
        if times == 1 and name not in FEW:
            continue
        survived, recomputed, difference = 0, 0, 0.0
        for _ in range(times):
            fault(folder, rng)
            kept = _on_disk(folder)
            before = len(_log(folder))
            last = _begin(folder)
            _, said = last.communicate(timeout=90)
            gap = [np.abs(_values(folder)[k] - values[k]).max() for k in values.data_vars]
            survived += last.returncode == 0 and float(max(gap)) <= 1e-12
            difference = max(difference, float(max(gap)))
            if name != "two runs at once":  # where the other's batches are on the disk, too
                recomputed += max(0, len(_log(folder)) - before - (3 * BATCHES - kept))
            shutil.rmtree(folder / "results")
            (folder / "computed").unlink()
            assert not re.search("Traceback", said)
        rows.append((name, times, survived, recomputed, difference))
    with capsys.disabled():
        head = ("tried", "survived", "recomputed", "difference")
        print(f"\n{'fault':24}", *(f"{h:>11}" for h in head))
        for name, *numbers in rows:
            print(f"{name:24}", *(f"{n:11.3g}" for n in numbers))
    assert [row[1:] for row in rows] == [(times, times, 0, 0.0)] * len(rows)
