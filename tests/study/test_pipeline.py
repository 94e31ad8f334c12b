"""The Snakefile: what runs, what runs again, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sims.base.errors import InputError
from sims.study.choosing import choose
from tests.pipeline import ROOT, run

RUN = ("-m", "snakemake", "--cores", "2", "--config", "fidelity=smoke")


def test_a_run_makes_all_and_again_what_is_missing(copy):
    (copy / "sims.py").write_text("raise SystemExit")  # which is not imported
    done = run(copy, *RUN, "shards=2")
    assert done.returncode == 0, done.stderr
    home = copy / "results/smoke/small"
    made = {str(p.relative_to(home)) for p in home.rglob("*") if p.is_file()}
    assert made == {
        "simulation.nc",
        "theory.nc",
        "answers.json",
        "effects.nc",
        "panels.nc",
        "caption.md",
        "figure.png",
        "shards/1-of-2.json",
        "shards/2-of-2.json",
    }
    assert "Nothing to be done" in run(copy, *RUN, "shards=2").stderr
    (home / "theory.nc").unlink()  # in the middle, while what was made of it is there
    path = copy / "experiments/small/caption.md"
    path.write_text(path.read_text() + "More.\n")
    dry = run(copy, *RUN, "shards=2", "-n")
    rules = {x.split()[1][:-1] for x in (dry.stdout + dry.stderr).splitlines() if x[:5] == "rule "}
    assert rules == {"predict", "tabulate", "judge", "ledger", "plot", "report", "all"}
    os.utime(path.with_name("experiment.yaml"), (2**32, 2**32))
    refused = run(copy, *RUN, "shards=2")
    assert refused.returncode == 2
    assert "experiment.yaml: got 'dated " in refused.stderr
    assert not (home / "theory.nc").exists()


def test_a_killed_run_is_gone_on_with_and_a_live_one_is_alone(copy):
    environment = os.environ | {"WAIT": "judge", "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        [sys.executable, *RUN], cwd=copy, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (copy / "begun").exists():
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert json.loads((copy / "begun").read_text())["PYTHONSAFEPATH"] == "1"
        second = run(copy, *RUN, "--quiet", "all")
        assert second.returncode == 2
        assert "results/smoke: got 'in use by another run'; allowed: one run" in second.stderr
        assert f"wait for process {running.pid} of " in second.stderr
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert list((copy / ".snakemake/locks").glob("*.lock"))  # Snakemake's own, left behind
    (copy / "go").touch()
    done = run(copy, *RUN)
    assert done.returncode == 0, done.stderr
    assert (copy / "results/smoke/report.html").exists()


def test_bad_configuration_is_one_line(copy):
    config = "experiment=$(touch PWNED)"
    done = run(copy, "-m", "snakemake", "-n", "--quiet", "all", "--config", config)
    lines = [x for x in done.stderr.splitlines() if not x.startswith("Using ")]
    assert (done.returncode, len(lines)) == (2, 1), done.stderr
    assert "experiment: got '$(touch PWNED)'; allowed: small" in lines[0]
    assert not list(copy.rglob("PWNED*"))


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(InputError, match="--config: fidelty: got 'fidelty'"):
        choose({"fidelty": "smoke"})
    with pytest.raises(InputError, match="shards: got 'many'; allowed: a valid integer"):
        choose({"shards": "many"})
