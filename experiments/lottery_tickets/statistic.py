"""Rates, needed items, widths and scales of lottery tickets: one number per problem."""

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse
from sims.judgement import conventions
from sims.judgement.effects import Effects, mean, share, slope
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

from .problems import ITEMS

FIRST = 1
"""Place of the items from which rates are fitted."""
PRINTED = 0.06
"""Rate in n_K of the printed fit."""
STRICT = 0.05
"""A smaller tolerance of added items."""
ONE = 0
"""Place of the fewest entries."""


def effects(results: Results) -> dict[str, Effects]:
    """Falls, items and scales of errors, a number per problem."""
    law = results.law
    tolerance = conventions.TOLERANCES["slope"]
    far = falls_by_law(law["far"], law["log_largest"][..., ONE])
    fall = falls_by_law(ITEMS[FIRST:], stack_batches(results, "log_output")[..., FIRST:])
    ratio = np.exp(stack_batches(results, "log_ratio")[..., FIRST:])
    needed = law["needed"]
    middle = needed[..., len(law["accuracy_asked"]) // 2, :]
    root, usual = np.moveaxis(stack_batches(results, "log_scaled"), -1, 0)
    law_root, law_usual = law["log_scaled"].T
    # In the width n_K, dimension × items.
    decay = -fit_slope(ITEMS, log_mean(stack_batches(results, "mean_output")))
    entry = stack_batches(results, "log_entry")[..., -2:].mean(-1)
    accuracies = fit_slope(-np.log2(law["accuracy_asked"]), needed[..., ONE])
    excess = entry - law["log_entry"].mean(1)[:, None]
    return {
        "rate": share(fall - 1 + tolerance, predicted=far - 1 + tolerance),
        "entries": at_most_one(fit_slope(np.log2(law["entries"]), middle)),
        "accuracies": at_most_one(accuracies),
        "accuracies, strict": at_most_one(accuracies, STRICT),
        "blocks": slope(2.0 ** ITEMS[FIRST:], ratio, 0.0),
        "fit": mean(decay / law["dimension"][:, None] / PRINTED),
        "width": share(law["accuracy"][:, None] - stack_batches(results, "failed")),
        "larger": share(usual - root, predicted=law_usual - law_root),
        "law": mean(excess),
    }


def falls_by_law(items: np.ndarray, log_error: np.ndarray) -> np.ndarray:
    """Falls of log errors (…, K) over those of ``√n′ 2^{−n′}``: 1 where the law holds."""
    return -fit_slope(items * np.log(2) - np.log(items) / 2, log_error)


def at_most_one(added: np.ndarray, tolerance: float = conventions.TOLERANCES["slope"]) -> Effects:
    """Room up to one added item, with a tolerance, by theory's parts (problem, part) alone.

    Items are added by a doubling of the entries, or a halving of ε.
    """
    room = 1 + tolerance - added.mean(1)
    sure = abs(room) > conventions.CALLED * mcse(added.T)
    return share(None, predicted=room, valid=sure)


def fit_slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least-squares slope of y (…, K) on x (K,)."""
    by = x - x.mean()
    return (y * by).sum(-1) / (by**2).sum()


def log_mean(values: np.ndarray) -> np.ndarray:
    """log of means, (problem, batch, …), as pseudo-values: to first order in the batches."""
    middle = values.mean(1, keepdims=True)
    return np.log(middle) + values / middle - 1


def panels(results: Results) -> xr.Dataset:
    """Mean log errors by candidates of an entry."""
    error = stack_batches(results, "log_output").mean(1)
    return xr.Dataset({"log_output": (("problem", "items"), error)})


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values but for the target's seed, one row per problem."""
    return drawn_values(results, "target")
