"""What a run shows: a line a step, what is left, what failed, and nothing else."""

import io
import json
import logging
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

import snakemake_logger_plugin_sims as plugin


def record(event=None, message="", level=logging.INFO, **fields):
    made = logging.makeLogRecord({"msg": message, "levelno": level, "event": event, **fields})
    if event is None:
        del made.event
    return made


def job(number, rule="simulate", name="angles", output="results/smoke/angles/simulation.nc"):
    return record(
        "job_info", jobid=number, rule_name=rule, wildcards={"name": name}, output=[output]
    )


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """A handler that writes to a text; earlier durations are in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugin, "HEARTBEAT", 1.0)
    (tmp_path / ".snakemake").mkdir()
    earlier = {
        "results/smoke/angles/simulation.nc": 100.0, "results/smoke/rates/simulation.nc": 20.0,
    }  # fmt: skip
    (tmp_path / ".snakemake/durations.json").write_text(json.dumps(earlier))

    def make(dryrun=False):
        handler = plugin.LogHandler(SimpleNamespace(dryrun=dryrun, stdout=False), None)
        handler.console = Console(file=io.StringIO(), width=100)
        return handler

    return make


def said(handler):
    return handler.console.file.getvalue().splitlines()


def test_a_step_has_one_line_with_what_is_left(shown, tmp_path):
    handler = shown()
    handler.emit(record("run_info", stats={"all": 1, "simulate": 2, "total": 3}))
    assert said(handler) == ["2 steps, about 2 min 00 s left"]
    handler.emit(record("resources_info", "Provided cores: 2"))
    handler.emit(record(None, "Building DAG of jobs..."))
    handler.emit(job(1))
    handler.emit(record("job_finished", job_id=1))
    line = said(handler)[-1]
    assert line.startswith("[1/2] simulate angles ")
    # The one left is expected to take the mean of the two durations: about 0 and 20 seconds.
    assert line.endswith("about 10 s left")
    handler.emit(job(2, name="rates", output="results/smoke/rates/simulation.nc"))
    handler.emit(record("job_finished", job_id=2))
    assert "left" not in said(handler)[-1]
    handler.close()
    kept = json.loads((tmp_path / ".snakemake/durations.json").read_text())
    assert set(kept) == {f"results/smoke/{name}/simulation.nc" for name in ("angles", "rates")}
    assert all(seconds < 1 for seconds in kept.values())
    assert len(said(handler)) == 3


def test_what_was_never_timed_has_no_estimate(shown):
    handler = shown()
    handler.emit(record("run_info", stats={"simulate": 1, "judge": 1, "total": 2}))
    assert said(handler) == ["2 steps"]
    handler.close()


def test_failures_and_warnings_are_named(shown):
    handler = shown()
    handler.emit(job(1))
    failure = record("job_error", jobid=1, rule_name="simulate", log=["results/smoke/logs/a.log"])
    handler.emit(failure)
    handler.emit(record(None, "disk is full", logging.WARNING))
    handler.emit(record("error", "no such rule"))
    assert said(handler) == [
        "failed: simulate angles (see results/smoke/logs/a.log)", "disk is full", "no such rule",
    ]  # fmt: skip
    assert handler.running == {}


def test_a_dry_run_lists_steps(shown):
    handler = shown(dryrun=True)
    handler.emit(record("run_info", stats={"simulate": 1, "total": 1}))
    handler.emit(job(1))
    handler.emit(job(0, rule="all"))
    handler.emit(record(None, "Nothing to be done (all requested files are present)."))
    assert said(handler)[:2] == ["1 steps: 1 simulate", "would simulate angles"]
    assert said(handler)[2].startswith("Nothing to be done")
    assert len(said(handler)) == 3


def test_a_long_step_says_that_it_runs(shown):
    handler = shown()
    handler.emit(record("run_info", stats={"simulate": 1, "total": 1}))
    handler.emit(job(1))
    handler.running[1].began -= 65
    for _ in range(50):
        if len(said(handler)) > 1:
            break
        time.sleep(0.1)
    handler.close()
    assert said(handler)[1].startswith("... simulate angles: 1 min 0")
    assert "(last time 1 min 40 s)" in said(handler)[1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2.34, "2.3 s"),
        (59.4, "59 s"),
        (59.7, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_clock(seconds, words):
    assert plugin._clock(seconds) == words
