"""The seconds of steps: what is kept, and what is expected of steps that have not run."""

import os
import time
from pathlib import Path

import pytest

from sims.study import timing

TABLE = '{"smoke": {"rates": {"predict": 1}}, "standard": {"rates": {"judge": 30, "plot": 7}}}'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder without results, and a machine of two cores."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMS_HOST_DEVICES", "2")
    Path("seconds.json").write_text(TABLE)
    monkeypatch.setattr(timing, "TABLE", Path("seconds.json"))
    monkeypatch.setattr(timing.os, "times", lambda: [0.0] * 5)


def take(folder, step, seconds, monkeypatch):
    with monkeypatch.context() as patched, timing.timed(Path(folder), step):
        begun = time.time()
        patched.setattr(timing.time, "time", lambda: begun + seconds)


def test_steps_take_what_they_took_here_or_in_the_table_scaled(monkeypatch):
    steps = [("rates", "judge"), ("rates", "plot")]
    assert timing.expected("standard", steps) == 37
    take("results/smoke/rates", "predict", 2.0, monkeypatch)  # four core seconds in place of one
    assert timing.expected("standard", steps) == pytest.approx(4 * 37, rel=0.1)
    take("results/standard/rates", "judge", 10.0, monkeypatch)
    scale = (4 + 20) / (1 + 30)
    assert timing.expected("standard", steps) == pytest.approx(20 + scale * 7, rel=0.1)
    assert timing.expected("paper", steps) == 0
    assert timing.expected("standard", [("mine", "judge"), ("", "ledger")]) == 0


def test_a_simulation_that_resumes_is_no_measure(monkeypatch):
    home = Path("results/smoke/rates")
    (home / ".points").mkdir(parents=True)
    (home / ".points/1.nc").touch()
    os.utime(home / ".points/1.nc", (1, 1))
    for step in ("simulate", "run", "judge"):
        take(home, step, 1.0, monkeypatch)
    assert [path.stem for path in home.glob(".seconds/*")] == ["judge"]


def test_minutes_in_words():
    words = [timing.in_minutes(seconds) for seconds in (20, 60, 1020)]
    assert words == ["about 1 minute", "about 1 minute", "about 17 minutes"]
    assert timing.in_minutes(0) == "an unknown time, as nothing of it has run here"
