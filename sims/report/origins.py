"""Where the numbers come from: what all runs of a page share, and what each has of its own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sims.study.results import provenance

ROADS = ("simulation", "theory")
HIDDEN = ("specification", "experiment", "road", "fidelity")
"""Keys that the page shows elsewhere."""


class Origins(NamedTuple):
    """Provenance of all experiments of a page.

    Attributes:
        common: key and value of what all files agree on.
        keys: the other keys.
        rows: experiment, road, and a value for each of the other keys ("–" where it has none).
    """

    common: list[tuple[str, str]]
    keys: list[str]
    rows: list[tuple[str, str, list[str]]]


def origins(folder: Path, names: Sequence[str], fidelity: str) -> Origins:
    """Read the provenance of both roads of some experiments.

    Args:
        folder: results of one fidelity.
        names: the experiments.
        fidelity: its name.

    Raises:
        InputError: a file cannot be believed (:mod:`sims.files`).
    """
    read = {
        (name, road): _texts(
            provenance(folder / name / f"{road}.nc", f"{road}.nc of {name} at {fidelity}")
        )
        for name in names
        for road in ROADS
    }
    keys = list(dict.fromkeys(key for texts in read.values() for key in texts))
    same = [k for k in keys if len({texts.get(k) for texts in read.values()}) == 1]
    first = next(iter(read.values()), {})
    others = [key for key in keys if key not in same]
    return Origins(
        [(_words(key), first[key]) for key in same],
        [_words(key) for key in others],
        [(*of, [texts.get(key, "–") for key in others]) for of, texts in read.items()],
    )


def _texts(origin: Mapping[str, object]) -> dict[str, str]:
    texts = {}
    for key, value in origin.items():
        if key in HIDDEN:
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        if value is not None:
            texts[key] = (value if isinstance(value, str) else json.dumps(value)) or "none"
    return texts


def _words(key: str) -> str:
    return key.replace("_", " ")
