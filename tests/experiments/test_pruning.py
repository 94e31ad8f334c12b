"""Exact subset sums against brute force; a head by its merged matrices."""

import itertools

import numpy as np
import pytest

from experiments.lottery_tickets.pruning import MOST_ITEMS, attention, closest_subset
from sims.errors import InputError


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("count", [1, 2, 7, 11])
def test_against_every_subset(rng, count):
    items, goal = rng.uniform(-1, 1, (20, count)), rng.uniform(-2, 2, 20)
    found = closest_subset(items, goal)
    for row, target, chosen, error in zip(items, goal, *found, strict=True):
        every = [
            abs(row[list(s)].sum() - target)
            for k in range(count + 1)
            for s in itertools.combinations(range(count), k)
        ]
        assert error == pytest.approx(min(every), abs=1e-14)
        assert abs(row[chosen].sum() - target) == pytest.approx(error, abs=1e-14)


def test_attention_by_plain_loops(rng):
    tokens, scores, values = rng.standard_normal((5, 3)), *rng.standard_normal((2, 3, 3))
    found = attention(tokens, scores, values)
    for row, own in zip(tokens, found, strict=True):
        weights = np.exp([row @ scores @ other for other in tokens])
        np.testing.assert_allclose(own, weights / weights.sum() @ tokens @ values, atol=1e-12)


def test_bad_input():
    with pytest.raises(InputError, match=f"at most {MOST_ITEMS}"):
        closest_subset(np.zeros((1, MOST_ITEMS + 1)), np.zeros(1))
