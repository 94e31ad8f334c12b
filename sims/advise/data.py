"""Advice from data: heads, head dimension, rule and temperature of least leave-one-out error.

Standard errors include the spread over draws of the frames, and groups of rows.
"""

from dataclasses import dataclass, field

import numpy as np

from sims.advise.baselines import baselines
from sims.advise.leakage import REMEDY, find_dependence
from sims.advise.parts import Parts, estimate_parts, noise_interval
from sims.advise.reading import MOST_ROWS, Data, draw_rows
from sims.advise.regressor import HeadsRegressor
from sims.advise.search import REPORTING, Search, Setting, by_loss, default_split
from sims.advise.table import Row, compare_methods, standard_error
from sims.base.errors import InputError

CANDIDATES = 5
"""Number of settings of least error that are tried again with fresh frames."""


@dataclass(frozen=True)
class DataAdvice:
    """Advice on heads from data.

    Attributes:
        rival: name of the baseline of least error on the selection rows.
        best: the setting of least error on the selection rows.
        default: H = 8 (or what fits), d_k = d/H, softmax at s = √d_k.
        frugal: the one-standard-error choice: the setting with the least H·d_k, then the fewest
            heads, among all within one standard error of the best.
        rows: the table, by error on the reporting rows, with frames that chose nothing.
        diversity: errors of orthogonal, independent and aligned heads at the best split into
            several; differences are from orthogonal ones. Empty for d = 1.
        parts: name to decomposition, for the best and the default setting.
        searched: number of settings.
        size: numbers of rows, features and outputs used.
        frames: name to the first of the reporting draws of its frames, (H, d, d_k), for
            standardised features.
        frames_seed: seed of these frames.
        alarm: signs of leakage and the remedy; empty without a sign.
        notes: notes on changes of the rows.
    """

    rival: str
    best: Setting
    default: Setting
    frugal: Setting
    rows: list[Row]
    diversity: list[Row]
    parts: dict[str, Parts]
    searched: int
    size: tuple[int, int, int]
    frames: dict[str, np.ndarray] = field(repr=False)
    frames_seed: int
    alarm: str
    notes: list[str]

    def regressor(self, name: str = "best") -> HeadsRegressor:
        """Heads of a named setting (``best``, ``default``, ``one standard error``), to be fitted.

        Its frames are those of :attr:`frames`.
        """
        setting = {row.name: row.setting for row in self.rows}[name]
        assert setting is not None
        return HeadsRegressor(**vars(setting), random_state=self.frames_seed)

    def sentences(self) -> list[str]:
        """Sentences of the advice."""
        rows = {row.name: row for row in (*self.rows, *self.diversity)}
        lines = [compare_rival(rows[self.rival])]
        line = f"Best of {self.searched} settings: {self.best}."
        if (self.best.heads, self.best.width) == (1, self.size[1]):
            line += " One head of full width is plain kernel regression."
        lines.append(line)
        noise = " Within noise: keep it unless the best is cheaper." * (not rows["default"].clear)
        lines.append(f"The default errs by {rows['default'].difference_text} than the best.{noise}")
        lines.append(f"One-standard-error choice: {self.frugal}.")
        if self.diversity:
            aligned = rows["aligned heads"]
            noise = " Within noise." * (not aligned.clear)
            lines.append(
                f"The best setting of several heads is {aligned.setting}; aligned heads err by "
                f"{aligned.difference_text} than orthogonal ones.{noise}"
            )
        return lines


def compare_rival(rival: Row) -> str:
    """Sentence that names the best method of all, heads or the best other one."""
    noise = "" if rival.clear else ", within noise"
    if rival.difference < 0:
        name = rival.name[0].upper() + rival.name[1:].replace(", ", " on ", 1)
        return f"{name} errs {rival.share_text} than any heads{noise}."
    return f"Heads err least of all methods: {rival.name} errs {rival.share_text}{noise}."


