"""Effect of merging on the error of heads: one number per problem."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, outcome, share
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

SHOWN = ("stride", "alike", "selectivity", "kernel", "gates", "keys", "width", "lengthscale")
CONDITIONS = ("noise_sd", "correlated", "in_range", "redraws")
TUNED, SAME, DRAWN = 1, 2, 3
"""Places of merged heads at their best temperature, at that of all keys, and at the drawn one."""


def compare(results: Results, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Batches (N, B) of a statistic of the errors (…, heads)."""
    mse = np.moveaxis(stack_batches(results, "mse"), 1, 0)
    return jackknife({"mse": mse}, lambda means: statistic(means["mse"])).T


def rises(results: Results, heads: int = TUNED) -> np.ndarray:
    """By what share merged heads err more than heads over all keys, batches (N, B)."""
    return compare(results, lambda mse: mse[..., heads] / mse[..., 0] - 1)


def effects(results: Results) -> Mapping[str, Effects]:
    """Errors within the tolerance, the order of errors, and gaps to theory of merged heads."""
    room = conventions.TOLERANCES["roads"]
    tuned = rises(results)
    size = tuned.mean(1)
    falls = compare(results, lambda mse: 1 - mse[..., 0] / mse[..., TUNED])
    return {
        "competitive": share(room - tuned, size=size),
        "competitive at the same temperature": share(room - rises(results, SAME)),
        "dearer": replace(outcome(falls), size=size),
        "gap of the error": gap_of(results, "mse"),
        "gap of the variance": replace(gap_of(results, "variance"), kind="mean"),
    }


def gap_of(results: Results, name: str) -> Effects:
    """Gap of theory in a term of merged heads at the drawn temperature."""
    law = results.predictions["law"]
    values = stack_batches(results, name)[..., DRAWN]
    return gap(values, law[name].values, law["in_range"].values)


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, one row per problem."""
    return drawn_values(results)[[*SHOWN, *CONDITIONS]]
