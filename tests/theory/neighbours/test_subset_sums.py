"""Laws of subset sums against characteristic functions, counting and the exact solver."""

import numpy as np
import pytest

from experiments.lottery_tickets.pruning import closest_sum, subset_sums
from sims.theory.neighbours import subset_sums as laws

pytestmark = pytest.mark.theory


def items_of(draws, count, seed=0):
    return laws.products(np.random.default_rng(seed), draws, count)


def errors_of(items, entry):
    """Of the exact solver."""
    return np.abs(closest_sum(items, np.full(len(items), entry)) - entry)


def test_density_by_characteristic_function():
    """Fourier inversion of Π(1 + e^{iθx}), smoothed by a narrow normal kernel."""
    items, width = items_of(1, 24)[0], 0.03
    theta = np.linspace(-6 / width, 6 / width, 40001)
    phi = np.prod(1 + np.exp(1j * theta[:, None] * items), axis=1)
    low, high = laws.reach(items)
    for entry in low + (high - low) * np.array([0.15, 0.4, 0.5, 0.8]):
        kernel = np.exp(-1j * theta * entry - (theta * width) ** 2 / 2)
        exact = np.trapezoid((phi * kernel).real, theta) / (2 * np.pi)
        near = entry + width * np.linspace(-5, 5, 201)
        weights = np.exp(-((near - entry) ** 2) / (2 * width**2))
        smooth = laws.density(np.broadcast_to(items, (201, 24)), near) @ weights / weights.sum()
        assert smooth == pytest.approx(exact, rel=2 / 24)  # the next order is 1/n'


def test_density_by_counting():
    """Where few sums lie, and where none."""
    items = items_of(1, 18, seed=3)[0]
    sums = subset_sums(items)
    low, high = laws.reach(items)
    assert (low, high) == (pytest.approx(sums.min()), pytest.approx(sums.max()))
    tail = low + 0.02 * (high - low)
    counted = (np.abs(sums - tail) < 0.05).mean() * 2**18 / 0.1
    assert laws.density(items, tail) < 2 * counted
    assert laws.density(items, high + 0.1) == 0


def test_saddlepoint_solves_its_equation():
    items = items_of(50, 12)
    low, high = laws.reach(items)
    for share in (0.001, 0.3, 0.99):
        entry = low + share * (high - low)
        t = laws.tilt(items, entry)
        mean = (items / (1 + np.exp(-t[:, None] * items))).sum(1)
        np.testing.assert_allclose(mean, entry, atol=1e-8)


def test_failures_by_the_exact_solver():
    """4,000 draws at 16 items: 4 standard errors (6e-5 a case) and 0.02 for the Poisson law."""
    for entry, multiple in ((0.5, 3), (1.8, 10)):
        eps = multiple * 2.0**-16
        error = errors_of(items_of(4000, 16, seed=1), entry)
        missed = laws.miss_probability(items_of(4000, 16, seed=2), np.full(4000, entry), eps)
        law = missed.mean(-1)
        spread = np.sqrt(2 * law * (1 - law) / 4000)
        assert abs((error > eps).mean() - law) < 4 * spread + 0.02
    beyond = laws.miss_probability(np.array([[0.5, 0.2]]), np.array([1.0]), 0.29)
    assert beyond == 1
    assert laws.miss_probability(np.array([[0.5, 0.2]]), np.array([1.0]), 0.31) == 0


def test_median_error_halves_with_an_item():
    entry, log = np.full(2000, 0.3), np.linspace(-40, 5, 601)
    misses = []
    for n in (12, 16, 20):
        misses.append(laws.miss_probability(items_of(2000, n), entry, np.exp(log)).mean(-1))
    medians = [np.exp(np.interp(-0.5, -miss, log)) for miss in misses]
    steps = -np.diff(np.log(medians)) / 4
    assert np.all(abs(steps / np.log(2) - 1) < 0.1)
    found = np.median(errors_of(items_of(2000, 12, seed=7), 0.3))
    assert found == pytest.approx(medians[0], rel=0.2)


def test_largest_of_many_entries():
    """The mean log of the largest of 8 exact errors, at 12 items."""
    error = errors_of(items_of(8000, 12, seed=4), 0.4)
    log = np.log(error.reshape(-1, 8).max(1))
    law = laws.log_error(items_of(4000, 12, seed=5), np.full(4000, 0.4), 8)
    assert abs(log.mean() - law) < 4 * log.std() / len(log) ** 0.5 + 0.1  # the law's own error
    single = laws.log_error(items_of(4000, 12, seed=5), np.full(4000, 0.4), 1)
    assert law > single + np.log(8) - 1


def test_best_scale_by_the_exact_solver():
    """Typical error (geometric mean) at theory's scale, and at half and twice of it."""
    for entry in (0.2, 0.8):
        best = 6 * entry / np.sqrt(14)
        typical = []
        for factor in (0.5, 1, 2):
            items = best * factor * items_of(1500, 14, seed=8)
            typical.append(np.log(errors_of(items, entry)).mean())
        assert typical[1] == min(typical)
