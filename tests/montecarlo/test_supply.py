"""Batches by number, as rounds of several devices bring them."""

from types import SimpleNamespace

import numpy as np

from sims.montecarlo.supply import Supply


class Rounds:
    """Three batches at a time, each its own number squared."""

    width = 3

    def __init__(self):
        self.begun = []

    def dispatch(self, first):
        self.begun.append(first)
        return first

    def gather(self, first):
        return {"x": np.arange(first, first + self.width) ** 2}


def test_rounds_begin_at_missing_batches_and_compute_none_twice():
    """Of ten batches three are kept: rounds from 0, 3, 6 and 9 on bring all others."""
    rounds, kept = Rounds(), {b: {"x": np.asarray(b**2)} for b in (1, 4, 5)}
    checkpoint = SimpleNamespace(
        closed=False, load=lambda problem: (dict(kept), {}), due=lambda: False
    )
    supply = Supply(lambda: (rounds, {}), range(10), checkpoint, "a problem")
    assert [int(supply.take(b)["x"]) for b in range(10)] == [b**2 for b in range(10)]
    assert rounds.begun == [0, 3, 6, 9]
