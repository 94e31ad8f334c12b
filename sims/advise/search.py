"""Advice from data: heads, head dimension, rule and temperature of least leave-one-out error.

Errors are means over outputs of squared errors, in units of each output's variance: predicting the
mean has error 1. Half of the rows (of the groups) chooses; the other half, which did not choose,
reports. Every row is predicted from all rows but its own group's. Frames are random: errors are
means over draws of them, and standard errors count how far draws differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.progress import track

from sims.advise.baselines import baselines
from sims.advise.extrapolation import Curve, learning_curve
from sims.advise.heads import diverse_frames, head_predictions, temperature_grid
from sims.advise.parts import ROUNDING, Parts, estimated_parts, noise_interval
from sims.advise.reading import Data, draw_rows, reduce_columns
from sims.base.errors import InputError

CHOOSERS, REPORTERS = 300, 600
"""Rows that choose and report, at most."""
DRAWS = 4
"""Draws of the frames, over which errors are averaged."""
COUNTS = (1, 2, 4, 8, 16)
"""Numbers of heads that are tried."""
BUDGET = 2
"""Largest H·d_k over d that is tried; head dimensions are powers of 2, d, d/2 and the default's."""
FEW_COLUMNS = 64
"""Features of more than which powers of 4 are tried instead, with half of the draws."""
DEFAULT_HEADS = 8
CLEAR = 2.0
"""Standard errors from which a difference counts."""


@dataclass(frozen=True)
class Setting:
    """Heads of attention.

    Attributes:
        rule: of the weights, see :mod:`sims.advise.heads`.
        heads: H.
        width: d_k.
        temperature: s; the gaussian kernel's bandwidth is √s.
    """

    rule: str
    heads: int
    width: int
    temperature: float

    def __str__(self) -> str:
        text = f"H = {self.heads}, d_k = {self.width}, {self.rule}, s = {self.temperature:.3g}"
        return text + (f" (bandwidth {self.temperature**0.5:.3g})" * (self.rule == "gaussian"))


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: of the method.
        error: mean over the reporting rows.
        standard_error: of it, over groups of rows and over draws of frames.
        difference: error less that of the best setting.
        difference_error: its standard error, of paired rows.
        setting: of heads; None for a baseline.
    """

    name: str
    error: float
    standard_error: float
    difference: float
    difference_error: float
    setting: Setting | None = None

    @property
    def clear(self) -> bool:
        """Whether the difference is more than :data:`CLEAR` standard errors."""
        return abs(self.difference) > CLEAR * self.difference_error

    @property
    def difference_text(self) -> str:
        """The difference in words."""
        word = "less" if self.difference < 0 else "more"
        return f"{abs(self.difference):.2g} ± {self.difference_error:.2g} {word}"


@dataclass(frozen=True)
class DataAdvice:
    """What data say about heads.

    Attributes:
        best: the setting of least error on the rows that choose.
        default: H = 8 (or what fits), d_k = d/H, softmax at s = √d_k.
        frugal: the one-standard-error choice: of all settings within a standard error of the best
            that with the least H·d_k, then the fewest heads.
        rows: the table, by error.
        diversity: errors of orthogonal, independent and aligned heads at the best split into
            several; differences are from orthogonal ones. Empty for d = 1.
        parts: name to decomposition, of the best and the default.
        curve: learning curve of the best.
        searched: number of settings.
        size: rows, features and outputs that were used.
        frames: the first draw of the best setting's, (H, d, d_k), for standardised features.
        notes: what was done to the rows, in words.
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
        """The advice in sentences."""
        rows = {row.name: row for row in (*self.rows, *self.diversity)}
        lines = [f"Best of {self.searched} settings: {self.best}."]
        noise = (
            "" if rows["default"].clear else " Within noise: keep it unless the best is cheaper."
        )
        lines.append(f"The default errs by {rows['default'].difference_text} than the best.{noise}")
        lines.append(f"One-standard-error choice: {self.frugal}.")
        if self.diversity:
            aligned = rows["aligned heads"]
            noise = "" if aligned.clear else " Within noise."
            lines.append(
                f"Diversity: of several heads {aligned.setting} is best; aligned ones err by "
                f"{aligned.difference_text} than orthogonal ones.{noise}"
            )
        least = min((row for row in self.rows if not row.setting), key=lambda row: row.error)
        if least.difference < 0 and least.clear:
            lines.append(f"{least.name} errs by {least.difference_text} than the best.")
        return lines + self.curve.sentences()


