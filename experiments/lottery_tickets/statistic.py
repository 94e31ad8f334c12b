"""Rates, needed items, widths, scales and lengths of lottery tickets: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches, slope
from sims.study.results import Results

from .problems import ITEMS

FIRST = 1
"""Place of the items from which rates are fitted."""
PRINTED = 0.06
"""Rate in n_K of the printed fit."""
ONE = 0
"""Place of the fewest entries."""


def simulated(results: Results, name: str) -> np.ndarray:
    """Batches of a variable, (problem, batch, …)."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def decay(results: Results, name: str, first: int = 0) -> np.ndarray:
    """Rates of errors in n_K, (problem, batch), from that place of the items on.

    Linear in the batches, so that their mean is the rate of the mean error.
    """
    error = simulated(results, name)[..., first:]
    middle = error.mean(1, keepdims=True)
    width = results.predictions["law"]["dimension"].values[:, None] * ITEMS[first:]
    by = width - width.mean(1, keepdims=True)
    rate = (by[:, None] * (np.log(middle) + error / middle - 1)).sum(-1) / (by**2).sum(1)[:, None]
    return np.asarray(-rate)


def growth(results: Results) -> dict[str, np.ndarray]:
    """Needed items that a doubling of the entries, or a halving of ε, adds: least squares, (M,)."""
    law = results.predictions["law"]
    asked = law["accuracy_asked"].values
    needed = {
        "entries": (law["entries"].values, law["needed"].values[:, len(asked) // 2]),
        "accuracies": (1 / asked, law["needed"].values[..., ONE]),
    }
    return {name: np.polyfit(np.log2(x), items.T, 1)[0] for name, (x, items) in needed.items()}


def effects(results: Results) -> Mapping[str, Effects]:
    """Slopes are in units of an item: with x = 2^n′ the rate ln 2/d is the slope −1."""
    law = results.predictions["law"]
    far, curves = law["far"].values, np.exp(law["log_largest"].values[..., ONE])
    nothing, made = np.empty(0), {}
    made["rate"] = slope(2.0**far, np.empty((0, 2, len(far))), -1.0, np.log(far), curves)
    for name, items in growth(results).items():
        room = 1 + house.TOLERANCES["slope"] - items
        made[name] = Effects(nothing, nothing, "share", room)
        made[f"items by {name}"] = Effects(nothing, nothing, "estimate", items)
    ratio = np.exp(simulated(results, "log_ratio")[..., FIRST:])
    names = ("log_scaled", "failed", "error_by_length", "log_entry")
    scaled, failed, lengths, entry = (simulated(results, name) for name in names)
    root, matched, usual = (law["log_scaled"].values[:, k] for k in range(3))
    near = law["log_entry"].values.mean(1)[:, None]
    room, stated = law["accuracy"].values[:, None, None] - failed, np.log(2) / law["dimension"]
    return made | {
        "common": gap(decay(results, "median_output", FIRST), stated.values),
        "blocks": slope(2.0 ** ITEMS[FIRST:], ratio, 0.0),
        "fit": gap(decay(results, "mean_output"), np.full(len(matched), PRINTED)),
        "width": of_batches(room[..., 0]),
        "constant": of_batches(room[..., 1]),
        "larger": of_batches(scaled[..., 2] - scaled[..., 0], predicted=usual - root),
        "entry's scale": of_batches(scaled[..., 0] - scaled[..., 1], predicted=root - matched),
        "length": of_batches(_log_ratio(lengths[..., 1], lengths[..., 0]), kind="estimate"),
        "law": of_batches(entry[..., -2:].mean(-1) - near, kind="gap"),
    }


def _log_ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """log of a ratio of means, (problem, batch), to first order in the batches."""
    means = top.mean(1, keepdims=True), bottom.mean(1, keepdims=True)
    return np.asarray(np.log(means[0] / means[1]) + top / means[0] - bottom / means[1])


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem."""
    law = results.predictions["law"].drop_vars("target")
    return pd.DataFrame({k: v.values for k, v in law.items() if v.dims == ("number",)})
