"""Where the numbers come from: what all runs of a page share, and what each has of its own."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sims.study.results import provenance

HIDDEN = ("specification", "experiment", "road", "fidelity")
"""Keys that the page shows elsewhere."""


class Origins(NamedTuple):
    """Provenance of all experiments of a page.

    Attributes:
        common: key to value of what all files agree on.
        keys: the other keys.
        rows: experiment and road to its values by key.
    """

    common: dict[str, str]
    keys: list[str]
    rows: dict[tuple[str, str], dict[str, str]]


def origins(folder: Path, names: Sequence[str], fidelity: str) -> Origins:
    """Read the provenance of both roads of some experiments.

    Args:
        folder: results of one fidelity.
        names: the experiments.
        fidelity: its name.

    Raises:
        InputError: a file cannot be believed (:mod:`sims.files`).
    """
    rows = {}
    for name in names:
        for road in ("simulation", "theory"):
            path, whose = folder / name / f"{road}.nc", f"{road}.nc of {name} at {fidelity}"
            origin = {k: v for k, v in provenance(path, whose).items() if k not in HIDDEN}
            rows[name, road] = {k: _text(v) for k, v in origin.items() if v is not None}
    keys = list(dict.fromkeys(key for row in rows.values() for key in row))
    values = {key: {row.get(key) for row in rows.values()} for key in keys}
    common = {key: str(*values[key]) for key in keys if len(values[key]) == 1}
    return Origins(common, [key for key in keys if key not in common], rows)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return (value if isinstance(value, str) else json.dumps(value)) or "none"
