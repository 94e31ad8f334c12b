"""Measurements made one by one and kept in a file, so that a machine may be left at any time."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sims import files

OF = "measurements on a GPU"
GO_ON = 75
"""Exit code of a call that did not get to the end: the same command goes on."""


class OutOfTime(Exception):
    """What is left takes another call."""


class Pieces:
    """Named measurements under one set of conditions; those that the file has are not made again.

    Args:
        path: JSON file of the measurements.
        conditions: device, versions and code. A file of other conditions is begun anew.
        seconds: for this call; nothing is begun in the last ``reserve`` of them.
        reserve: seconds that the longest measurement takes.
    """

    def __init__(
        self, path: Path, conditions: Mapping[str, str], seconds: float, reserve: float = 60.0
    ):
        self.path, self.deadline, self.reserve = path, time.monotonic() + seconds, reserve
        self.conditions = dict(conditions)
        kept = files.read_json(path, OF) if path.exists() else {}
        same = kept.get("conditions") == self.conditions
        self.results: dict[str, Any] = kept["results"] if same else {}

    def left(self) -> float:
        """Seconds of this call."""
        return self.deadline - time.monotonic()

    def __call__(self, name: str, measure: Callable[[], Any]) -> Any:
        """The measurement of that name, made if it is not there.

        Raises:
            OutOfTime: too little of this call is left to begin it.
        """
        if name not in self.results:
            if self.left() < self.reserve:
                raise OutOfTime(name)
            # As JSON has it, whether it was measured now or read.
            self.results[name] = json.loads(json.dumps(measure()))
            kept = {"conditions": self.conditions, "results": self.results}
            files.write_json(kept, self.path, OF)
        return self.results[name]
