"""Subset sums and items needed of `lottery_tickets`."""

from itertools import combinations

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results

lottery = load_experiment("lottery_tickets")
effects, simulate = (lottery.module(name) for name in ("effects", "simulate"))
BATCHES = 8


def items_of(rng, entries, items):
    """Products vu of two numbers U[−1, 1]: v is an entry's own, u is shared down a column."""
    *lead, rows, columns = entries
    u = rng.uniform(-1, 1, (*lead, 1, columns, items))
    v = rng.uniform(-1, 1, (*lead, rows, columns, items))
    return u * v


def missed_by(items, target):
    """The distance of a target from the nearest sum of any of the items, of none at all, too."""
    sums = [sum(some) for k in range(len(items) + 1) for some in combinations(items, k)]
    return min(abs(value - target) for value in sums)


def test_logarithms_of_largest_errors_are_averaged_over_groups_of_entries():
    """``mean log max_{i ≤ N} |error_i|`` over sources, and over groups of N entries of a source."""
    own = {"d": 2, "reach": 0.5, "items": [2, 4], "counts": [1, 3, 6]}
    found = simulate.many(np.random.default_rng(3), 3, own)["log_error"]

    rng = np.random.default_rng(3)
    pool = items_of(rng, (3, 2, 2, 2), 4)
    goal = rng.uniform(-0.5, 0.5, pool.shape[:-1])
    for place, items in enumerate((2, 4)):
        errors = [
            [missed_by(pool[s][at][:items], goal[s][at]) for at in np.ndindex(2, 2, 2)]
            for s in range(3)
        ]
        for column, count in enumerate((1, 3, 6)):
            logs = [
                np.log(max(own_errors[first : first + count]))
                for own_errors in errors
                for first in range(0, 6, count)
            ]
            assert found[place, column] == pytest.approx(np.mean(logs))


def test_failures_are_draws_further_off_than_multiples_of_two_to_the_minus_items():
    """P(error > c·2^{−n'}) for n' items of U[−1, 1]², by all subsets."""
    multiples, items, entry, draws = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0], 4, 0.3, 40
    found = simulate.missed(
        np.random.default_rng(4), draws, ({"multiples": multiples}, items, entry)
    )["missed"]

    pool = items_of(np.random.default_rng(4), (draws, 1, 1), items)[:, 0, 0]
    errors = [missed_by(own, entry) for own in pool]
    shares = [sum(e > c / 2**items for e in errors) / draws for c in multiples]
    assert len(set(shares)) > 4
    np.testing.assert_allclose(found, shares)


def test_a_scale_has_the_error_of_the_median_draw():
    """Items are s²vu/√n_K; tried are n_K^¼, √(6|w|√d) and the rivals. Of an odd number of draws."""
    own, width, entry, draws = {"d": 2, "rivals": [0.5, 3.0]}, 8, -0.4, 9
    found = simulate.scaled(np.random.default_rng(5), draws, (own, width, entry))

    pool = items_of(np.random.default_rng(5), (draws, 1, 1), 4)[:, 0, 0]
    tried = [8**0.25, (6 * 0.4 * 2**0.5) ** 0.5, 0.5, 3.0]
    np.testing.assert_allclose(found["scale"], tried)
    for place, scale in enumerate(tried):
        errors = [missed_by(scale**2 * items / 8**0.5, entry) for items in pool]
        assert found["error"][place] == pytest.approx(sorted(errors)[4])


def test_items_needed_are_held_against_theory_and_rise_with_the_accuracy():
    """Curves ``log error = −(n' − a_N)/c_N · ln 2`` need ``a_N + c_N log₂(1/ε)`` items.

    At ε = 2^−11 by the number of entries, less theory's own; at N = 32, the last but one of four,
    the slope in log₂(1/ε) is c_32. Slopes are less 1.
    """
    items, counts = np.arange(2.0, 31.0, 4.0), np.array([2, 8, 32, 128])
    rng = np.random.default_rng(6)
    rate, start = np.array([0.8, 0.9, 1.2, 1.3]), np.array([2.0, 3.5, 3.0, 4.0])
    shifts = start + 1e-3 * rng.normal(size=(BATCHES, 4))
    logs = -(items[:, None] - shifts[:, None]) / rate * np.log(2)
    theory = -(items[:, None] - (start - [0.1, 0.2, 0.3, 0.4])) / rate * np.log(2)
    coords = {"searched": items, "count": counts}
    data = xr.Dataset({"log_error": (("batch", "searched", "count"), logs)}, coords)
    law = xr.Dataset({"log_error": (("searched", "count"), theory)}, coords)
    results = Results(
        "lottery_tickets",
        "smoke",
        {"many": data},
        {"many": law},
        {},
        {"many": {"part": "many"}},
        {},
        {},
    )
    found = effects.needed(results)

    wanted = shifts + 11 * rate
    (slope,) = found["items by entries"]
    fits = [np.polyfit(np.log2(counts), row, 1)[0] - 1 for row in wanted]
    np.testing.assert_allclose(slope.values, fits, atol=1e-9)
    (accuracy,) = found["items by accuracy"]
    np.testing.assert_allclose(accuracy.values, 0.2, atol=1e-9)
    for effect, count, column, more in zip(
        found["items needed"], counts, (shifts - start).T, (0.1, 0.2, 0.3, 0.4), strict=True
    ):
        assert effect.label == f"N = {count}"
        np.testing.assert_allclose(effect.values, column + more, atol=1e-9)
