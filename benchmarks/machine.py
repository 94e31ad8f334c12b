"""Where a benchmark ran, how it is timed, and tables that a terminal and a page can show."""

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence

import jax
from rich.console import Console
from rich.table import Table


def cpu_seconds(calls: Mapping[str, Callable[[int], object]], repeats: int) -> dict[str, float]:
    """CPU seconds (user + system) of the best of ``repeats`` calls of each, in turn.

    CPU seconds, since other work on a machine only adds to wall time; the best, since it adds to
    those too. The first call of each (compilation) is not timed.
    """
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        jax.block_until_ready(call(0))
    for seed in range(1, repeats + 1):
        for name, call in calls.items():
            begun = time.process_time()
            jax.block_until_ready(call(seed))
            best[name] = min(best[name], time.process_time() - begun)
    return best


def processor() -> str:
    """The CPU's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def description(*packages: str) -> str:
    """Machine and versions, in two sentences."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("jax", "numpy", *packages)
    )
    return (
        f"{processor()}, {cores} of {os.cpu_count()} cores used, load {os.getloadavg()[0]:.1f}. "
        f"Python {platform.python_version()}, {versions}."
    )


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> None:
    """Print a table."""
    table = Table(title=title)
    for head in heads:
        table.add_column(head, justify="right" if table.columns else "left")
    for row in rows:
        table.add_row(*row)
    console = Console(width=120)
    console.print(table)
    console.print(note)
