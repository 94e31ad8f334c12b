"""Losses from a kept temperature, and the exponent of the best one in the number of keys."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, outcome, share, slope
from sims.study.batches import drawn_values
from sims.study.results import Results

from .rules import LOG, MATCHED, POWERS, SIMULATED

MIDDLE = "1.5-entmax"
"""The α-entmax that is compared with other rules."""


def simulated_errors(results: Results) -> xr.DataArray:
    """Errors at :data:`~.rules.SIMULATED` times the context, by problem, rule and temperature."""
    errors = results.estimates["tasks"]["error"].rename(problem="number")
    return errors.transpose("number", "rule", "temperature", "batch")


def with_matched(data: xr.Dataset | xr.DataArray, law: xr.Dataset) -> Any:
    """The data (number, rule, …) with one more rule, the α-entmax that matches the targets."""
    matched = of_power(data, law["smoothness"])
    return xr.concat([data, matched.assign_coords(rule=MATCHED)], "rule")


def of_power(data: xr.Dataset | xr.DataArray, power: xr.DataArray) -> Any:
    """The data (number, …) of the α-entmax of these powers, one for each problem."""
    names = {value: name for name, value in POWERS.items()}
    rules = [names[value] for value in power.values[: data.sizes["number"]]]
    return data.sel(rule=xr.DataArray(rules, dims="number"))


def losses(errors: xr.DataArray, temperature: str) -> np.ndarray:
    """Pseudo-values of a parameter's error over the least one, less 1, (number, …, batch)."""
    chosen, best = (errors.sel(temperature=name).values for name in (temperature, "best"))
    return ratio(chosen, best, axis=-1) - 1


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects."""
    law = results.predictions["law"]
    errors = simulated_errors(results)
    tolerance = conventions.TOLERANCES["methods"]
    terms = with_matched(law[["kept", "best", "known"]].sel(ratio=SIMULATED), law)
    every = with_matched(errors, law)

    def stays(rule: str, sign: int, tolerance: float = tolerance) -> Effects:
        """By how much the loss is below the tolerance, or above it."""
        chosen = terms.sel(rule=rule)
        stated = (chosen["kept"] / chosen["best"]).values - 1
        draws = sign * (tolerance - losses(every.sel(rule=rule), "kept"))
        known = chosen["known"].values.astype(bool)
        return share(draws, predicted=sign * (tolerance - stated), valid=known)

    learned = losses(every.sel(rule=MATCHED), "learned")
    swept = {}
    for limit in conventions.SWEPT:
        swept[f"matched stays, {limit:.0%}"] = stays(MATCHED, 1, limit)
        swept[f"softmax falls behind, {limit:.0%}"] = stays("softmax", -1, limit)
        swept[f"matched stays, learned, {limit:.0%}"] = share(limit - learned)
    return {
        **swept,
        "matched stays": stays(MATCHED, 1),
        "matched stays, learned": share(tolerance - learned),
        "softmax falls behind": stays("softmax", -1),
        "1.5-entmax against softmax": compare(errors, "softmax", "kept"),
        "1.5-entmax against top-k": compare(errors, "top-k", "kept"),
        "1.5-entmax against softmax, log n": compare(errors, "softmax" + LOG, "kept"),
        "re-tuned": compare(errors, "softmax", "best"),
        "exponent of the temperature": exponent_of_temperature(law),
    }


def compare(errors: xr.DataArray, other: str, temperature: str) -> Effects:
    """The share by which 1.5-entmax errs less than another rule, as an outcome."""
    here = errors.sel(temperature=temperature)
    one, two = (here.sel(rule=rule).values for rule in (MIDDLE, other))
    falls = 1 - ratio(one, two, axis=1)
    return replace(outcome(falls), size=-falls.mean(1))


def exponent_of_temperature(law: xr.Dataset) -> Effects:
    """True if the best temperature moves with n as stated, beyond the simulated n."""
    nu, beta, width = (law[name].values for name in ("power", "smoothness", "width"))
    stated = 2 * (beta / nu - 1) / (2 * beta + width)
    far = of_power(law[["tuned", "known"]].sel(ratio=slice(SIMULATED, None)), law["power"])
    sizes = far["ratio"].values * law["context"].values[:, None]
    known = far["known"].values.astype(bool).all(1)
    no_batches = np.empty((0, 2, 1))
    return slope(sizes, no_batches, stated, predicted=far["tuned"].values, valid=known)


def panels(results: Results) -> xr.Dataset:
    """Errors at the kept parameter over the least ones, by rule.

    ``stated`` by theory along the number of keys, and ``simulated`` at one of them.
    """
    law = results.predictions["law"]
    stated = with_matched(law["kept"] / law["best"], law)
    simulated = with_matched(simulated_errors(results), law)
    return xr.Dataset(
        {
            "stated": stated,
            "simulated": (("problem", "rule"), 1 + losses(simulated, "kept").mean(-1)),
        }
    )


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem."""
    return drawn_values(results)