class Search:
    """Errors of all settings on the rows that choose.

    Args:
        data: standardised.
        seed: of frames, and of the rows that choose.
    """

    def __init__(self, data: Data, seed: int = 0) -> None:
        self.data, self.seed = data, seed
        self.dimension = data.features.shape[1]
        self.step = 1 + (self.dimension > FEW_COLUMNS)
        rng = np.random.default_rng([seed, 2])
        groups = rng.permutation(np.unique(data.groups))
        chooses = np.isin(data.groups, groups[: len(groups) // 2])
        choosers, reporters = (rng.permutation(np.flatnonzero(r)) for r in (chooses, ~chooses))
        self.choosers, self.reporters = choosers[:CHOOSERS], reporters[:REPORTERS]

    def splits(self) -> dict[int, list[int]]:
        """Head dimensions, and numbers of heads of each; heads of d_k = d are all the same."""
        d, (heads, width) = self.dimension, default_split(self.dimension)
        powers = 2 ** np.arange(0, int(np.log2(d)) + 1, self.step)
        return {
            w: [1] if w == d else [h for h in COUNTS if h == 1 or h * w <= max(BUDGET * d, heads)]
            for w in sorted({*powers.tolist(), width, max(d // 2, 1), d})
        }

    def predictions(
        self,
        rows: np.ndarray,
        frames: np.ndarray,
        temperatures: dict[str, np.ndarray],
        keys: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Predictions of every head for those rows, (S, H, Q, o) by rule.

        Args:
            rows: numbers of the rows, (Q,).
            frames: (H, d, d_k).
            temperatures: rule to (S,).
            keys: numbers of the rows that are keys; None takes all.
        """
        data = self.data
        keys = np.arange(len(data.features)) if keys is None else keys
        barred = data.groups[rows][:, None] == data.groups[keys]
        outputs = data.outputs[keys]
        by_frame = []
        for frame in frames:
            points = data.features @ frame
            made = head_predictions(points[rows], points[keys], outputs, barred, temperatures)
            by_frame.append(made)
        return {
            rule: np.stack([predicted[rule] for predicted in by_frame], axis=1)
            for rule in temperatures
        }

    def losses(self, rows: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Squared errors of predictions (…, Q, o), means over outputs, (…, Q); 0 for rounding."""
        losses = np.asarray(((predicted - self.data.outputs[rows]) ** 2).mean(-1))
        return np.where(losses < ROUNDING, 0.0, losses)

    def grid(self, width: int) -> dict[str, np.ndarray]:
        """Temperatures of heads of that width, from the first head."""
        frame = diverse_frames(self.dimension, 1, width, self.seed)[0]
        points, groups = self.data.features @ frame, self.data.groups
        rows = self.choosers[:100]
        return temperature_grid(points[rows], points, groups[rows][:, None] == groups)

    def searched(self, progress: bool = False) -> dict[Setting, np.ndarray]:
        """Losses of all settings on the rows that choose, means over the draws."""
        losses_of = dict[Setting, np.ndarray]()
        splits, console = [*self.splits().items()], Console(stderr=True, quiet=not progress)
        for width, counts in track(splits, "Head dimensions", console=console, transient=True):
            grid, draws = self.grid(width), self.draws(max(counts), width)
            for frames in draws:
                for rule, predicted in self.predictions(self.choosers, frames, grid).items():
                    for count in counts:
                        losses = self.losses(self.choosers, predicted[:, :count].mean(1))
                        for s, loss in zip(grid[rule], losses / len(draws), strict=True):
                            setting = Setting(rule, count, width, float(s))
                            losses_of[setting] = losses_of.get(setting, 0) + loss
        return losses_of

    def draws(self, heads: int, width: int) -> list[np.ndarray]:
        """Draws of diverse frames (H, d, d_k); those of d_k = d give all the same weights."""
        count = 1 if width == self.dimension else DRAWS // self.step
        seeds = (self.seed + 1000 * draw for draw in range(count))
        return [diverse_frames(self.dimension, heads, width, seed) for seed in seeds]

    def reported(
        self, setting: Setting, draws: list[np.ndarray], alone: bool = False
    ) -> np.ndarray:
        """Losses on the rows that report, (draw, Q), of the ensemble, or mean of heads alone."""
        rows, temperatures = self.reporters, {setting.rule: np.array([setting.temperature])}
        predictions = [
            self.predictions(rows, frames, temperatures)[setting.rule][0] for frames in draws
        ]
        if alone:
            return np.stack([self.losses(rows, heads).mean(0) for heads in predictions])
        return np.stack([self.losses(rows, heads.mean(0)) for heads in predictions])

    def subset(self, rng: np.random.Generator, size: int, replace: bool) -> np.ndarray:
        """Rows drawn at random, of two groups at least."""
        while True:
            rows = rng.choice(len(self.data.groups), size, replace)
            if np.ptp(self.data.groups[rows]) > 0:
                return rows


def default_split(dimension: int) -> tuple[int, int]:
    """H = 8 or the largest power of two that fits, and d_k = d/H."""
    heads = min(DEFAULT_HEADS, 2 ** int(np.log2(dimension)))
    return heads, dimension // heads


def standard_error(losses: np.ndarray, groups: np.ndarray) -> float:
    """The standard error of a mean whose rows depend on one another within groups."""
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(codes, losses - losses.mean())
    count = len(sums)
    return float(np.sqrt(np.sum(sums**2) * count / max(count - 1, 1)) / len(losses))


def frugal_choice(tried: dict[Setting, np.ndarray], best: Setting, groups: np.ndarray) -> Setting:
    """Of all settings within one standard error of the best, that of the least H·d_k."""
    most = tried[best].mean() + standard_error(tried[best], groups)

    def cost(setting: Setting) -> tuple[float, ...]:
        return (setting.heads * setting.width, setting.heads, float(tried[setting].mean()))

    return min((setting for setting, loss in tried.items() if loss.mean() <= most), key=cost)


def find_least(tried: dict[Setting, np.ndarray], settings: Iterable[Setting]) -> Setting:
    """That of the settings with the least mean loss; if they are equal, of the widest heads."""
    return min(settings, key=lambda setting: (tried[setting].mean(), -setting.width))


def advise_data(data: Data, seed: int = 0, progress: bool = False) -> DataAdvice:
    """The heads of least leave-one-out error for data, with what they gain over others.

    Args:
        data: of :func:`~sims.advise.reading.read_data` or :func:`~sims.advise.reading.prepared`;
            of more than :data:`MOST_ROWS` rows so many are drawn at random.
        seed: of that draw, of the frames and of the rows that choose.
        progress: whether to show it on stderr.

    Raises:
        InputError: after the draw too few rows are left to choose or to report.
    """
    data = reduce_columns(draw_rows(data, seed))
    search, notes = Search(data, seed), [*data.notes]
    if search.step > 1:
        notes.append("Many features: powers of 4 are tried as head dimensions, by half the draws.")
    if min(len(search.choosers), len(search.reporters)) < 5:
        raise InputError("data, groups", "nearly all rows in one", "groups of like size")
    tried = search.searched(progress)
    best = find_least(tried, tried)
    grid = search.grid(best.width)[best.rule]
    if len(grid) > 1 and best.temperature in (grid[0], grid[-1]):
        notes.append("The best temperature is at the end of those that were tried.")
    heads, width = default_split(search.dimension)
    default = Setting("softmax", heads, width, float(width**0.5))
    frugal = frugal_choice(tried, best, data.groups[search.choosers])
    named = {"best": best, "default": default, "one standard error": frugal}
    draws = {name: search.draws(setting.heads, setting.width) for name, setting in named.items()}
    losses = {name: search.reported(setting, draws[name]) for name, setting in named.items()}
    losses |= baselines(data, search.choosers, search.reporters, seed)
    rows = table(losses, losses["best"], data.groups[search.reporters], named)
    noise = noise_interval(data, rows)
    parts = {
        row.name: estimated_parts(search, row, draws[row.name][0], noise)
        for row in rows
        if row.name in ("best", "default")
    }
    return DataAdvice(
        best,
        default,
        frugal,
        sorted(rows, key=lambda row: row.error),
        diversity(search, tried),
        parts,
        learning_curve(search, best, draws["best"], losses["best"]),
        len(tried),
        (*data.features.shape, data.outputs.shape[1]),
        draws["best"][0],
        notes,
    )


def diversity(search: Search, tried: dict[Setting, np.ndarray]) -> list[Row]:
    """Orthogonal, independent and aligned heads of the best split into several that fit d.

    Differences are from orthogonal heads. Aligned heads are one head: their error is the mean over
    the orthogonal heads, each used alone, at the temperature that is best for one head. Where d = 1
    there are none.
    """
    several = [s for s in tried if s.heads > 1 and s.heads * s.width <= search.dimension]
    if not several:
        return []
    best = find_least(tried, several)
    like = (best.rule, 1, best.width)
    single = find_least(tried, (s for s in tried if (s.rule, s.heads, s.width) == like))
    draws = search.draws(best.heads, best.width)
    rng = np.random.default_rng([search.seed, 7])
    shape = best.heads, search.dimension, best.width
    independent = [np.linalg.qr(rng.normal(size=shape))[0] for _ in draws]
    losses = {
        "orthogonal heads": search.reported(best, draws),
        "independent heads": search.reported(best, independent),
        "aligned heads": search.reported(single, draws, alone=True),
    }
    groups = search.data.groups[search.reporters]
    return table(losses, losses["orthogonal heads"], groups, dict.fromkeys(losses, best))


def table(
    losses: dict[str, np.ndarray], best: np.ndarray, groups: np.ndarray, named: dict[str, Setting]
) -> list[Row]:
    """Means, standard errors and paired differences of losses (draw, Q) or (Q,)."""

    def spread(of: np.ndarray) -> float:
        between = of.mean(1).var(ddof=1) / len(of) if len(of) > 1 else 0.0
        return float(np.hypot(standard_error(of.mean(0), groups), between**0.5))

    rows = []
    for name, loss in losses.items():
        gap = np.atleast_2d(loss) - best
        error = float(loss.mean()), spread(np.atleast_2d(loss))
        rows.append(Row(name, *error, float(gap.mean()), spread(gap), named.get(name)))
    return rows
