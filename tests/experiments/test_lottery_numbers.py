"""The numbers of `lottery_tickets`, by all subsets and plain loops, and its rates by hand."""

from itertools import product
from math import ceil, log

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import is_mean_of, is_ratio_of

EXPERIMENT = load_experiment("lottery_tickets", "standard")
effects, simulate = (EXPERIMENT.module(name) for name in ("effects", "simulate"))
BATCHES = 12


def nearest_sum(items, target):
    """Of all subsets of the items, the empty one among them."""
    sums = [np.dot(mask, items) for mask in product((0, 1), repeat=len(items))]
    return min(sums, key=lambda value: abs(value - target))


def pruned(pool, goal):
    """Matrices whose entries are the nearest sums of the pool's items (…, n')."""
    found = [nearest_sum(pool[place], goal[place]) for place in np.ndindex(goal.shape)]
    return np.reshape(found, goal.shape)


def head(tokens, score_matrix, value_matrix):
    """Attention of one input (T, d), query by query."""
    weights = [np.exp(tokens @ score_matrix.T @ query) for query in tokens]
    return np.array([w / w.sum() @ tokens @ value_matrix for w in weights])


def network(tokens, matrices):
    """A head, or several blocks ``x + head(x)``, of one input."""
    if len(matrices) == 1:
        return head(tokens, *matrices[0])
    for block in matrices:
        tokens = tokens + head(tokens, *block)
    return tokens


