"""Where the numbers come from: what all runs of a page share, and what each has of its own."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sims.study.results import provenance

HIDDEN = ["specification", "settings", "fidelity"]
"""Keys that the page shows elsewhere."""


def origins(folder: Path, names: Sequence[str], fidelity: str) -> tuple[dict[Any, str], str]:
    """Provenance of both roads of some experiments.

    Args:
        folder: results of one fidelity.
        names: the experiments.
        fidelity: its name.

    Returns:
        Key to value of what all files agree on; the other keys as a table in HTML, a row a file.

    Raises:
        InputError: a file cannot be believed (:mod:`sims.files`).
    """
    rows = []
    for name in names:
        for road in ("simulation", "theory"):
            path, whose = folder / name / f"{road}.nc", f"{road}.nc of {name} at {fidelity}"
            origin = {"experiment": name, "road": road} | provenance(path, whose)
            rows.append({key.replace("_", " "): _text(value) for key, value in origin.items()})
    frame = pd.DataFrame(rows).fillna("–").drop(columns=HIDDEN, errors="ignore")
    same = frame.nunique() == 1
    with pd.option_context("display.max_colwidth", None):
        own = frame.loc[:, ~same].to_html(classes="origins", border=0, index=False)
    return frame.loc[:, same].iloc[0].to_dict(), own


def _text(value: object) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    text = value if isinstance(value, str) or value is None else json.dumps(value)
    return "none" if text == "" else text
