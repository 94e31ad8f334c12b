"""Advice on context: the cost of keeping a temperature as the number of keys grows.

Theory uses distance scores (for dot products: keys of equal norm, in one dimension less).
The *leading order* holds in any dimension d of what a head sees: docs/theory/context_length.md,
"Exponents". The *first order* of :mod:`sims.theory.neighbours.context` is at these numbers of
keys, in one and two dimensions, over targets of three smoothnesses.
"""

import re
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr

from sims.base.checks import check_within
from sims.base.errors import InputError, one_of
from sims.theory import FEW_KEYS
from sims.theory.neighbours.context import ENTMAX, RULES, Problems, tables

LOG = "softmax, log n"
"""Softmax whose scores are multiplied by log n over the logarithm of the tuned context."""
NAMES = ("softmax", LOG, *ENTMAX)
MOST = 2.0**40
"""Largest context length."""
TASKS = 24
"""Number of targets of each smoothness, with one query each."""
WAVES = 9
"""Number of waves of a target."""
RADII = {1: np.geomspace(5e-4, 7, 110), 2: np.geomspace(5e-3, 7, 80)}
TEMPERATURES = np.geomspace(1e-4, 1e3, 280)
SMOOTHNESS = (1.0, 1.5, 2.0)
DIMENSIONS = (1, 2, 4, 8, 16, 64)
HALF = 0.5
"""Minimum share of targets in theory's range for which costs are shown."""
SUFFIXES = {"": 1, "k": 1024, "m": 1024**2}


@dataclass(frozen=True)
class ContextAdvice:
    """Costs of a kept temperature, and the rule with the lowest.

    Attributes:
        short: number of keys at which the temperature was tuned.
        long: number of keys at which it is used.
        rule: the requested rule.
        first_order: ``cost`` (width, smoothness, rule): the error at the long context over that of
            the same rule re-tuned there, median over targets; ``against``, over the
            least re-tuned error of all rules; ``in_range``, the share of targets in theory's range.
        leading: ``cost`` (dimension, smoothness, rule) and ``factor`` (dimension, smoothness) of
            softmax, to leading order.
        repair: the rule whose kept error is least in most cells of ``first_order`` that are in
            theory's range (for half of the targets or more); "" if none is.
    """

    short: int
    long: int
    rule: str
    first_order: xr.Dataset
    leading: xr.Dataset
    repair: str

    def sentences(self) -> list[str]:
        """Sentences of the advice."""
        log = np.log(self.short) / np.log(self.long)

        def span(values: xr.DataArray) -> str:
            return f"{float(values.min()):.3g} to {float(values.max()):.3g}"

        first = self.first_order
        lines = [
            f"{self.rule} tuned at {self.short:,} keys and kept at {self.long:,} errs "
            f"{span(first['cost'].sel(rule=self.rule))} times as much as when re-tuned (d = 1, 2).",
            f"Re-tuning softmax multiplies its temperature by {span(self.leading['factor'])} "
            f"(less if the keys fill more dimensions); log n scaling by {log:.3g}.",
        ]
        cost = self.leading["cost"].mean("smoothness")
        helped = cost["dimension"].values[(cost.sel(rule=LOG) < cost.sel(rule="softmax")).values]
        most = f"up to {helped.max()} dimensions" if len(helped) else "nowhere"
        lines.append(f"To leading order log n scaling errs less than a kept softmax {most}.")
        if not self.repair:
            lines.append("First-order theory is out of its range here; try a longer context.")
        elif self.repair == self.rule:
            lines.append("No other rule errs less when its temperature is kept.")
        else:
            against = first["against"]
            gain = against.sel(rule=self.rule) / against.sel(rule=self.repair)
            lines.append(
                f"Least kept error in most cells: {self.repair}; the error of {self.rule} is "
                f"{span(gain)} times as large."
            )
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