@pytest.mark.parametrize(("blocks", "bound"), [(1, False), (2, True)])
def test_errors_of_entries_and_of_outputs_by_all_subsets(blocks, bound):
    """The median entry's, and the median and the mean of the largest over inputs and tokens."""
    sources, d, own = 5, 2, {"items": [2, 4], "widest": 3, "inputs": 3, "length": 2, "bound": bound}
    shared = (own, d, "edge", blocks)
    found = simulate.curve(np.random.default_rng(7), sources, shared)

    rng = np.random.default_rng(7)
    goal = simulate.targets(rng, "edge", (sources, blocks, 2, d, d))
    pool = simulate.products(rng, goal.shape, 4)
    tokens = rng.standard_normal((sources, 3, 2, d))
    tokens *= (d if bound else 1) ** 0.5 / np.linalg.norm(tokens, axis=-1, keepdims=True)
    for place, (items, some) in enumerate([(2, 5), (4, 3)]):
        sums = pruned(pool[:some, ..., :items], goal[:some])
        largest = [
            max(
                np.linalg.norm(new - old)
                for x in tokens[source]
                for new, old in zip(network(x, sums[source]), network(x, goal[source]), strict=True)
            )
            for source in range(some)
        ]
        errors = sorted(abs(sums - goal[:some]).ravel())
        middle = (errors[len(errors) // 2 - 1] + errors[len(errors) // 2]) / 2
        assert found["median_entry"][place] == pytest.approx(middle)
        assert found["median_output"][place] == pytest.approx(sorted(largest)[some // 2])
        assert found["mean_output"][place] == pytest.approx(sum(largest) / some)


@pytest.mark.parametrize("heads", [1, 4])
def test_the_theorem_is_tried_at_its_printed_widths(heads):
    """Items n_K/d of ``C log(8Hα³d^{3/2}/ε)`` and ``C log(2Hαd^{3/2}/ε)``, α = √d; all subsets."""
    sources, d, tolerance, constant = 9, 2, 0.5, 0.8
    own = {"inputs": 2, "length": 3, "most": 14}
    shared = (own, d, heads, tolerance, constant)
    found = simulate.failed(np.random.default_rng(2), sources, shared)

    rng, alpha = np.random.default_rng(2), d**0.5
    goal = simulate.targets(rng, "edge", (sources, heads, 2, d, d))
    widths = [
        d * constant * log(8 * heads * alpha**3 * d**1.5 / tolerance),
        d * constant * log(2 * heads * alpha * d**1.5 / tolerance),
    ]
    sums = [
        pruned(simulate.products(rng, (sources, heads, d, d), ceil(width / d)), goal[:, :, part])
        for part, width in enumerate(widths)
    ]
    tokens = rng.standard_normal((sources, 2, 3, d))
    tokens *= alpha / np.linalg.norm(tokens, axis=-1, keepdims=True)
    errors = []
    for source in range(sources):
        gaps = [
            sum(
                head(x, sums[0][source, h], sums[1][source, h]) - head(x, *goal[source, h])
                for h in range(heads)
            )
            for x in tokens[source]
        ]
        errors.append(np.linalg.norm(gaps, axis=-1).max())
    # The fifth of nine is at the share 5/10 of their law.
    median = sorted(errors)[4]
    assert found["log_excess"] == pytest.approx(np.log(median / tolerance))
    assert found["failed"] == np.mean([error > tolerance for error in errors])


def test_errors_by_length_are_held_against_the_bound_by_tanh():
    """Weights change by ``2 tanh(ε/2)`` at most in sum, ε the largest change of a score; by loops.

    One item an entry moves the scores so far that ε would be another bound.
    """
    sources, d, sizes = 4, 2, [2, 5]
    own = {"d": d, "items": 1, "lengths": sizes}
    found = simulate.lengths(np.random.default_rng(3), sources, own)

    rng = np.random.default_rng(3)
    goal = simulate.targets(rng, "edge", (sources, 1, 2, d, d))[:, 0, 0]
    sums = pruned(simulate.products(rng, goal.shape, 1), goal)
    tokens = rng.standard_normal((sources, max(sizes), d))
    tokens *= d**0.5 / np.linalg.norm(tokens, axis=-1, keepdims=True)
    for place, length in enumerate(sizes):
        gaps, ratios = [], []
        for x, old, new in zip(tokens[:, :length], goal, sums, strict=True):
            gap = np.linalg.norm((head(x, new, np.eye(d)) - head(x, old, np.eye(d)))[0])
            moved = max(abs(x[0] @ (new - old) @ key) for key in x)
            gaps.append(gap)
            ratios.append(gap / (2 * d**0.5 * np.tanh(moved / 2)))
        assert found["error_by_length"][place] == pytest.approx(sum(gaps) / sources)
        assert found["over_bound"][place] == pytest.approx(max(ratios))


def test_rates_are_fitted_to_their_own_range_of_items():
    """Curves that bend have another rate from 12 to 20 items an entry than from 8 to 16."""
    rng, items = np.random.default_rng(4), np.array([4, 8, 12, 16, 20])
    laws = {
        "curve d=2 within B=1": 0.31,
        "curve d=4 within B=1": 0.17,
        "curve d=2 within B=2": 0.31,
        "curve d=2 products B=1": 0.29,
    }
    estimates, predictions, at = {}, {}, {}
    for name, law in laws.items():
        logs = -0.05 * items**1.4 + 0.1 * rng.standard_normal((BATCHES, 5))
        entries = np.exp(-0.5 * items + 0.1 * rng.standard_normal((BATCHES, 5)))
        curves = {
            "median_output": np.exp(logs),
            "median_entry": entries,
            "mean_output": 1.3 * np.exp(logs),
        }
        axes = ("batch", "per_entry")
        estimates[name] = xr.Dataset(
            {k: (axes, v) for k, v in curves.items()}, {"per_entry": items}
        )
        typical = np.exp(-0.45 * items) * rng.uniform(0.9, 1.1, 5)
        predictions[name] = xr.Dataset({"decay_rate": law, "median_entry": ("per_entry", typical)})
        _, d, target, blocks = name.split()
        at[name] = {"part": "curve", "d": int(d[2:]), "target": target, "blocks": int(blocks[2:])}
    results = Results("lottery_tickets", "standard", estimates, predictions, {}, at, {}, {})
    found = effects.curves(results)

    def decay(name, some):
        logs = np.log(estimates[name]["median_output"].values[:, some])
        return -np.array([np.polyfit(at[name]["d"] * items[some], row, 1)[0] for row in logs])

    early, late = slice(1, 4), slice(2, 5)
    single = [name for name in laws if at[name]["blocks"] == 1]
    for family, some in (("rate", early), ("rate, later", late)):
        for effect, name in zip(found[family], single, strict=True):
            is_mean_of(effect, decay(name, some) / laws[name] - 1)
            assert effect.at == {"target": at[name]["target"], "d": at[name]["d"]}
    for effect, name in zip(found["rate over the printed one"], single[:2], strict=True):
        is_mean_of(effect, decay(name, early) / 0.06 - 1)
    (blocks,) = found["rate of blocks"]
    one, two = (decay(f"curve d=2 within B={count}", early) for count in (1, 2))
    is_ratio_of(blocks, two, one, 1.0)
    for effect, (name, place) in zip(found["median entry"], product(single, range(5)), strict=True):
        entry = predictions[name]["median_entry"].values[place]
        is_mean_of(effect, np.log(estimates[name]["median_entry"].values[:, place] / entry))
        assert effect.at["items"] == items[place]
