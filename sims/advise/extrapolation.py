"""Learning curves on growing subsets of the rows, and their extrapolation."""

from dataclasses import dataclass
from itertools import cycle

import numpy as np
from scipy.optimize import nnls

from sims.advise.reading import draw_groups
from sims.advise.search import Search, Setting

SHARES = 2.0 ** -np.arange(4.0, 0.0, -0.5)
"""Sizes of the subsets, as shares of the rows."""
FEWEST_ROWS = 20
"""Minimum number of rows of a subset, or half of all."""
MOST_CHOOSERS = 150
"""Maximum number of rows that choose the temperature of a subset."""
RESAMPLES = 200
"""Number of bootstrap samples of the reporting rows."""
REPEATS = 3
"""Number of subsets of whole groups, of each size below the full table."""
SMALLEST = 1e-6
"""Residuals are relative to the error, or to this if it is larger."""
EXPONENTS = np.linspace(0.05, 1, 20)
BEYOND = 10


@dataclass(frozen=True)
class Curve:
    """Errors on growing subsets.

    Attributes:
        sizes: numbers of keys.
        errors: mean errors there, the temperature re-tuned at each; the last is the table's.
        beyond: 10 times the largest size.
        extrapolated: ``e + a n^{−b}`` there.
        interval: 95 % interval of it over rows, assuming that the power law continues.
        exponent: b.
    """

    sizes: list[int]
    errors: list[float]
    beyond: int
    extrapolated: float
    interval: tuple[float, float]
    exponent: float

    def sentences(self) -> list[str]:
        """Sentence on the curve."""
        low, high = self.interval
        now = self.errors[-1]
        line = f"At 10 times the data ({self.beyond:,} rows) the error would be "
        line += f"{self.extrapolated:.3g} (95 % interval {low:.3g} to {high:.3g}), now {now:.3g}"
        return [line + (": more data may not help." if high >= now else ".")]


def learning_curve(
    search: Search, best: Setting, draws: list[np.ndarray], whole: np.ndarray
) -> Curve:
    """Errors of the best heads on subsets, with the best temperature of the rule at every size.

    Args:
        search: data and rows.
        best: rule and head dimension.
        draws: draws of the frames, (H, d, d_k) each.
        whole: losses of the best setting with all rows, (draw, Q).
    """
    groups = search.data.groups
    choosers = search.choosers[:MOST_CHOOSERS]
    rows = np.concatenate([choosers, search.reporters])
    count = len(groups)
    rng = np.random.default_rng([search.seed, 6])
    grid = search.grid(best.width)[best.rule]
    middle = int(np.abs(grid - best.temperature).argmin())
    grids = {best.rule: grid[max(middle - 2, 0) : middle + 3]}
    frames = cycle(draws)
    losses = dict[int, np.ndarray]()
    sizes = np.unique((SHARES * count).astype(int))
    for size in sizes[sizes >= min(FEWEST_ROWS, count // 2)]:
        subsets = [draw_groups(groups, rng, size) for _ in range(REPEATS)]
        drawn = int(np.mean([len(keys) for keys in subsets]))
        if drawn in (*losses, count):
            continue
        of_subsets = []
        for keys in subsets:
            predicted = search.predictions(rows, next(frames), grids, keys)[best.rule].mean(1)
            of_subsets.append(search.losses(rows, predicted))
        mean = np.mean(of_subsets, axis=0)
        choice = mean[:, : len(choosers)].mean(1).argmin()
        losses[drawn] = mean[choice, len(choosers) :]
    losses[count] = whole.mean(0)
    table = np.array([*losses.values()])
    n = np.array([*losses], float)
    beyond = BEYOND * count
    value, exponent = extrapolate(n, table.mean(1), beyond)
    codes = np.unique(groups[search.reporters], return_inverse=True)[1]
    number = codes.max() + 1
    samples = []
    for by_group in rng.multinomial(number, np.full(number, 1 / number), RESAMPLES):
        weights = by_group[codes]
        samples.append(extrapolate(n, table @ weights / weights.sum(), beyond)[0])
    low, high = np.quantile(samples, [0.025, 0.975])
    interval = (min(float(low), value), max(float(high), value))
    return Curve([*losses], table.mean(1).tolist(), beyond, value, interval, exponent)


def extrapolate(n: np.ndarray, errors: np.ndarray, beyond: float) -> tuple[float, float]:
    """``e + a n^{−b}`` with e, a ≥ 0, of least squared relative residuals, there; and b."""
    scale = np.maximum(errors, SMALLEST)
    fits = []
    for b in EXPONENTS:
        columns = np.stack([np.ones_like(n), (n / n[-1]) ** -b], axis=1) / scale[:, None]
        (e, a), residual = nnls(columns, errors / scale)
        fits.append((residual, float(e + a * (beyond / n[-1]) ** -b), float(b)))
    return min(fits)[1:]
