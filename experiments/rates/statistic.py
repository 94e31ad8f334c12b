"""Slopes of the error in the number of keys, of one head and of averages: one per problem."""

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse
from sims.judgement.effects import Effects, gap, slope
from sims.judgement.exponents import Exponents, exponents
from sims.study.batches import drawn_values
from sims.study.results import Results

from .pools import FITTED, POOLS

FAR = 5e7
"""Number of keys from which on exponents are those of the limit."""


def sizes(results: Results) -> np.ndarray:
    """The simulated numbers of keys, (K,): the first ones of theory."""
    return results.law["n"][: len(results.estimates)]


def simulated(results: Results) -> np.ndarray:
    """Batches of the error, (problem, batch, pool, K): one head, averaged heads."""
    errors = np.stack([results.estimates[f"n = {n:.0f}"]["mse"].values for n in sizes(results)], -1)
    return np.moveaxis(errors.reshape(len(errors), -1, 2, errors.shape[-1]), 0, 1)


def effects(results: Results) -> dict[str, Effects]:
    """How far slopes are inside the tolerance about those stated, and two gaps.

    Without nuisance coordinates averaged heads are one head: nothing is asked of them.
    """
    law = results.law
    sampled = simulated(results)
    stated = law["exponent"]
    error = law["error"]
    valid = law["in_range"]
    far = law["n"] > FAR
    n = law["n"][far]
    rival = np.log(np.log(n))
    not_simulated = np.empty((0, 2, len(n)))
    last = len(results.estimates) - 1
    effects_by_name = {
        # Three points tell no power of n from one of log n.
        f"common, {POOLS[0]}": slope(sizes(results), sampled[:, :, 0], stated),
        "roads": gap(sampled[:, :, 1, -1], error[:, 1, last], valid[:, 1, last]),
    }
    for place, pool in enumerate(POOLS):
        # Of ever more heads each attends to few keys.
        known = valid[:, place, far].min(1) if place < 2 else None
        effects_by_name[f"far, {pool}"] = slope(
            n, not_simulated, stated, rival, error[:, place, far], known
        )
    return effects_by_name


def panels(results: Results) -> xr.Dataset:
    """Slopes by theory, far and local less the stated exponent, and the fits to simulation."""
    law = results.law
    n = law["n"]
    far = n > FAR
    log_error = np.log(law["error"])
    local = np.diff(log_error) / np.diff(np.log(n)) - law["exponent"][:, None, None]
    arrays = {
        "stated": ("number", law["exponent"]),
        "slope": ("number", np.polyfit(np.log(n[far]), log_error[:, 0, far].T, 1)[0]),
        "local": (("separate", "pool", "middle"), local[law["nuisance"] > 0]),
        "middle": np.sqrt(n[1:] * n[:-1]),
    }
    fits = relative(results)
    for name in FITTED:
        values = np.array([getattr(fit, name) for fit in fits])
        arrays[name] = (("fit", f"of {name}")[: values.ndim], values)
    return xr.Dataset(arrays)


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values and the width of heads, one row per problem."""
    return drawn_values(results, "exponent")


def relative(results: Results) -> list[Exponents]:
    """Simulated exponents over the stated ones, of one head and of averaged ones.

    Both of the problems with nuisance coordinates, by least squares and hierarchically.
    """
    sampled = simulated(results)
    count = len(sampled)
    asked = results.law["nuisance"][:count] > 0
    batches = np.moveaxis(sampled[asked], 1, 0)
    x = sizes(results) ** results.law["exponent"][:count][asked, None]
    mean = batches.mean(0)
    error = mcse(batches)
    return [exponents(x, mean[:, k], error[:, k]) for k in (0, 1)]
