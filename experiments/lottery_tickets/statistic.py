"""Rates, needed items, widths, scales and lengths of lottery tickets: one number a problem."""

from collections.abc import Mapping

import numpy as np

from sims.base.estimates import mcse
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import of_batches, slope
from sims.study.batches import stack_batches
from sims.study.results import Results

from .problems import ITEMS

FIRST = 1
"""Place of the items from which rates are fitted."""
PRINTED = 0.06
"""Rate in n_K of the printed fit."""
ONE = 0
"""Place of the fewest entries."""


def printed_decay(results: Results) -> np.ndarray:
    """Rates of the mean error in n_K, (problem, batch), over all widths.

    Linear in the batches, so that their mean is the rate of the mean error.
    """
    error = stack_batches(results, "mean_output")
    middle = error.mean(1, keepdims=True)
    width = results.predictions["law"]["dimension"].values[:, None] * ITEMS
    by = (width - width.mean(1, keepdims=True))[:, None]
    return np.asarray(-(by * (np.log(middle) + error / middle - 1)).sum(-1) / (by**2).sum(-1))


def falls_by_law(items: np.ndarray, log_error: np.ndarray) -> np.ndarray:
    """Falls of log errors (…, K) over those of ``√n′ 2^{−n′}``: 1 where the law holds."""
    return -fit_slope(items * np.log(2) - np.log(items) / 2, log_error)


def growth(results: Results) -> dict[str, np.ndarray]:
    """Needed items that a doubling of the entries, or a halving of ε, adds, (problem, part).

    Least squares in each part of theory's draws.
    """
    law = results.predictions["law"]
    needed = law["needed"].values
    middle = needed[..., needed.shape[2] // 2, :]
    by_accuracy = needed[..., ONE]
    return {
        "entries": fit_slope(np.log2(law["entries"].values), middle),
        "accuracies": fit_slope(-np.log2(law["accuracy_asked"].values), by_accuracy),
    }


def fit_slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least-squares slope of y (…, K) on x (K,)."""
    by = x - x.mean()
    return np.asarray((y * by).sum(-1) / (by**2).sum())


def effects(results: Results) -> Mapping[str, Effects]:
    """Falls, items and scales of errors, a number a problem."""
    law = results.predictions["law"]
    tolerance = house.TOLERANCES["slope"]
    far = falls_by_law(law["far"].values, law["log_largest"].values[..., ONE])
    fall = falls_by_law(ITEMS[FIRST:], stack_batches(results, "log_output")[..., FIRST:])
    made = {"rate": of_batches(fall - 1 + tolerance, predicted=far - 1 + tolerance)}
    nothing = np.empty(0)
    for name, parts in growth(results).items():
        room = 1 + tolerance - parts.mean(1)
        sure = abs(room) > house.CALLED * mcse(parts.T)
        made[name] = Effects(nothing, nothing, "share", room, sure)
    ratio = np.exp(stack_batches(results, "log_ratio")[..., FIRST:])
    scaled = stack_batches(results, "log_scaled")
    root, matched, usual = law["log_scaled"].values.T
    room = law["accuracy"].values[:, None, None] - stack_batches(results, "failed")
    lengths = stack_batches(results, "error_by_length")
    near = law["log_entry"].values.mean(1)[:, None]
    entry = stack_batches(results, "log_entry")[..., -2:].mean(-1)
    return made | {
        "blocks": slope(2.0 ** ITEMS[FIRST:], ratio, 0.0),
        "fit": of_batches(printed_decay(results) / PRINTED, kind="estimate"),
        "width": of_batches(room[..., 0]),
        "constant": of_batches(room[..., 1]),
        "larger": of_batches(scaled[..., 2] - scaled[..., 0], predicted=usual - root),
        "entry's scale": of_batches(scaled[..., 0] - scaled[..., 1], predicted=root - matched),
        "length": of_batches(_log_ratio(lengths[..., 1], lengths[..., 0]), kind="estimate"),
        "law": of_batches(entry - near, kind="estimate"),
    }


def _log_ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """log of a ratio of means, (problem, batch), to first order in the batches."""
    over = top.mean(1, keepdims=True)
    under = bottom.mean(1, keepdims=True)
    return np.asarray(np.log(over / under) + top / over - bottom / under)
