"""Ratios of this run beside the committed record: which of them moved?

A ratio compares two contestants of one run, so that it depends little on the machine and its load.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from benchmarks.machine import description, show

PATH = Path(__file__).with_name("record.json")
NOISE = 1.3
"""Factor by which a ratio differs between runs of one commit at most, on a machine that is used."""


def change(ratio: float, recorded: float | None) -> str:
    """``unchanged`` within :data:`NOISE`, ``higher``, ``lower``, or ``new`` without a record."""
    if recorded is None:
        return "new"
    if abs(math.log(ratio / recorded)) <= math.log(NOISE):
        return "unchanged"
    return "higher" if ratio > recorded else "lower"


def compare(ratios: Mapping[str, float], renew: bool) -> None:
    """Print every ratio beside its record, and write them as the new record if asked.

    Args:
        ratios: by name; of each, more is better.
        renew: whether the file is written.
    """
    recorded = json.loads(PATH.read_text(encoding="utf-8"))["ratios"] if PATH.exists() else {}
    changes = {name: change(ratio, recorded.get(name)) for name, ratio in ratios.items()}
    rows = [
        [name, str(recorded.get(name, "–")), f"{ratio:.3g}", changes[name]]
        for name, ratio in ratios.items()
    ]
    moved = [
        f"{name} is {changes[name]}" for name in ratios if changes[name] in ("higher", "lower")
    ]
    note = f"Moved by more than a factor of {NOISE:g}: {'; '.join(moved) or 'none'}."
    show("Ratios beside the record: higher is better", ("", "record", "now", ""), rows, note)
    if renew:
        rounded = {name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}
        text = json.dumps(
            {"machine": description(), "ratios": recorded | rounded}, indent=1, ensure_ascii=False
        )
        PATH.write_text(f"{text}\n", encoding="utf-8")
