"""Exact subset sums against brute force."""

import itertools

import numpy as np
import pytest

from experiments.lottery_tickets.pruning import closest_sum


@pytest.mark.parametrize("count", [1, 2, 7, 11])
def test_against_every_subset(count):
    rng = np.random.default_rng(11)
    items, goal = rng.uniform(-1, 1, (20, count)), rng.uniform(-2, 2, 20)
    masks = np.array(list(itertools.product((0, 1), repeat=count)))
    for row, target, result in zip(items, goal, closest_sum(items, goal), strict=True):
        every = masks @ row
        assert result == pytest.approx(every[np.abs(every - target).argmin()], abs=1e-14)
