"""Advice from data: heads, head dimension, rule and temperature of least leave-one-out error.

Standard errors include the spread over draws of the frames, and groups of rows.
"""

from dataclasses import dataclass, field

import numpy as np

from sims.advise.baselines import baselines
from sims.advise.extrapolation import Curve, learning_curve
from sims.advise.parts import Parts, estimate_parts, noise_interval
from sims.advise.reading import Data, draw_rows, reduce_columns
from sims.advise.search import Search, Setting, default_split, find_least
from sims.advise.table import Row, compare_methods, standard_error
from sims.base.errors import InputError


@dataclass(frozen=True)
class DataAdvice:
    """Advice on heads from data.

    Attributes:
        best: the setting of least error on the selection rows.
        default: H = 8 (or what fits), d_k = d/H, softmax at s = √d_k.
        frugal: the one-standard-error choice: the setting with the least H·d_k, then the fewest
            heads, among all within one standard error of the best.
        rows: the table, by error.
        diversity: errors of orthogonal, independent and aligned heads at the best split into
            several; differences are from orthogonal ones. Empty for d = 1.
        parts: name to decomposition, for the best and the default setting.
        curve: learning curve of the best.
        searched: number of settings.
        size: numbers of rows, features and outputs used.
        frames: first draw of the best setting's frames, (H, d, d_k), for standardised features.
        notes: notes on changes of the rows.
    """

    best: Setting
    default: Setting
    frugal: Setting
    rows: list[Row]
    diversity: list[Row]
    parts: dict[str, Parts]
    curve: Curve
    searched: int
    size: tuple[int, int, int]
    frames: np.ndarray = field(repr=False)
    notes: list[str]

    def sentences(self) -> list[str]:
        """Sentences of the advice."""
        rows = {row.name: row for row in (*self.rows, *self.diversity)}
        lines = [f"Best of {self.searched} settings: {self.best}."]
        noise = " Within noise: keep it unless the best is cheaper." * (not rows["default"].clear)
        lines.append(f"The default errs by {rows['default'].difference_text} than the best.{noise}")
        lines.append(f"One-standard-error choice: {self.frugal}.")
        if self.diversity:
            aligned = rows["aligned heads"]
            noise = " Within noise." * (not aligned.clear)
            lines.append(
                f"Diversity: of several heads {aligned.setting} is best; aligned ones err by "
                f"{aligned.difference_text} than orthogonal ones.{noise}"
            )
        least = min((row for row in self.rows if not row.setting), key=lambda row: row.error)
        if least.difference < 0 and least.clear:
            lines.append(f"{least.name} errs by {least.difference_text} than the best.")
        return lines + self.curve.sentences()


def choose_frugal(tried: dict[Setting, np.ndarray], best: Setting, groups: np.ndarray) -> Setting:
    """Setting of least H·d_k among all within one standard error of the best."""
    most = tried[best].mean() + standard_error(tried[best], groups)

    def cost(setting: Setting) -> tuple[float, ...]:
        return (setting.heads * setting.width, setting.heads, float(tried[setting].mean()))

    return min((setting for setting, loss in tried.items() if loss.mean() <= most), key=cost)


def advise_data(data: Data, seed: int = 0, progress: bool = False) -> DataAdvice:
    """Heads of least leave-one-out error for data, compared with other methods.

    Args:
        data: from :func:`~sims.advise.reading.read_data` or :func:`~sims.advise.reading.prepared`;
            if it has more than :data:`~sims.advise.reading.MOST_ROWS` rows, that many are sampled.
        seed: random seed for that sample, the frames and the selection rows.
        progress: show progress on stderr.

    Raises:
        InputError: the sample leaves too few rows for selection or reporting.
    """
    data = reduce_columns(draw_rows(data, seed))
    search = Search(data, seed)
    notes = [*data.notes]
    if search.step > 1:
        notes.append("Many features: head dimensions are powers of 4, with half the draws.")
    if min(len(search.choosers), len(search.reporters)) < 5:
        raise InputError("data, groups", "nearly all rows in one group", "groups of similar size")
    tried = search.try_all(progress)
    best = find_least(tried, tried)
    grid = search.grid(best.width)[best.rule]
    if len(grid) > 1 and best.temperature in (grid[0], grid[-1]):
        notes.append("The best temperature is at an end of the grid.")
    heads, width = default_split(search.dimension)
    default = Setting("softmax", heads, width, float(width**0.5))
    frugal = choose_frugal(tried, best, data.groups[search.choosers])
    named = {"best": best, "default": default, "one standard error": frugal}
    draws = {}
    losses = {}
    for name, setting in named.items():
        draws[name] = search.draws(setting.heads, setting.width)
        losses[name] = search.report(setting, draws[name])
    losses |= baselines(data, search.choosers, search.reporters, seed)
    rows = compare_methods(losses, losses["best"], data.groups[search.reporters], named)
    noise = noise_interval(data, rows)
    parts = {}
    for row in rows:
        if row.name in ("best", "default"):
            parts[row.name] = estimate_parts(search, row, draws[row.name][0], noise)
    return DataAdvice(
        best,
        default,
        frugal,
        sorted(rows, key=lambda row: row.error),
        compare_diversity(search, tried),
        parts,
        learning_curve(search, best, draws["best"], losses["best"]),
        len(tried),
        (*data.features.shape, data.outputs.shape[1]),
        draws["best"][0],
        notes,
    )


def compare_diversity(search: Search, tried: dict[Setting, np.ndarray]) -> list[Row]:
    """Errors of orthogonal, independent and aligned heads at the best split with several heads.

    Differences are from orthogonal heads. Aligned heads equal one head: their error is the mean
    over the orthogonal heads, each used alone, at the best temperature for one head. The result is
    empty for d = 1.
    """
    several = [s for s in tried if s.heads > 1 and s.heads * s.width <= search.dimension]
    if not several:
        return []
    best = find_least(tried, several)
    like = (best.rule, 1, best.width)
    single = find_least(tried, (s for s in tried if (s.rule, s.heads, s.width) == like))
    draws = search.draws(best.heads, best.width)
    rng = np.random.default_rng([search.seed, 7])
    shape = (best.heads, search.dimension, best.width)
    independent = [np.linalg.qr(rng.normal(size=shape))[0] for _ in draws]
    losses = {
        "orthogonal heads": search.report(best, draws),
        "independent heads": search.report(best, independent),
        "aligned heads": search.report(single, draws, alone=True),
    }
    groups = search.data.groups[search.reporters]
    return compare_methods(losses, losses["orthogonal heads"], groups, dict.fromkeys(losses, best))