def choose_frugal(
    search: Search, tried: dict[Setting, np.ndarray], best: Setting, losses: np.ndarray
) -> Setting:
    """Setting of least H·d_k among all within one standard error of the best.

    A setting counts if fresh frames confirm its error.

    Args:
        search: data and rows.
        tried: losses of all settings on the selection rows.
        best: the setting of least error.
        losses: its losses with fresh frames.
    """
    most = losses.mean() + standard_error(losses, search.data.groups[search.choosers])
    cheap = dict[tuple[int, int], Setting]()
    for setting in by_loss(tried, tried):
        if tried[setting].mean() <= most:
            cheap.setdefault((setting.heads * setting.width, setting.heads), setting)
    for _, setting in sorted(cheap.items()):
        if search.confirm(setting).mean() <= most:
            return setting
    return best


def advise_data(data: Data, seed: int = 0, progress: bool = False) -> DataAdvice:
    """Heads of least leave-one-out error for data, compared with other methods.

    Args:
        data: from :func:`~sims.advise.reading.read_data` or :func:`~sims.advise.reading.prepared`;
            if it has more than :data:`~sims.advise.reading.MOST_ROWS` rows, so many are sampled.
        seed: random seed for that sample, the frames and the selection rows.
        progress: show progress on stderr.

    Raises:
        InputError: the sample leaves too few rows for selection or reporting.
    """
    signs = []
    if len(np.unique(data.groups)) == len(data.groups):
        signs += find_dependence(data.inputs.to_numpy()[:MOST_ROWS], data.outputs[:MOST_ROWS])
    data = draw_rows(data, seed)
    search = Search(data, seed)
    notes = [*data.notes]
    if search.step > 1:
        notes.append("Many features: head dimensions are powers of 4, with half the draws.")
    if min(len(search.choosers), len(search.reporters)) < 5:
        raise InputError("data, groups", "nearly all rows in one group", "groups of similar size")
    tried = search.try_all(progress)
    confirmed = {setting: search.confirm(setting) for setting in by_loss(tried, tried)[:CANDIDATES]}
    best = by_loss(confirmed, confirmed)[0]
    grid = search.grid(best.width)[best.rule]
    if len(grid) > 1 and best.temperature in (grid[0], grid[-1]):
        notes.append("The best temperature is at an end of the grid.")
    heads, width = default_split(search.dimension)
    default = Setting("softmax", heads, width, float(width**0.5))
    frugal = choose_frugal(search, tried, best, confirmed[best])
    named = {"best": best, "default": default, "one standard error": frugal}
    draws = {}
    losses = {}
    for name, setting in named.items():
        draws[name] = search.draws(setting.heads, setting.width, REPORTING)
        losses[name] = search.errors(setting, draws[name])
    selection = {}
    for name, loss in baselines(data, search.choosers, seed).items():
        selection[name] = loss[search.choosers].mean()
        losses[name] = loss[search.reporters]
    rows = compare_methods(losses, losses["best"], data.groups[search.reporters], named)
    noise = noise_interval(data, rows)
    parts = {}
    for row in rows[:2]:
        parts[row.name] = estimate_parts(search, row, draws[row.name][0], noise)
    signs = [*data.signs, *signs]
    if parts["best"].dependent:
        signs.append("noise and variance exceed the error")
    return DataAdvice(
        rival=min(selection, key=lambda name: selection[name]),
        best=best,
        default=default,
        frugal=frugal,
        rows=sorted(rows, key=lambda row: row.error),
        diversity=compare_diversity(search, tried),
        parts=parts,
        searched=len(tried),
        size=(*data.features.shape, data.outputs.shape[1]),
        frames={name: frames[0] for name, frames in draws.items()},
        frames_seed=search.seeds(REPORTING)[0],
        alarm=f"Leakage: {'; '.join(signs)}. {REMEDY}" if signs else "",
        notes=notes,
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
    best = by_loss(tried, several)[0]
    like = (best.rule, 1, best.width)
    single = by_loss(tried, (s for s in tried if (s.rule, s.heads, s.width) == like))[0]
    draws = search.draws(best.heads, best.width, REPORTING)
    rng = np.random.default_rng([search.seed, 7])
    shape = (best.heads, search.dimension, best.width)
    independent = []
    for _ in draws:
        independent.append(np.linalg.qr(rng.normal(size=shape))[0])
    losses = {
        "orthogonal heads": search.errors(best, draws),
        "independent heads": search.errors(best, independent),
        "aligned heads": search.errors(single, draws, alone=True),
    }
    groups = search.data.groups[search.reporters]
    return compare_methods(losses, losses["orthogonal heads"], groups, dict.fromkeys(losses, best))