def advise_context(
    short: int, long: int, rule: str = "softmax", noise: float = 1.0
) -> ContextAdvice:
    """Cost of keeping a temperature that was tuned at fewer keys.

    Args:
        short: number of keys at which it was tuned.
        long: number of keys at which it is used.
        rule: softmax, ``softmax, log n``, sparsemax, 1.5-entmax or 4/3-entmax.
        noise: σ of the labels, for targets of variance near 1.

    Raises:
        InputError: the rule is unknown, or the numbers are out of range.
    """
    if rule not in NAMES:
        raise InputError("--rule", rule, one_of(NAMES, rule))
    check_within("--noise", noise, 1e-3, 1e3)
    check_within("--context", short, 16, MOST)
    check_within("--context", long, short + 1, MOST)
    first = xr.concat([_first_order(width, short, long, noise) for width in RADII], "width")
    first = first.assign_coords(width=list(RADII), smoothness=list(SMOOTHNESS), rule=list(NAMES))
    ratio = long / short
    log = np.log(short) / np.log(long)
    cost = []
    factor = []
    for d, beta in product(DIMENSIONS, SMOOTHNESS):
        cost.append(leading_order(d, beta, ratio, log))
        factor.append(ratio ** (-2 / (2 * beta + d)))
    dims = ("dimension", "smoothness", "rule")
    sizes = (len(DIMENSIONS), len(SMOOTHNESS), len(NAMES))
    leading = xr.Dataset(
        {
            "cost": (dims, np.reshape(cost, sizes)),
            "factor": (dims[:2], np.reshape(factor, sizes[:2])),
        },
        {"rule": list(NAMES), "dimension": list(DIMENSIONS), "smoothness": list(SMOOTHNESS)},
    )
    covered = first["against"].where(first["in_range"] >= HALF)
    wins = (covered == covered.min("rule")).sum(("width", "smoothness")).values
    repair = NAMES[int(wins.argmax())] if wins.any() else ""
    return ContextAdvice(short, long, rule, first, leading, repair)


def leading_order(dimension: int, smoothness: float, ratio: float, log: float) -> list[float]:
    """Ratio of kept to re-tuned error for every rule of :data:`NAMES`, to leading order.

    The error is ``A h^{2β} + B/(n h^d)``. After tuning, its two parts have the ratio d : 2β. A kept
    softmax keeps h; log n scaling multiplies h² by ``log``; α-entmax has ``h ∝ n^{−1/(2ν+d)}``.

    Args:
        dimension: d of the coordinates that the head sees.
        smoothness: β, at most 2.
        ratio: the long context over the short one.
        log: log n of the short context over that of the long one.
    """
    d = dimension
    beta = smoothness
    radii = [1.0, log**0.5, *(ratio ** (-1 / (2 * RULES[name] + d)) for name in ENTMAX)]
    best = (d / (2 * beta) + 1) * ratio ** (-2 * beta / (2 * beta + d))
    return [(d / (2 * beta) * h ** (2 * beta) + h**-d / ratio) / best for h in radii]


def _first_order(width: int, short: int, long: int, noise: float) -> xr.Dataset:
    """Costs in a given dimension, (smoothness, rule)."""
    tabulated = tables(_problems(width), RADII[width])
    step = np.log(TEMPERATURES[1] / TEMPERATURES[0])
    shift = round(np.log(np.log(short) / np.log(long)) / step)
    values = []
    for name in NAMES:
        family = tabulated[name.split(",")[0]]
        errors = family.errors(np.array([short, long]), TEMPERATURES[:, None], noise)
        mse = errors.mse[0]  # (task, temperature, context)
        tuned, again = np.nan_to_num(mse, nan=np.inf).argmin(axis=1).T
        kept = tuned + shift * (name == LOG)
        ends = np.isin([tuned, again], [0, len(TEMPERATURES) - 1])
        inside = ~ends.any(0) & (kept >= 0)
        cells = np.arange(len(mse)), np.array([tuned, again, kept.clip(0)]), [[0], [1], [1]]
        _, least, at_kept = np.where(inside, mse[cells], np.nan)
        fewest = errors.n_eff[cells].min(0)
        values.append([at_kept, least, inside & np.isfinite(at_kept) & (fewest >= FEW_KEYS)])
    table = np.reshape(values, (len(NAMES), 3, len(SMOOTHNESS), TASKS))
    at_kept, least, covered = xr.DataArray(
        table, dims=("rule", "part", "smoothness", "task")
    ).transpose("part", "smoothness", "rule", "task")
    costs = {"cost": at_kept / least, "against": at_kept / least.min("rule")}
    return xr.Dataset(costs).median("task").assign(in_range=covered.mean("task"))


def _problems(width: int) -> Problems:
    """Lacunary series of every smoothness, each with queries near the middle of the keys."""
    rng = np.random.default_rng(width)
    count = TASKS * len(SMOOTHNESS)
    level = 2.0 ** np.arange(WAVES)
    frequency = rng.normal(size=(count, WAVES, width))
    frequency *= (level / np.linalg.norm(frequency, axis=2))[..., None]
    amplitude = np.repeat(level ** -np.array(SMOOTHNESS)[:, None], TASKS, axis=0)[None]
    phase = rng.uniform(0, 2 * np.pi, (count, WAVES))
    return Problems(amplitude, frequency, phase, 0.4 * rng.normal(size=(count, width)))
