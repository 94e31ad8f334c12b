"""The sequential test itself: its rate by exact recursion, and its power."""

import numpy as np
import pytest

from tests.sequential import p_value, sequential_test


def normal(shift, shape=(3,), scale=1.0):
    """Draws with mean ``shift``; every call with a new stream."""
    return lambda seed, batches: (
        shift
        + scale * np.random.default_rng([int(10 * shift), seed]).normal(size=(batches, *shape))
    )


@pytest.mark.parametrize(("alpha", "looks"), [(1e-5, 5), (1e-5, 7), (0.01, 3), (0.2, 2)])
def test_rate_is_at_most_alpha(alpha, looks, monkeypatch):
    """The exact chance for uniform p, over the thresholds the code really uses (bisected)."""

    def outcome(*p):
        feed = iter(p)
        monkeypatch.setattr(
            "tests.sequential.p_value", lambda *_: (next(feed), 0, np.zeros(1), np.ones(1))
        )
        try:
            return sequential_test(lambda *_: 0, 0, alpha=alpha, looks=looks).passed
        except StopIteration:
            return None  # it wants another look

    def edge(before, is_above):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if is_above(outcome(*before, middle)) else (middle, high)
        return high

    alarm, reached, before = 0.0, 1.0, []
    for _ in range(looks):
        fails = edge(before, lambda result: result is not False)
        passes = edge(before, lambda result: result is True)
        alarm += reached * fails
        reached *= passes - fails
        before.append((fails + passes) / 2)
    assert 0.99 * alpha < alarm <= alpha * (1 + 1e-9)
    assert reached < 1e-12


def test_a_wrong_mean_is_found_and_an_allowed_one_is_not():
    assert not sequential_test(normal(1.5), np.zeros(3)).passed
    assert sequential_test(normal(1.5), np.zeros(3), tolerance=1.6).passed
    assert not sequential_test(normal(1.5, scale=0.0), np.zeros(3)).passed
    assert sequential_test(normal(1.5, scale=0.0), np.full(3, 1.5)).passed


def test_p_value_refuses_what_it_cannot_compare():
    with pytest.raises(ValueError, match="expected"):
        p_value(np.zeros((4, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="finite"):
        p_value(np.full((4, 1), np.nan), np.zeros(1))


def test_fixture_names_the_worst_number(monte_carlo):
    expected = np.zeros((2, 2))
    expected[1, 0] = 3.0
    with pytest.raises(AssertionError, match=r"at \(1, 0\): simulated"):
        monte_carlo(normal(0.0, (2, 2)), expected)
    assert monte_carlo(normal(0.0, (2, 2)), np.zeros((2, 2))).passed
