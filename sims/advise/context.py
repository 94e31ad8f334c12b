"""Advice on context: the cost of keeping a temperature as the number of keys grows.

To leading order in any dimension d of what a head sees, for distance scores (for dot products: keys
of equal norm, in one dimension less): docs/theory/context_length.md, "Exponents".
"""

import re
from dataclasses import dataclass

import numpy as np
import xarray as xr

from sims.base.checks import check_within
from sims.base.errors import InputError, one_of
from sims.theory.neighbours.context import ENTMAX, RULES

LOG = "softmax, log n"
"""Softmax whose scores are multiplied by log n over the logarithm of the tuned context."""
NAMES = ("softmax", LOG, *ENTMAX)
MOST = 2.0**40
"""Largest context length."""
SMOOTHNESS = (1.0, 1.5, 2.0)
DIMENSIONS = (1, 2, 4, 8, 16, 64)
SUFFIXES = {"": 1, "k": 1024, "m": 1024**2}


@dataclass(frozen=True)
class ContextAdvice:
    """Costs of a kept temperature, to leading order, and the rule with the lowest.

    Attributes:
        short: number of keys at which the temperature was tuned.
        long: number of keys at which it is used.
        rule: the requested rule.
        costs: ``cost`` (rule, dimension, smoothness), the error at the long context over that of
            the same rule re-tuned there, and ``factor`` (dimension, smoothness), by which re-tuning
            multiplies the temperature of softmax.
        repair: the rule whose largest cost is least.
    """

    short: int
    long: int
    rule: str
    costs: xr.Dataset
    repair: str

    def sentences(self) -> list[str]:
        """Sentences of the advice."""
        log = np.log(self.short) / np.log(self.long)
        cost = self.costs["cost"]

        def span(values: xr.DataArray) -> str:
            return f"{float(values.min()):.3g} to {float(values.max()):.3g}"

        lines = [
            f"{self.rule} tuned at {self.short:,} keys and kept at {self.long:,} errs "
            f"{span(cost.sel(rule=self.rule))} times as much as when re-tuned.",
            f"Re-tuning softmax multiplies its temperature by {span(self.costs['factor'])} "
            f"(less if the keys fill more dimensions); log n scaling by {log:.3g}.",
        ]
        mean = cost.mean("smoothness")
        helped = mean["dimension"].values[(mean.sel(rule=LOG) < mean.sel(rule="softmax")).values]
        most = f"up to {helped.max()} dimensions" if len(helped) else "nowhere"
        lines.append(f"Log n scaling errs less than a kept softmax {most}.")
        if self.repair == self.rule:
            lines.append("No other rule loses less when its temperature is kept.")
        else:
            kept = span(cost.sel(rule=self.repair))
            lines.append(f"Least cost at worst: {self.repair}, {kept} times.")
        return lines


def read_context(text: str) -> tuple[int, int]:
    """Two numbers of keys from a text such as ``4k:128k``; k is 1024 and m is 1024².

    Raises:
        InputError: the text is not two increasing numbers from 16 to 2⁴⁰.
    """
    match = re.fullmatch(r"(\d{1,13})([km]?):(\d{1,13})([km]?)", text.strip().lower())
    if match:
        short, long = (int(match[i]) * SUFFIXES[match[i + 1]] for i in (1, 3))
        if 16 <= short < long <= MOST:
            return short, long
    raise InputError("--context", text, "SHORT:LONG, such as 4k:128k, 16 to 2^40, SHORT < LONG")


def advise_context(short: int, long: int, rule: str = "softmax") -> ContextAdvice:
    """Cost of keeping a temperature that was tuned at fewer keys, to leading order.

    Args:
        short: number of keys at which it was tuned.
        long: number of keys at which it is used.
        rule: softmax, ``softmax, log n``, sparsemax, 5/3-, 1.5- or 4/3-entmax.

    Raises:
        InputError: the rule is unknown, or the numbers are out of range.
    """
    if rule not in NAMES:
        raise InputError("--rule", rule, one_of(NAMES, rule))
    check_within("--context", short, 16, MOST)
    check_within("--context", long, short + 1, MOST)
    dimension = xr.DataArray(list(DIMENSIONS), dims="dimension")
    smoothness = xr.DataArray(list(SMOOTHNESS), dims="smoothness")
    cost = leading_order(dimension, smoothness, short, long)
    factor = (long / short) ** (-2 / (2 * smoothness + dimension))
    costs = xr.Dataset({"cost": cost, "factor": factor}).assign_coords(
        dimension=dimension, smoothness=smoothness
    )
    repair = cost.max(("dimension", "smoothness")).idxmin().item()
    return ContextAdvice(short, long, rule, costs, str(repair))


def leading_order(
    dimension: xr.DataArray, smoothness: xr.DataArray, short: float, long: float
) -> xr.DataArray:
    """Kept over re-tuned error along ``rule``, to leading order.

    The error is ``A h^{2β} + B/(n h^d)``. After tuning, its two parts have the ratio d : 2β. A kept
    softmax keeps h; log n scaling multiplies h² by ``log n`` of the short context over that of the
    long one; α-entmax has ``h ∝ n^{−1/(2ν+d)}``.

    Args:
        dimension: d of the coordinates that the head sees.
        smoothness: β, at most 2.
        short: number of keys at which the temperature was tuned.
        long: number of keys at which it is used.
    """
    ratio = long / short
    radii = {"softmax": 1.0, LOG: (np.log(short) / np.log(long)) ** 0.5}
    for name in ENTMAX:
        radii[name] = ratio ** (-1 / (2 * RULES[name] + dimension))
    share = dimension / (2 * smoothness)
    best = (share + 1) * ratio ** (-2 * smoothness / (2 * smoothness + dimension))
    costs = []
    for h in radii.values():
        costs.append((share * h ** (2 * smoothness) + h**-dimension / ratio) / best)
    return xr.concat(costs, xr.DataArray(list(radii), dims="rule", name="rule"))
