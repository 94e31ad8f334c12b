"""Batches of one run, kept on disk while it goes on: a killed run begins where it was.

A group of consecutive batches is a sealed file of its own, so groups may be written by several
processes, in any order, and a damaged one takes no other with it. No JAX.
"""

import itertools
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.errors import InputError
from sims.montecarlo import store

SECONDS = 10.0
"""Between two groups, unless ``SIMS_CHECKPOINT_SECONDS`` says otherwise: what a kill may cost."""
BATCH = "batch"
Batch = Mapping[str, np.ndarray]
"""By the name of an output, its values in one batch."""


class Missing(InputError):
    """A batch is not there, where none is to be computed.

    Attributes:
        number: of the first such batch.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__("batches", f"nothing from batch {number} on", "what all shards have done")


class Checkpoint:
    """The groups of batches of one run, in a folder of its own.

    Attributes:
        folder: where the groups lie; made at the first of them.
        part: the only batches that are computed, by a run that is one shard of several; None is all
            that the run needs.
        closed: whether no batch is computed, so that one that is not kept is :class:`Missing`.
        mark: attributes of the result that say under what a batch was drawn; where some were drawn
            under something else, that is what the result has.
        seconds: between two groups.
    """

    def __init__(
        self,
        folder: Path,
        part: range | None = None,
        closed: bool = False,
        mark: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.part, self.closed = folder, part, closed
        self.mark = dict(mark or {})
        self.seconds = _seconds()
        self._saved = time.monotonic()

    def load(self, problem: str) -> tuple[dict[int, Batch], dict[str, Any]]:
        """The batches that are kept, by number, and the attributes that say how they were made.

        Groups that are damaged or of another problem are named on stderr, and not among them.

        Args:
            problem: digest of what the run is of.
        """
        found: dict[int, Batch] = {}
        attrs: dict[str, Any] = {}
        for path in sorted(self.folder.glob("[0-9]*.npz")):
            group = store.load(path)
            if group is None:
                continue
            origin = dict(group.attrs)
            if origin.pop("problem", None) != problem:
                print(f"{path}: got batches of another run; they are computed again",
                      file=sys.stderr)  # fmt: skip
                continue
            attrs = attrs or origin
            other = {k: v for k, v in self.mark.items() if origin.get(k, v) != v}
            attrs |= {key: origin[key] for key in other}
            arrays = {str(name): values.values for name, values in group.data_vars.items()}
            for place, number in enumerate(group[BATCH].values):
                found[int(number)] = {name: values[place] for name, values in arrays.items()}
        self._saved = time.monotonic()
        return found, attrs

    def due(self) -> bool:
        """Whether it is time for the next group."""
        return time.monotonic() - self._saved >= self.seconds

    def save(self, batches: Mapping[int, Batch], problem: str, attrs: Mapping[str, Any]) -> None:
        """Keep batches, those that follow one another as a group.

        Raises:
            InputError: they cannot be written.
        """
        for _, run in itertools.groupby(enumerate(sorted(batches)), lambda pair: pair[1] - pair[0]):
            numbers = [number for _, number in run]
            stacked = {
                name: np.stack([np.asarray(batches[number][name]) for number in numbers])
                for name in batches[numbers[0]]
            }
            data = xr.Dataset(
                {
                    name: ((BATCH, *(f"{name}_{k}" for k in range(1, values.ndim))), values)
                    for name, values in stacked.items()
                },
                {BATCH: numbers},
                {**attrs, "problem": problem},
            )
            store.save(data, self.folder / f"{numbers[0]:07d}-{numbers[-1] + 1:07d}.npz")
        self._saved = time.monotonic()

    def clear(self) -> None:
        """Remove the groups: all of them are in a finished result."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _seconds() -> float:
    text = os.environ.get("SIMS_CHECKPOINT_SECONDS", f"{SECONDS:g}")
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text):
        raise InputError("SIMS_CHECKPOINT_SECONDS", text, "seconds, 0 to 999999")
    return float(text)
