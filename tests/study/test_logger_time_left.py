"""The time that a run still takes, by steps that run and steps that wait."""

import io
import logging
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

import snakemake_logger_plugin_sims as plugin

EARLIER = {
    "results/a/simulation.nc": 100.0, "results/b/simulation.nc": 40.0, "results/a/theory.nc": 7.0,
}  # fmt: skip


@pytest.fixture
def handler(monkeypatch):
    """A handler that knows how long steps took, of a run that has just begun."""
    monkeypatch.setattr(plugin, "_recorded", lambda: dict(EARLIER))
    made = plugin.LogHandler(SimpleNamespace(dryrun=False, stdout=False), None)
    made.console = Console(file=io.StringIO(), width=100)
    made._watch = lambda: None
    return made


def emit(handler, event, **fields):
    handler.emit(logging.makeLogRecord({"event": event, **fields}))


def begin(handler, number, rule, output, seconds):
    """A step that began so many seconds ago."""
    emit(
        handler, "job_info", jobid=number, rule_name=rule, wildcards={"name": "n"}, output=[output]
    )
    handler.running[number].began = time.monotonic() - seconds


def test_steps_that_run_count_once_in_the_time_left(handler):
    """Three simulations of a mean of 70 seconds and a prediction of 7.

    Of one that took 100 seconds last time 70 are left after 30; one that nobody timed is expected
    to take the mean, of which 20 are left after 50; and one that is late has nothing left.
    """
    emit(handler, "run_info", stats={"all": 1, "simulate": 3, "predict": 1, "total": 5})
    assert handler._remaining() == pytest.approx(3 * 70 + 7)
    begin(handler, 1, "simulate", "results/a/simulation.nc", 30)
    assert handler._remaining() == pytest.approx(2 * 70 + 7 + 70, abs=0.5)
    begin(handler, 2, "simulate", "results/c/simulation.nc", 50)
    assert handler._remaining() == pytest.approx(70 + 7 + 70 + 20, abs=0.5)
    begin(handler, 3, "predict", "results/a/theory.nc", 9)
    assert handler._remaining() == pytest.approx(70 + 70 + 20, abs=0.5)
