"""Batches by number: those that a checkpoint has kept, the others as devices compute them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sims.montecarlo.checkpoint import Batch, Checkpoint, Missing
from sims.montecarlo.sampler import Rounds


class Supply:
    """The batches of a run, one after another.

    The next round is started before the last is waited for, so no device idles meanwhile; what is
    computed beyond the last batch that is taken is thrown away. Nothing is set up, and no pilot
    drawn, before the first batch that is not kept.

    Attributes:
        attrs: how the batches were made: device and the sampler's own attributes.
    """

    def __init__(
        self,
        start: Callable[[], tuple[Rounds, Mapping[str, Any]]],
        numbers: range,
        checkpoint: Checkpoint | None,
        problem: str,
    ) -> None:
        self.start, self.checkpoint, self.problem = start, checkpoint, problem
        self.ready: dict[int, Batch] = {}
        self.attrs: Mapping[str, Any] = {}
        if checkpoint is not None:
            self.ready, self.attrs = checkpoint.load(problem)
        self.rounds: Rounds | None = None
        self.waiting: list[tuple[int, Any]] = []
        self.fresh: dict[int, Batch] = {}
        self.firsts = self._firsts(numbers, set(self.ready))

    def take(self, number: int) -> Batch:
        """A batch; numbers rise from call to call.

        Raises:
            Missing: it is not kept, and nothing is to be computed.
        """
        while number not in self.ready:
            self._compute(number)
        return self.ready.pop(number)

    def save(self) -> None:
        """Keep what was computed since the last time."""
        if self.checkpoint is not None and self.fresh:
            self.checkpoint.save(self.fresh, self.problem, self.attrs)
            self.fresh = {}

    def _compute(self, number: int) -> None:
        if self.checkpoint is not None and self.checkpoint.closed:
            raise Missing(number)
        if self.rounds is None:
            self.rounds, made = self.start()
            self.attrs = {**made, **self.attrs}
        while len(self.waiting) < 2 and (first := next(self.firsts, None)) is not None:
            self.waiting.append((first, self.rounds.dispatch(first)))
        first, handle = self.waiting.pop(0)
        arrived = self.rounds.gather(handle)
        for place in range(self.rounds.width):
            batch = {name: np.asarray(values[place]) for name, values in arrived.items()}
            kept = self.ready.setdefault(first + place, batch)
            if kept is batch and self.checkpoint is not None:
                self.fresh[first + place] = batch
        if self.checkpoint is not None and self.checkpoint.due():
            self.save()

    def _firsts(self, numbers: range, kept: set[int]) -> Iterator[int]:
        """The first batches of the rounds that it takes: each begins with one that is missing."""
        last = -1
        for number in numbers:
            if number not in kept and number > last:
                width = self.rounds.width if self.rounds else 1
                last = number + width - 1
                yield number
