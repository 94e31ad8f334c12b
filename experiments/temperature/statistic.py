"""Losses from a kept temperature, exponents in the number of keys, gaps of the heads' terms."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd

from sims.base.estimates import mcse, ratio
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches, slope
from sims.study.results import Results

from .rules import POWERS, SIMULATED

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
        kept: theory's errors at the kept parameter, (M, rule); ``best`` likewise the least ones.
        known: whether theory is in its range, (M, rule).
    """

    def __init__(self, results: Results) -> None:
        self.law = results.predictions["law"]
        dims = ("problem", "rule", "temperature", "batch")
        self.errors = results.estimates["tasks"]["error"].transpose(*dims).values
        self.rules = self.law["rule"].values.tolist()
        here = self.law.sel(ratio=SIMULATED)
        self.kept = here["kept"].values
        self.best = here["best"].values
        self.known = here["known"].values.astype(bool)

    def of_rule(self, values: np.ndarray, names: str | list[str]) -> np.ndarray:
        """Values (K, rule, …) of one rule, or of one rule per problem, (K, …)."""
        rows = np.arange(len(values))
        if isinstance(names, str):
            return np.asarray(values[:, self.rules.index(names)])
        return np.asarray(values[rows, [self.rules.index(names[row]) for row in rows]])

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
    tolerance = house.TOLERANCES["roads"]
    draws = sign * (sample.loss(names, temperature) - tolerance)
    if temperature != KEPT:
        return of_batches(draws)
    stated = sample.of_rule(sample.kept / sample.best, names) - 1
    known = sample.of_rule(sample.known, names)
    return of_batches(draws, predicted=sign * (stated - tolerance), valid=known)


def compare(sample: Sample, other: str, temperature: int) -> Effects:
    """The share by which 1.5-entmax errs less than another rule, as an outcome."""
    one, two = (sample.of_rule(sample.errors, name)[:, temperature] for name in (MIDDLE, other))
    falls = 1 - ratio(one, two, axis=1)
    value = falls.mean(1)
    error = mcse(falls.T)[:, None]
    return Effects(value[:, None], error, "outcome", draws=list(falls[..., None]), size=-value)


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
    inside, accurate = (heads[name].values.astype(bool) for name in ("in_range", "accurate"))
    variance = batches_of_term(results, "signal") + batches_of_term(results, "noise")
    signal = heads["signal"].sel(theory="adaptive").values
    noise = heads["noise"].sel(theory="adaptive").values
    off = np.abs(heads["signal"].sel(theory="held").values / signal - 1)
    room = house.TOLERANCES["roads"] - off
    nothing = np.full((len(off), 2), np.nan)
    sizes = heads["size"].values
    gaps = heads["gap"].values
    return {
        "variance": gap(variance, signal + noise, inside),
        "held radii": of_batches(nothing, predicted=room, valid=inside),
        "remainder": slope(sizes, np.empty((0, 2, 1)), -1.0, None, gaps, accurate),
    }


def batches_of_term(results: Results, name: str) -> np.ndarray:
    """Batches of a covariance that is averaged over the pair of heads, (problem, batch)."""
    count = results.predictions["heads"].sizes["number"]
    law = results.predictions["law"].isel(number=slice(count))
    taken: dict[str, int] = {}
    rows = []
    for power, keys in zip(law["power"].values, law["keys"].values, strict=True):
        # Problems of a unit are in the order of their numbers.
        unit = f"power {power:g}, {keys:g} keys"
        place = taken.get(unit, 0)
        taken[unit] = place + 1
        data = results.estimates[unit][f"integrated_{name}_covariance"]
        rows.append(data.isel(problem=place).mean(("head", "head2")).values)
    return np.stack(rows)


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem; ``in_range`` is of the pair of heads, where simulated."""
    law, heads = results.predictions["law"], results.predictions["heads"]
    columns = {k: v.values for k, v in law.data_vars.items() if v.dims == ("number",)}
    inside = heads["in_range"].values.astype(float)
    return pd.DataFrame(columns).assign(in_range=np.resize(inside, law.sizes["number"]))
