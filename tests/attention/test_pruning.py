"""Exact subset sums against brute force and a mixed-integer solver; pruned products."""

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from sims.attention.pruning import MOST_ITEMS, attention, closest_subset, prune, subset_sums
from sims.errors import InputError


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_against_every_subset(rng, count):
    items, goal = rng.uniform(-1, 1, (20, count)), rng.uniform(-2, 2, 20)
    found = closest_subset(items, goal)
    for row, target, chosen, error in zip(items, goal, *found, strict=True):
        every = [abs(row[list(s)].sum() - target) for k in range(count + 1)
                 for s in itertools.combinations(range(count), k)]  # fmt: skip
        assert error == pytest.approx(min(every), abs=1e-14)
        assert abs(row[chosen].sum() - target) == error


@pytest.mark.parametrize("count", [1, 2, 6, 9])
def test_the_empty_subset_can_be_excluded(rng, count):
    items = rng.uniform(-1, 1, (15, count))
    found = closest_subset(items, np.zeros(15), nonempty=True)
    assert found.chosen.any(axis=1).all()
    np.testing.assert_allclose(
        found.error, np.abs(subset_sums(items))[:, 1:].min(axis=1), atol=1e-14
    )
    assert not closest_subset(items, np.zeros(15)).error.any()


def test_meeting_in_the_middle_against_milp(rng):
    """min t with −t ≤ Σ m_k x_k − w ≤ t over masks m; tolerances of the solver apart."""
    for _ in range(6):
        items, goal = rng.uniform(-1, 1, 11), rng.uniform(-1, 1)
        matrix = np.stack([np.append(items, -1.0), np.append(items, 1.0)])
        limits = LinearConstraint(matrix, [-np.inf, goal], [goal, np.inf])
        solved = milp(
            np.append(np.zeros(11), 1.0), integrality=np.append(np.ones(11), 0),
            bounds=Bounds(0, np.append(np.ones(11), np.inf)), constraints=limits,
            options={"mip_rel_gap": 0.0},
        )  # fmt: skip
        own = closest_subset(items[None], np.array([goal])).error[0]
        assert own <= solved.fun + 1e-9
        assert own == pytest.approx(solved.fun, abs=1e-6)


def test_masks_of_blocks_do_not_meet(rng):
    left, right = rng.uniform(-1, 1, (3, 24)), rng.uniform(-1, 1, (2, 24))
    target = rng.uniform(-0.5, 0.5, (3, 2))
    ticket = prune(left, right, target)
    np.testing.assert_array_equal(ticket.right_mask.sum(axis=0), 1)
    np.testing.assert_array_equal(ticket.right_mask.sum(axis=1), 12)
    product = (ticket.left_mask * left) @ (ticket.right_mask * right).T
    np.testing.assert_allclose(ticket.product, product, atol=1e-14)
    for i, j in itertools.product(range(3), range(2)):
        block = slice(12 * j, 12 * (j + 1))
        items = left[i, block] * right[j, block]
        best = np.abs(subset_sums(items) - target[i, j]).min()
        assert abs(product[i, j] - target[i, j]) == pytest.approx(best, abs=1e-14)


def test_attention_by_plain_loops(rng):
    tokens, scores, values = rng.standard_normal((5, 3)), *rng.standard_normal((2, 3, 3))
    found = attention(tokens, scores, values)
    for row, own in zip(tokens, found, strict=True):
        weights = np.exp([row @ scores @ other for other in tokens])
        np.testing.assert_allclose(own, weights / weights.sum() @ tokens @ values, atol=1e-12)


def test_bad_input(rng):
    with pytest.raises(InputError, match=f"at most {MOST_ITEMS}"):
        closest_subset(np.zeros((1, MOST_ITEMS + 1)), np.zeros(1))
    with pytest.raises(InputError, match="w a multiple of 2"):
        prune(np.zeros((3, 5)), np.zeros((2, 5)), np.zeros((3, 2)))
