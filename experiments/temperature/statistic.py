"""Losses from a kept temperature, exponents in the number of keys, gaps of the heads' terms."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches, slope
from sims.study.results import Results

POWERS = {"sparsemax": 1.0, "5/3-entmax": 1.5, "1.5-entmax": 2.0, "4/3-entmax": 3.0}
"""α-entmax by the power ν of its kernel."""
SIMULATED = 16
"""Number of keys over that of the tuned context that is simulated, and from which exponents are."""


def matched(of: np.ndarray) -> np.ndarray:
    """Names of the α-entmax of these powers."""
    names = {power: name for name, power in POWERS.items()}
    return np.array([names[power] for power in of])


def chosen(values: np.ndarray, rules: np.ndarray, names: np.ndarray | str) -> np.ndarray:
    """Values (M, …, rule, …) of one rule, or of one a problem; the axis of rules is the second."""
    places = np.array([rules.tolist().index(n) for n in np.broadcast_to(names, len(values))])
    return np.asarray(values[np.arange(len(values)), places])


def over(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Pseudo-values (N, B) of the ratio of two means over batches, by its linearisation."""
    quotient, mean = top.mean(1) / bottom.mean(1), bottom.mean(1, keepdims=True)
    return np.asarray(quotient[:, None] + (top - quotient[:, None] * bottom) / mean)


def simulated(results: Results) -> np.ndarray:
    """Batches of the errors, (problem, rule, temperature, batch): kept, best and learned ones."""
    errors = results.estimates["tasks"]["error"]
    return np.asarray(errors.transpose("problem", "rule", "temperature", "batch").values)


def terms(results: Results, name: str) -> np.ndarray:
    """Batches of a covariance that is averaged over the pair of heads, (problem, batch)."""
    few = slice(results.predictions["heads"].sizes["number"])
    power, keys = (results.predictions["law"][k].values[few] for k in ("power", "keys"))
    values: dict[int, np.ndarray] = {}
    for nu, n in {*zip(power, keys, strict=True)}:
        data = results.estimates[f"power {nu:g}, {n:g} keys"][f"integrated_{name}_covariance"]
        numbers = np.flatnonzero((power == nu) & (keys == n))
        values |= zip(numbers.tolist(), data.mean(("head", "head2")).values.T, strict=True)
    return np.stack([values[number] for number in sorted(values)])


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects."""
    law, heads, errors = (
        results.predictions["law"],
        results.predictions["heads"],
        simulated(results),
    )
    rules, here = law["rule"].values, law.sel(ratio=SIMULATED)
    at_kept, best = (here[name].values for name in ("kept", "best"))
    known = here["known"].values.astype(bool)
    beta, nu, width = (law[name].values for name in ("smoothness", "power", "width"))
    tolerance, few = house.TOLERANCES["roads"], slice(len(errors))

    def loss(names: np.ndarray | str, temperature: int, sign: int) -> Effects:
        """By how much the loss is above the tolerance, or below it, if the sign is −1."""
        first = names if isinstance(names, str) else names[few]
        one = chosen(errors, rules, first)
        theory = chosen(at_kept / best, rules, names) - 1
        return of_batches(
            sign * (over(one[:, temperature], one[:, 1]) - 1 - tolerance),
            predicted=sign * (theory - tolerance),
            valid=chosen(known, rules, names),
        )

    def against(other: str, values: np.ndarray, temperature: int, **fields: str) -> Effects:
        """The share by which 1.5-entmax errs less than another rule."""
        names = "1.5-entmax", other
        one, two = (chosen(errors, rules, name)[:, temperature] for name in names)
        theory = [chosen(values, rules, name) for name in names]
        valid = np.all([chosen(known, rules, name) for name in names], 0)
        predicted = 1 - theory[0] / theory[1]
        return of_batches(1 - over(one, two), predicted=predicted, valid=valid, **fields)

    far = law.sel(ratio=slice(SIMULATED, None))
    sizes, nothing = far["ratio"].values * far["context"].values[:, None], np.empty((0, 2, 1))

    def growth(name: str, expected: np.ndarray) -> Effects:
        values, sure = (chosen(far[k].values, rules, matched(nu)) for k in (name, "known"))
        return slope(sizes, nothing, expected, predicted=values, valid=sure.astype(bool).min(1))

    parts = {name: terms(results, name) for name in ("signal", "noise")}
    predicted = {name: heads[name].sel(theory="adaptive").values for name in parts}
    middle, size, inside = "1.5-entmax", heads["size"].values, heads["in_range"].values.astype(bool)
    accurate = heads["accurate"].values.astype(bool)
    off = heads["signal"].sel(theory="held").values / predicted["signal"] - 1
    sample = chosen(errors, rules, middle)[:, 0]
    return {
        "matched stays": loss(matched(beta), 0, -1),
        "matched stays, learned": loss(matched(beta), 2, -1),
        "softmax falls behind": loss("softmax", 0, 1),
        "1.5-entmax against softmax": against("softmax", at_kept, 0),
        "1.5-entmax against top-k": against("top-k", at_kept, 0),
        "re-tuned": against("softmax", best, 1, kind="estimate"),
        "exponent of the temperature": growth("tuned", 2 * (beta / nu - 1) / (2 * beta + width)),
        "exponent of the attended keys": growth("attended", 2 * nu / (2 * nu + width)),
        "error": gap(sample, chosen(at_kept, rules, middle), chosen(known, rules, middle)),
        "variance": gap(
            parts["signal"] + parts["noise"], predicted["signal"] + predicted["noise"], inside
        ),
        **{name: gap(values, predicted[name], inside) for name, values in parts.items()},
        "held radii": of_batches(
            np.full((len(errors), 2), np.nan), predicted=tolerance - np.abs(off), valid=inside
        ),
        "remainder": slope(size, nothing, -1.0, None, heads["gap"].values, accurate),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem; ``in_range`` is of the pair of heads, where simulated."""
    law, heads = results.predictions["law"], results.predictions["heads"]
    columns = {k: v.values for k, v in law.data_vars.items() if v.dims == ("number",)}
    inside = heads["in_range"].values.astype(float)
    return pd.DataFrame(columns).assign(in_range=np.resize(inside, law.sizes["number"]))
