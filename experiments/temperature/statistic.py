"""Losses from a kept temperature, exponents in the number of keys, gaps of the heads' terms."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, outcome, share, slope
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
    nu, beta, width = (law[name].values for name in ("power", "smoothness", "width"))
    errors = simulated_errors(results)
    best_temperature = 2 * (beta / nu - 1) / (2 * beta + width)
    tolerance = conventions.TOLERANCES["roads"]
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
        "exponent of the temperature": fit_exponent(law, "tuned", best_temperature),
        "exponent of the attended keys": fit_exponent(law, "attended", 2 * nu / (2 * nu + width)),
        **compare_methods(results),
    }


def compare(errors: xr.DataArray, other: str, temperature: str) -> Effects:
    """The share by which 1.5-entmax errs less than another rule, as an outcome."""
    here = errors.sel(temperature=temperature)
    one, two = (here.sel(rule=rule).values for rule in (MIDDLE, other))
    falls = 1 - ratio(one, two, axis=1)
    return replace(outcome(falls), size=-falls.mean(1))


def fit_exponent(law: xr.Dataset, name: str, expected: np.ndarray) -> Effects:
    """True if a quantity grows with n at the expected exponent, beyond the simulated n."""
    far = of_power(law[[name, "known"]].sel(ratio=slice(SIMULATED, None)), law["power"])
    sizes = far["ratio"].values * law["context"].values[:, None]
    known = far["known"].values.astype(bool).all(1)
    no_batches = np.empty((0, 2, 1))
    return slope(sizes, no_batches, expected, predicted=far[name].values, valid=known)


def compare_methods(results: Results) -> dict[str, Effects]:
    """The terms of two averaged heads by simulation, first-order theory and exact theory."""
    heads = results.predictions["heads"]
    inside, accurate = (heads[name].values.astype(bool) for name in ("in_range", "accurate"))
    adaptive = heads.sel(theory="adaptive")
    variance = (adaptive["signal"] + adaptive["noise"]).values
    held = heads["signal"].sel(theory="held") / adaptive["signal"]
    room = conventions.TOLERANCES["roads"] - np.abs(held.values - 1)
    nothing = np.full((len(room), 2), np.nan)
    no_batches = np.empty((0, 2, 1))
    sizes = heads["size"].values
    return {
        "variance": gap(simulated_variance(results), variance, inside),
        "held radii": share(nothing, predicted=room, valid=inside),
        "remainder": slope(sizes, no_batches, -1.0, None, heads["gap"].values, accurate),
    }


def simulated_variance(results: Results) -> np.ndarray:
    """Batches of the variance of the average of the pair of heads, (problem, batch)."""
    count = results.predictions["heads"].sizes["number"]
    pairs = drawn_values(results)[["power", "keys"]].iloc[:count]
    # Problems of a unit are in the order of their numbers.
    places = pairs.groupby(["power", "keys"]).cumcount()
    rows = []
    for power, keys, place in zip(pairs["power"], pairs["keys"], places, strict=True):
        unit = results.estimates[f"power {power:g}, {keys:g} keys"]
        means = unit.isel(problem=place).mean(("head", "head2"))
        terms = means["integrated_signal_covariance"] + means["integrated_noise_covariance"]
        rows.append(terms.values)
    return np.stack(rows)


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
    """What the law drew, a row a problem; ``in_range`` is of the pair of heads, where simulated."""
    frame = drawn_values(results)
    inside = results.predictions["heads"]["in_range"].values.astype(float)
    return frame.assign(in_range=np.resize(inside, len(frame)))
