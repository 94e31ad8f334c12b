"""Snakemake sees what is missing or damaged, goes on after a killed run, and runs alone."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from sims.study.workflow import results
from tests.pipeline import run

RUN = ("-m", "snakemake", "--config", "fidelity=smoke", "--cores", "2")


def _begin(folder, wait):
    """A run in the background, up to where the step ``wait`` has begun and does not end."""
    environment = os.environ | {"WAIT": wait, "PYTHONPATH": str(folder)}
    running = subprocess.Popen(
        [sys.executable, *RUN], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (folder / "begun").exists():
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return running


def _end(folder):
    """Let the step of :func:`_begin`, whose Snakemake was killed, go on to its end."""
    (folder / "go").touch()
    deadline = time.monotonic() + 60
    while not (folder / "ended").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _whole(folder):
    """The results that are there, by name; all have to be whole."""
    from sims import files

    found = results(folder / "results/smoke")
    for path, of in found:
        (files.read_json if path.suffix == ".json" else files.read)(path, of)
    return {path.name for path, _ in found}


ALL = {
    "simulation.nc", "theory.nc", "verdicts.json", "ledger.json", "report.html",
    "figure.pdf", "figure.png", "figure.svg", "caption.md",
}  # fmt: skip


def test_deleted_and_damaged_results_are_made_again(copy):
    """In the middle, too, where what was made of them is there."""
    assert run(copy, *RUN).returncode == 0
    assert _whole(copy) == ALL
    again = run(copy, *RUN)
    assert "Nothing to be done" in again.stderr
    home = copy / "results/smoke/angles"
    for path in (home / "simulation.nc", home / "figure.svg"):
        path.unlink()
    theory, caption = (home / "theory.nc").read_bytes(), home / "caption.md"
    (home / "theory.nc").write_bytes(theory[:5] + bytes([theory[5] ^ 4]) + theory[6:])
    caption.write_bytes((home / "figure.pdf").read_bytes())
    (copy / "results/smoke/ledger.json").write_bytes(b"")
    dry = run(copy, *RUN, "--dry-run")
    assert dry.returncode == 0
    assert caption.read_bytes() == (home / "figure.pdf").read_bytes()  # dry runs change nothing
    done = run(copy, *RUN)
    assert done.returncode == 0, done.stderr
    assert _whole(copy) == ALL
    said = [x.split(": got ")[0] for x in done.stderr.splitlines() if "; it is made again" in x]
    assert sorted(said) == [
        f"results/smoke/{name}" for name in ("angles/caption.md", "angles/theory.nc", "ledger.json")
    ]


@pytest.mark.faults
@pytest.mark.parametrize("name", sorted(ALL))
def test_each_result_is_made_again(copy, name):
    assert run(copy, *RUN).returncode == 0
    (path,) = (copy / "results/smoke").rglob(name)
    for content in (None, b"", path.read_bytes()[:-9]):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert run(copy, *RUN).returncode == 0
        assert _whole(copy) == ALL


def test_a_killed_run_is_gone_on_with_and_a_live_one_is_alone(copy):
    running = _begin(copy, "judge")
    try:
        second = run(copy, *RUN, "--quiet", "all")
        assert second.returncode == 2
        line = "results/smoke: got 'held by another run'; allowed: one run of a fidelity at a time"
        assert line in second.stderr
        assert "Traceback" not in second.stderr
        assert run(copy, *RUN, "--dry-run").returncode == 0
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert list((copy / ".snakemake/locks").glob("*.lock"))  # Snakemake's own, left behind
    done = run(copy, *RUN)
    _end(copy)
    assert done.returncode == 0, done.stderr
    assert _whole(copy) == ALL
    assert not [p for p in (copy / "results").rglob(".*") if p.is_file()]  # nothing temporary


@pytest.mark.faults
@pytest.mark.parametrize("step", ["simulate", "predict", "ledger", "plot", "report"])
def test_killed_at_any_step(copy, step):
    running = _begin(copy, step)
    running.send_signal(signal.SIGKILL)
    running.wait()
    done = run(copy, *RUN)
    _end(copy)
    assert done.returncode == 0, done.stderr
    assert _whole(copy) == ALL


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_real_run_goes_on_after_a_power_cut(copy):
    """Snakemake and its steps killed once a point is done: the ledger is that of a quiet run."""
    (copy / "bin/sims").write_text(f'#!/bin/sh\nexec {sys.executable} -m sims "$@"\n')
    ledger = copy / "results/smoke/ledger.json"
    target = (*RUN, str(ledger.relative_to(copy)))
    environment = os.environ | {"PYTHONPATH": str(copy)}
    with open(copy / "log", "w") as log:
        running = subprocess.Popen(
            [sys.executable, *target], cwd=copy, env=environment, stderr=log, start_new_session=True
        )
    while not list(copy.glob("results/smoke/angles/.points/*-simulation-*.npz")):
        assert running.poll() is None, (copy / "log").read_text()
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = {p: p.stat().st_mtime_ns for p in copy.glob("results/smoke/angles/.points/*.npz")}
    assert run(copy, *target).returncode == 0
    assert kept.items() <= {p: p.stat().st_mtime_ns for p in kept}.items()  # not computed again
    interrupted = ledger.read_bytes()
    shutil.rmtree(copy / "results")
    assert run(copy, *target).returncode == 0
    assert ledger.read_bytes() == interrupted
