"""Progress of a run, and its stopping rule."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base import estimates, store
from sims.base.checks import check_count, check_non_negative
from sims.base.errors import InputError
from sims.base.identity import digest
from sims.montecarlo.draws import Draw
from sims.montecarlo.sampler import BATCH, Arrays, Sampler, with_mcse

CHECK_EVERY = 8
"""Batches between checks of the precision: fixed, so that stopping is the same on all devices."""
MAX_BATCHES = 1024
"""Default maximum number of batches under ``rel_mcse``."""
UNIDENTIFIED = "unidentified"
"""Identity of a result of unknown origin; it cannot be resumed."""


@dataclass(frozen=True)
class Stopping:
    """Rule by which a run has enough batches.

    Attributes:
        batches: B ≥ 2, the exact number without ``rel_mcse``.
        rel_mcse: target precision, or None.
        max_batches: limit under ``rel_mcse``; None is :data:`MAX_BATCHES`.
        negligible: share of the largest output below which another does not delay stopping.

    Raises:
        InputError: an attribute is out of its range.
    """

    batches: int
    rel_mcse: float | None = None
    max_batches: int | None = None
    negligible: float = 0.0

    def __post_init__(self) -> None:
        check_count("batches", self.batches, minimum=2)
        if self.max_batches is not None:
            check_count("max_batches", self.max_batches, minimum=2)
        target = self.rel_mcse
        if target is not None and not (np.isfinite(target) and target > 0):
            raise InputError("rel_mcse", target, "finite and > 0, or None")
        check_non_negative("negligible", self.negligible)

    @property
    def limit(self) -> int:
        """Maximum number of batches."""
        if self.rel_mcse is None:
            return self.batches
        return max(self.max_batches or MAX_BATCHES, self.batches)

    def is_precise(self, history: "History") -> bool:
        """True at a check at which the precision is reached."""
        count = len(history.finished)
        if self.rel_mcse is None or count < max(CHECK_EVERY, self.batches) or count % CHECK_EVERY:
            return False
        return history.sampler.precise(history.arrays(), self.rel_mcse, self.negligible)


class History:
    """Batches of a run, resumed and new, and the file that saves them.

    Attributes:
        sampler: their sampler.
        problem: digest of their inputs.
        checkpoint: the file, or None.
        finished: the batches, each by the names of its outputs.
    """

    def __init__(
        self, sampler: Sampler, draws: Draw, checkpoint: Path | None, resumed: bool = False
    ) -> None:
        """Begin without batches; a run that is ``resumed`` or saved must be identifiable."""
        self.sampler = sampler
        self.checkpoint = checkpoint
        self.finished: list[Arrays] = []
        self._saved_at = time.monotonic()
        try:
            self.problem = digest(sampler.identity(), draws.words, draws.seed, draws.replicates)
        except InputError:
            if resumed or checkpoint is not None:
                raise
            self.problem = UNIDENTIFIED

    def resume(self, earlier: xr.Dataset | None, limit: int) -> None:
        """Begin with the batches of an earlier result, or with those of the file if it has more.

        Args:
            earlier: a result of the same inputs, all of whose batches count.
            limit: maximum number of batches to take from the file.

        Raises:
            InputError: the earlier result has other inputs.
        """
        if earlier is not None:
            if earlier.attrs.get("problem") != self.problem:
                allowed = "a result of the same problem, seed and settings"
                raise InputError("resume", earlier.attrs.get("problem"), allowed)
            self._take(earlier, earlier.sizes[BATCH])
        saved = None if self.checkpoint is None else store.load(self.checkpoint)
        if saved is None or saved.attrs["problem"] != self.problem:
            return
        if saved.sizes[BATCH] > len(self.finished):
            self._take(saved, limit)

    def _take(self, data: xr.Dataset, most: int) -> None:
        arrays = self.sampler.unlabel(data)
        count = min(data.sizes[BATCH], most)
        self.finished = list(unstacked(arrays, count))

    def add(self, batch: Arrays) -> None:
        """Add a batch; save all once per :data:`~sims.base.store.SECONDS`."""
        self.finished.append(batch)
        if time.monotonic() - self._saved_at >= store.SECONDS:
            self.save()

    def save(self) -> None:
        """Save the batches to the file, if there is one."""
        if self.checkpoint is not None and self.finished:
            labelled = self.sampler.label(self.arrays())
            store.save(labelled.assign_attrs(problem=self.problem), self.checkpoint)
        self._saved_at = time.monotonic()

    def arrays(self) -> dict[str, np.ndarray]:
        """All batches by the names of their outputs, (batch, …)."""
        return stacked(self.finished)

    def labelled(self, attrs: Mapping[str, Any], faults: Sequence[str]) -> xr.Dataset:
        """Labelled result with MCSE, these attributes, and faults such as infinite values."""
        arrays = self.arrays()
        found = list(faults)
        partial = getattr(self.sampler, "partial", ())
        bad = 0
        size = 0
        for name, values in arrays.items():
            size += values.size
            bad += 0 if name in partial else estimates.not_finite(values)
        if bad:
            found.append(f"{bad} of {size} values are not finite")
        data = with_mcse(self.sampler.label(arrays))
        data.attrs.update(attrs)  # in place: a copy takes as long as a small problem
        if found:
            data.attrs["faults"] = "\n".join(found)
        return data


def stacked(batches: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """Batches by the names of their outputs, (batch, …)."""
    arrays = {}
    for name in batches[0]:
        arrays[name] = np.stack([batch[name] for batch in batches])
    return arrays


def unstacked(arrays: Arrays, count: int) -> Iterator[dict[str, np.ndarray]]:
    """The first batches of outputs (batch, …), one after another."""
    for batch in range(count):
        yield {name: values[batch] for name, values in arrays.items()}
