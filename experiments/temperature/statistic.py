"""Losses from a kept temperature, exponents in the number of keys, gaps of the heads' terms."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, outcome, share, slope
from sims.study.batches import drawn_values
from sims.study.results import Results

from .rules import MATCHED, POWERS, SIMULATED

KEPT, BEST, LEARNED = range(3)
"""Places of the simulated parameters: tuned by theory at the context, best by theory, learned."""
MIDDLE = "1.5-entmax"
"""The α-entmax that is compared with other rules."""


class Sample:
    """Errors of every rule at :data:`~.rules.SIMULATED` times the context, by both methods.

    Attributes:
        law: theory of all M problems.
        errors: simulated batches, (N, rule, temperature, batch).
        rules: names of the rules.
    """

    def __init__(self, results: Results) -> None:
        self.law = results.predictions["law"]
        dims = ("problem", "rule", "temperature", "batch")
        self.errors = results.estimates["tasks"]["error"].transpose(*dims).values
        self.rules = self.law["rule"].values.tolist()

    def of_rule(self, values: np.ndarray, names: str | list[str]) -> np.ndarray:
        """Values (K, rule, …) of one rule, or of one rule per problem, (K, …)."""
        if isinstance(names, str):
            return values[:, self.rules.index(names)]
        places = [self.rules.index(name) for name in names[: len(values)]]
        return values[np.arange(len(values)), places]

    def matched(self, field: str) -> list[str]:
        """Name of the α-entmax whose power is this field of the law, for each problem."""
        names = {power: name for name, power in POWERS.items()}
        return [names[power] for power in self.law[field].values]

    def loss(self, names: str | list[str], temperature: int) -> np.ndarray:
        """Pseudo-values of a parameter's error over the least one, less 1, (N, batch)."""
        errors = self.of_rule(self.errors, names)
        return ratio(errors[:, temperature], errors[:, BEST], axis=1) - 1


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects."""
    sample = Sample(results)
    nu, beta, width = (sample.law[name].values for name in ("power", "smoothness", "width"))
    matched = sample.matched("smoothness")
    best_temperature = 2 * (beta / nu - 1) / (2 * beta + width)
    return {
        "matched stays": hold_loss(sample, matched, KEPT, "below"),
        "matched stays, learned": hold_loss(sample, matched, LEARNED, "below"),
        "softmax falls behind": hold_loss(sample, "softmax", KEPT, "above"),
        "1.5-entmax against softmax": compare(sample, "softmax", KEPT),
        "1.5-entmax against top-k": compare(sample, "top-k", KEPT),
        "re-tuned": compare(sample, "softmax", BEST),
        "exponent of the temperature": fit_exponent(sample, "tuned", best_temperature),
        "exponent of the attended keys": fit_exponent(
            sample, "attended", 2 * nu / (2 * nu + width)
        ),
        **compare_methods(results),
    }


def hold_loss(
    sample: Sample, names: str | list[str], temperature: int, side: Literal["above", "below"]
) -> Effects:
    """By how much the loss is on this side of the tolerance; theory knows kept parameters alone."""
    sign = 1 if side == "above" else -1
    tolerance = conventions.TOLERANCES["roads"]
    draws = sign * (sample.loss(names, temperature) - tolerance)
    if temperature != KEPT:
        return share(draws)
    here = sample.law.sel(ratio=SIMULATED)
    stated = sample.of_rule((here["kept"] / here["best"]).values, names) - 1
    known = sample.of_rule(here["known"].values.astype(bool), names)
    return share(draws, predicted=sign * (stated - tolerance), valid=known)


def compare(sample: Sample, other: str, temperature: int) -> Effects:
    """The share by which 1.5-entmax errs less than another rule, as an outcome."""
    one, two = (sample.of_rule(sample.errors, name)[:, temperature] for name in (MIDDLE, other))
    falls = 1 - ratio(one, two, axis=1)
    return replace(outcome(falls), size=-falls.mean(1))


def fit_exponent(sample: Sample, name: str, expected: np.ndarray) -> Effects:
    """True if a quantity grows with n at the expected exponent, beyond the simulated n."""
    far = sample.law.sel(ratio=slice(SIMULATED, None))
    sizes = far["ratio"].values * far["context"].values[:, None]
    names = sample.matched("power")
    values = sample.of_rule(far[name].values, names)
    known = np.asarray(sample.of_rule(far["known"].values.astype(bool), names).all(1))
    return slope(sizes, np.empty((0, 2, 1)), expected, predicted=values, valid=known)


def compare_methods(results: Results) -> dict[str, Effects]:
    """The terms of two averaged heads by simulation, first-order theory and exact theory."""
    heads = results.predictions["heads"]
    inside = heads["in_range"].values.astype(bool)
    accurate = heads["accurate"].values.astype(bool)
    simulated = batches_of_term(results, "signal") + batches_of_term(results, "noise")
    adaptive = heads.sel(theory="adaptive")
    held = heads["signal"].sel(theory="held").values
    signal = adaptive["signal"].values
    room = conventions.TOLERANCES["roads"] - np.abs(held / signal - 1)
    nothing = np.full((len(room), 2), np.nan)
    no_batches = np.empty((0, 2, 1))
    gaps = heads["gap"].values
    return {
        "variance": gap(simulated, signal + adaptive["noise"].values, inside),
        "held radii": share(nothing, predicted=room, valid=inside),
        "remainder": slope(heads["size"].values, no_batches, -1.0, None, gaps, accurate),
    }


def batches_of_term(results: Results, name: str) -> np.ndarray:
    """Batches of a covariance that is averaged over the pair of heads, (problem, batch)."""
    count = results.predictions["heads"].sizes["number"]
    pairs = drawn_values(results)[["power", "keys"]].iloc[:count]
    # Problems of a unit are in the order of their numbers.
    places = pairs.groupby(["power", "keys"]).cumcount()
    rows = []
    for power, keys, place in zip(pairs["power"], pairs["keys"], places, strict=True):
        unit = results.estimates[f"power {power:g}, {keys:g} keys"]
        data = unit[f"integrated_{name}_covariance"].isel(problem=place)
        rows.append(data.mean(("head", "head2")).values)
    return np.stack(rows)


def panels(results: Results) -> xr.Dataset:
    """Errors at the kept parameter over the least ones by rule, and the best temperature's slopes.

    ``stated`` by theory along the number of keys, ``simulated`` at one of them, and ``exponent`` by
    least squares from there on.
    """
    sample = Sample(results)
    names: dict[str, str | list[str]] = {rule: rule for rule in sample.rules}
    names[MATCHED] = sample.matched("smoothness")
    loss = (sample.law["kept"] / sample.law["best"]).values
    stated = [sample.of_rule(loss, name) for name in names.values()]
    simulated = [1 + sample.loss(name, KEPT).mean(1) for name in names.values()]
    far = sample.law.sel(ratio=slice(SIMULATED, None))
    best = np.log(sample.of_rule(far["tuned"].values, sample.matched("power")))
    arrays = {
        "stated": (("rule", "number", "ratio"), np.stack(stated)),
        "simulated": (("rule", "problem"), np.stack(simulated)),
        "exponent": ("number", np.polyfit(np.log(far["ratio"].values), best.T, 1)[0]),
    }
    return xr.Dataset(arrays, {"rule": [*names], "ratio": sample.law["ratio"].values})


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem; ``in_range`` is of the pair of heads, where simulated."""
    frame = drawn_values(results)
    inside = results.predictions["heads"]["in_range"].values.astype(float)
    return frame.assign(in_range=np.resize(inside, len(frame)))
