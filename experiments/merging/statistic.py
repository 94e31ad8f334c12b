"""Effect of merging on the error of heads: one number per problem."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from sims.base.estimates import Batches, jackknife, mcse
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.batches import stack_batches
from sims.study.results import Results

SHOWN = ("stride", "alike", "selectivity", "kernel", "gates", "keys", "width", "lengthscale")
CONDITIONS = ("noise_sd", "correlated", "in_range", "redraws")
TUNED = 1
SAME = 2
DRAWN = 3
"""Places of merged heads at their best temperature, at that of all keys, and at the drawn one."""


def compare(results: Results, statistic: Callable[[Batches], np.ndarray]) -> np.ndarray:
    """Batches (N, B) of a statistic of the errors, ``mse`` (…, heads)."""
    mse = np.moveaxis(stack_batches(results, "mse"), 1, 0)
    return jackknife({"mse": mse}, statistic).T


def rises(results: Results, heads: int = TUNED) -> np.ndarray:
    """By what share merged heads err more than heads over all keys, batches (N, B)."""
    return compare(results, lambda terms: terms["mse"][..., heads] / terms["mse"][..., 0] - 1)


def effects(results: Results) -> Mapping[str, Effects]:
    """Errors within the tolerance, the order of errors, and gaps to theory of merged heads."""
    law = results.predictions["law"]
    tuned = rises(results)
    size = tuned.mean(1)
    falls = compare(results, lambda terms: 1 - terms["mse"][..., 0] / terms["mse"][..., TUNED])
    order = {"draws": list(falls[..., None]), "size": size}
    gaps = {}
    for name in ("mse", "variance"):
        values = stack_batches(results, name)[..., DRAWN]
        gaps[name] = gap(values, law[name].values, law["in_range"].values.astype(bool))
    room = house.TOLERANCES["roads"]
    return {
        "competitive": of_batches(room - tuned, size=size),
        "competitive at the same temperature": of_batches(room - rises(results, SAME)),
        "dearer": Effects(falls.mean(1)[:, None], mcse(falls.T)[:, None], "outcome", **order),
        "gap of the error": gaps["mse"],
        "gap of the variance": replace(gaps["variance"], kind="estimate"),
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, one row per problem."""
    law = results.predictions["law"]
    return pd.DataFrame({name: law[name].values for name in (*SHOWN, *CONDITIONS)})
