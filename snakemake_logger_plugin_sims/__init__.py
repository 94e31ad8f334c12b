"""A line for every step of a run, with what runs and about how long it still takes.

Snakemake loads it as ``--logger sims``; ``profiles/default`` asks for it. On a terminal or
in a notebook a block below the lines shows the steps that run, each with its time and that of
the last run; in a pipe a step that takes long says so once a minute. Estimates are of recorded
durations, kept in ``.snakemake``.
"""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from logging import WARNING, LogRecord
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase

DURATIONS = Path(".snakemake", "durations.json")
"""Seconds that each step took last, by its first output."""
HEARTBEAT = 60.0
"""Seconds between two lines that say what still runs, where nothing can be shown live."""
NOT_STEPS = {"all"}
"""Rules that collect files and do nothing."""


class Step:
    """A job of the run: its rule, what it is about, and when it began."""

    def __init__(self, rule: str, wildcards: Mapping[str, str], output: Iterable[str]) -> None:
        self.rule = rule
        self.output = next(iter(output), rule)
        self.label = " ".join([rule, *map(str, wildcards.values())])
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.monotonic() - self.began


class LogHandler(LogHandlerBase):
    """What Snakemake says, as one line a step."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.console = Console(stderr=not self.common_settings.stdout, highlight=False)
        self.running: dict[int, Step] = {}
        self.left: Counter[str] = Counter()
        self.finished = self.total = 0
        self.busy = 0.0
        self.began = time.monotonic()
        self.durations = _recorded()
        self.live: Live | None = None
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None

    def emit(self, record: LogRecord) -> None:
        """Show one event; whatever is no event is shown if it is a warning or worse."""
        try:
            event = getattr(record, "event", None)
            handle = getattr(self, f"on_{event}", None) if event is not None else None
            if handle is not None:
                handle(record)
            elif record.levelno >= WARNING or _is_news(record.getMessage()):
                self.console.print(Text(record.getMessage()))
        except Exception:
            self.handleError(record)

    def on_run_info(self, record: LogRecord) -> None:
        """Learn how many steps there are of each rule."""
        counts = {rule: n for rule, n in record.stats.items() if rule != "total"}  # type: ignore[attr-defined]
        self.left = Counter({rule: n for rule, n in counts.items() if rule not in NOT_STEPS})
        self.total = self.left.total()
        if self.common_settings.dryrun:
            rules = ", ".join(f"{count} {rule}" for rule, count in sorted(self.left.items()))
            self.console.print(f"{self.total} steps: {rules}", soft_wrap=True)
        else:
            about = self._about(self._remaining())
            self.console.print(f"{self.total} steps{f', {about}' if about else ''}")
            self._watch()

    def on_job_info(self, record: LogRecord) -> None:
        """A job is about to run; in a dry run this is all that there is of it."""
        rule, output = record.rule_name, record.output or ()  # type: ignore[attr-defined]
        if rule in NOT_STEPS:
            return
        step = Step(rule, record.wildcards or {}, output)  # type: ignore[attr-defined]
        if self.common_settings.dryrun:
            self.console.print(f"would {step.label}", markup=False)
        else:
            self.running[record.jobid] = step  # type: ignore[attr-defined]

    def on_job_finished(self, record: LogRecord) -> None:
        """Say what is done, in what time, and what is left."""
        step = self.running.pop(record.job_id, None)  # type: ignore[attr-defined]
        if step is None:
            return
        took = step.seconds
        self.durations[step.output] = took
        self.busy += took
        self.finished += 1
        self.left[step.rule] -= 1
        width = len(str(self.total))
        about = self._about(self._remaining()) if self.finished < self.total else ""
        line = f"[{self.finished:{width}}/{self.total}] {step.label:34} {_clock(took):>8}"
        self.console.print(f"{line}  {about}".rstrip(), markup=False)

    def on_job_error(self, record: LogRecord) -> None:
        """Name the step that failed and where it says why."""
        step = self.running.pop(record.jobid, None)  # type: ignore[attr-defined]
        label = step.label if step else record.rule_name  # type: ignore[attr-defined]
        logs = ", ".join(getattr(record, "log", None) or ())
        self.console.print(f"failed: {label}{f' (see {logs})' if logs else ''}", markup=False)

    def on_error(self, record: LogRecord) -> None:
        """Errors of the workflow itself."""
        self.console.print(Text(record.getMessage()))

    def _ignored(self, record: LogRecord) -> None:
        """What a reader of these lines does not need."""

    on_progress = on_shellcmd = on_job_started = on_resources_info = on_workflow_started = _ignored
    on_debug_dag = on_group_info = on_rulegraph = _ignored

    def close(self) -> None:
        """Take the block away and keep the durations."""
        self.stopped.set()
        if self.live is not None:
            self.live.stop()
        if self.thread is not None:
            self.thread.join(timeout=1)
        if self.busy:
            _record(self.durations)
        super().close()

    def _watch(self) -> None:
        """Show what runs: below the lines, or by a line a minute."""
        if self.live is not None or self.thread is not None:
            return
        if self.console.is_terminal or self.console.is_jupyter:
            self.live = Live(
                console=self.console,
                get_renderable=self._block,
                refresh_per_second=2,
                transient=True,
            )
            self.live.start()
            return
        self.thread = threading.Thread(target=self._beat, daemon=True)
        self.thread.start()

    def _beat(self) -> None:
        said: dict[int, int] = {}
        while not self.stopped.wait(1):
            for job, step in list(self.running.items()):
                if (times := int(step.seconds // HEARTBEAT)) > said.get(job, 0):
                    said[job] = times
                    self.console.print(self._line(step), markup=False)

    def _block(self) -> Group:
        return Group(*[Text(self._line(step), style="dim") for step in list(self.running.values())])

    def _line(self, step: Step) -> str:
        last = self.durations.get(step.output)
        about = f" (last time {_clock(last)})" if last else ""
        return f"... {step.label}: {_clock(step.seconds)}{about}"

    def _remaining(self) -> float | None:
        """Seconds of wall time left, None if some rule that is left was never timed."""
        known: dict[str, list[float]] = {}
        for output, seconds in self.durations.items():
            known.setdefault(_rule_of(output), []).append(seconds)
        total = 0.0
        for rule, count in self.left.items():
            running = [s for s in self.running.values() if s.rule == rule]
            if count and rule not in known:
                return None
            if count:
                mean = sum(known[rule]) / len(known[rule])
                total += mean * (count - len(running))
                total += sum(
                    max(self.durations.get(s.output, mean) - s.seconds, 0.0) for s in running
                )
        wall = time.monotonic() - self.began
        # Steps side by side, as seen so far; before that, as many as cores allow at one each.
        at_once = max(self.busy / wall, 1.0) if self.busy > 1 else 1.0
        return total / at_once

    @staticmethod
    def _about(seconds: float | None) -> str:
        return "" if seconds is None else f"about {_clock(seconds)} left"


def _rule_of(output: str) -> str:
    """The rule behind a recorded output: by the name of its file."""
    names = {
        "simulation.nc": "simulate", "theory.nc": "predict", "verdicts.json": "judge",
        "figure.pdf": "plot", "ledger.json": "ledger",
        "report.html": "report", "plan.json": "plan",
    }  # fmt: skip
    name = Path(output).name
    return names.get(name, "shard_of_turn" if "turn-" in output else "shard")


def _is_news(message: str) -> bool:
    """Whether a plain message says something that no step does."""
    return message.startswith(("Nothing to be done", "Exiting because", "Will exit after"))


def _clock(seconds: float) -> str:
    """``7 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _recorded() -> dict[str, float]:
    try:
        found = json.loads(DURATIONS.read_text(encoding="utf-8"))
        return {str(output): float(seconds) for output, seconds in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _record(durations: Mapping[str, float]) -> None:
    """Keep the durations; a run whose folder cannot be written goes without."""
    try:
        beside = DURATIONS.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(dict(sorted(durations.items())), indent=0), encoding="utf-8")
        beside.replace(DURATIONS)
    except OSError:
        pass
