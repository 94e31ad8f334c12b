"""Advice from data: heads, head dimension, rule and temperature of least leave-one-out error.

Errors are means over outputs of squared errors, in units of each output's variance: predicting the
mean has error 1. Half of the rows (of the groups) chooses; the other half, which did not choose,
reports. Every row is predicted from all rows but its own group's. Frames are random: errors are
means over draws of them, and standard errors count how far draws differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from sims.advise.baselines import baselines
from sims.advise.extrapolation import Curve, learning_curve
from sims.advise.heads import diverse_frames, haar_frames, head_predictions, temperature_grid
from sims.advise.parts import Parts, estimated_parts
from sims.advise.reading import Data
from sims.errors import InputError

MOST_ROWS, CHOOSERS, REPORTERS = 2000, 300, 600
"""Rows of data of which more are drawn at random, and rows that choose and report, at most."""
DRAWS = 4
"""Draws of the frames, over which errors are averaged."""
COUNTS = (1, 2, 4, 8, 16)
"""Numbers of heads that are tried."""
LADDER = (1, 2, 3, 4, 5, 8, 10, 16, 32, 64, 128, 256, 512)
WIDTHS, BUDGET = 8, 2
"""Head dimensions that are tried, of the ladder at most so many, and the largest H·d_k over d."""
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
        said = f"H = {self.heads}, d_k = {self.width}, {self.rule}, s = {self.temperature:.3g}"
        return said + (f" (bandwidth {self.temperature**0.5:.3g})" * (self.rule == "gaussian"))


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

    def said(self) -> list[str]:
        """The advice in sentences."""
        default = next(row for row in self.rows if row.name == "default")
        lines = [f"Best of {self.searched} settings: {self.best}."]
        if self.best == self.default:
            lines.append("The default is the best that was tried.")
        elif abs(default.difference) < CLEAR * default.difference_error:
            lines.append(
                f"Within noise: the default's error differs by {_signed(default)}; keep the default"
                " unless the best is as cheap."
            )
        else:
            worse = "more" if default.difference > 0 else "less: the choice did not carry over"
            lines.append(f"The default errs by {_signed(default)} {worse}.")
        lines.append(f"One-standard-error choice: {self.frugal}.")
        if self.diversity:
            aligned = self.diversity[-1]
            if self.best.heads == 1:
                lines.append(f"One head is best; of several the best is {aligned.setting}.")
            clear = abs(aligned.difference) >= CLEAR * aligned.difference_error
            lines.append(
                f"Diversity: aligned heads err by {_signed(aligned)} more than orthogonal ones"
                + ("." if clear else ": within noise.")
            )
        rivals = [row for row in self.rows if row.setting is None]
        least = min(rivals, key=lambda row: row.error)
        if least.difference < -CLEAR * least.difference_error:
            lines.append(f"{least.name} errs by {-least.difference:.3g} less than any of these.")
        return lines + self.curve.said()


def _signed(row: Row) -> str:
    return f"{row.difference:.3g} ± {row.difference_error:.2g}"


class Search:
    """Errors of all settings on the rows that choose.

    Args:
        data: standardised.
        seed: of frames, and of the rows that choose.
    """

    def __init__(self, data: Data, seed: int = 0) -> None:
        self.data, self.seed = data, seed
        self.dimension = data.features.shape[1]
        rng = np.random.default_rng([seed, 2])
        groups = rng.permutation(np.unique(data.groups))
        chooses = np.isin(data.groups, groups[: len(groups) // 2])
        choosers, reporters = (rng.permutation(np.flatnonzero(r)) for r in (chooses, ~chooses))
        self.choosers, self.reporters = choosers[:CHOOSERS], reporters[:REPORTERS]

    def splits(self) -> dict[int, list[int]]:
        """Head dimensions, and numbers of heads of each; heads of d_k = d are all the same."""
        d = self.dimension
        own = default_split(d)
        ladder = np.array([w for w in LADDER if w < d] or [d])
        thin = ladder[np.linspace(0, len(ladder) - 1, WIDTHS - 2).astype(int)]
        widths = sorted({*thin.tolist(), own[1], max(d // 2, 1), d})
        return {
            w: [1] if w == d else [h for h in COUNTS if h == 1 or h * w <= max(BUDGET * d, own[0])]
            for w in widths
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
        every = [
            head_predictions(
                data.features[rows] @ frame,
                data.features[keys] @ frame,
                data.outputs[keys],
                barred,
                temperatures,
            )
            for frame in frames
        ]
        return {rule: np.stack([one[rule] for one in every], axis=1) for rule in temperatures}

    def losses(self, rows: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Squared errors of predictions (…, Q, o), means over outputs, (…, Q)."""
        return np.asarray(((predicted - self.data.outputs[rows]) ** 2).mean(-1))

    def grid(self, width: int) -> dict[str, np.ndarray]:
        """Temperatures of heads of that width, from the first head."""
        frame = diverse_frames(self.dimension, 1, width, self.seed)[0]
        points, groups = self.data.features @ frame, self.data.groups
        rows = self.choosers[:100]
        return temperature_grid(points[rows], points, groups[rows][:, None] == groups)

    def searched(self) -> dict[Setting, np.ndarray]:
        """Losses of all settings on the rows that choose, means over the draws."""
        found = {}
        for width, counts in self.splits().items():
            grid, sums = self.grid(width), dict[tuple[str, int], np.ndarray]()
            draws = self.draws(width)
            for draw in draws:
                frames = self.frames(max(counts), width, draw)
                for rule, predicted in self.predictions(self.choosers, frames, grid).items():
                    for count in counts:
                        losses = self.losses(self.choosers, predicted[:, :count].mean(1))
                        sums[rule, count] = sums.get((rule, count), 0) + losses / len(draws)
            for (rule, count), losses in sums.items():
                for s, loss in zip(grid[rule], losses, strict=True):
                    found[Setting(rule, count, width, float(s))] = loss
        return found

    def draws(self, width: int) -> range:
        """The draws of frames of that width; frames of d_k = d give all the same weights."""
        return range(1 if width == self.dimension else DRAWS)

    def reported(self, one: Setting, frames: np.ndarray, of: str = "ensemble") -> np.ndarray:
        """Losses on the rows that report, (Q,); ``of="head"``, the mean over its heads."""
        at = {one.rule: np.array([one.temperature])}
        predicted = self.predictions(self.reporters, frames, at)[one.rule][0]
        if of == "head":
            return np.asarray(self.losses(self.reporters, predicted).mean(0))
        return self.losses(self.reporters, predicted.mean(0))

    def frames(self, heads: int, width: int, draw: int = 0) -> np.ndarray:
        """A draw of diverse frames, (H, d, d_k); of more heads the first are the same."""
        return diverse_frames(self.dimension, heads, width, self.seed + 1000 * draw)


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


def frugal_choice(found: dict[Setting, np.ndarray], best: Setting, groups: np.ndarray) -> Setting:
    """Of all settings within one standard error of the best, that of the least H·d_k."""
    most = found[best].mean() + standard_error(found[best], groups)

    def cost(setting: Setting) -> tuple[float, ...]:
        return (setting.heads * setting.width, setting.heads, float(found[setting].mean()))

    return min((one for one, loss in found.items() if loss.mean() <= most), key=cost)


def advise_data(data: Data, seed: int = 0) -> DataAdvice:
    """The heads of least leave-one-out error for data, with what they gain over others.

    Args:
        data: of :func:`~sims.advise.reading.read_data` or :func:`~sims.advise.reading.prepared`;
            of more than :data:`MOST_ROWS` rows so many are drawn at random.
        seed: of that draw, of the frames and of the rows that choose.

    Raises:
        InputError: after the draw too few rows are left to choose or to report.
    """
    data, notes = drawn(data, seed)
    search = Search(data, seed)
    if min(len(search.choosers), len(search.reporters)) < 5:
        raise InputError("data, groups", "nearly all rows in one", "groups of like size")
    found = search.searched()
    best = min(found, key=lambda one: float(found[one].mean()))
    heads, width = default_split(search.dimension)
    default = Setting("softmax", heads, width, float(width**0.5))
    groups = data.groups[search.choosers]
    frugal = frugal_choice(found, best, groups)
    named = {"best": best, "default": default, "one standard error": frugal}
    losses = {
        name: np.stack(
            [
                search.reported(one, search.frames(one.heads, one.width, draw))
                for draw in search.draws(one.width)
            ]
        )
        for name, one in named.items()
    }
    others = baselines(data, search.choosers, search.reporters, seed)
    losses |= {name: one[None] for name, one in others.items()}
    rows = table(losses, losses["best"], data.groups[search.reporters], named)
    settings = [(name, one) for name, one in named.items() if name != "one standard error"]
    parts = {
        name: estimated_parts(
            search, one.rule, one.temperature, search.frames(one.heads, one.width)
        )
        for name, one in settings
    }
    return DataAdvice(
        best,
        default,
        frugal,
        sorted(rows, key=lambda row: row.error),
        diversity(search, found),
        parts,
        learning_curve(search, best),
        len(found),
        (*data.features.shape, data.outputs.shape[1]),
        search.frames(best.heads, best.width),
        [*notes, *edges(found, best)],
    )


def drawn(data: Data, seed: int) -> tuple[Data, list[str]]:
    """At most :data:`MOST_ROWS` rows, drawn at random, and what is to be said about it."""
    count = len(data.features)
    if count <= MOST_ROWS:
        return data, [*data.notes]
    rows = np.random.default_rng([seed, 3]).choice(count, MOST_ROWS, replace=False)
    part = Data(data.features[rows], data.outputs[rows], data.groups[rows], data.grouped)
    line = f"Of {count:,} rows {MOST_ROWS:,} drawn at random are used: the advice is for so many."
    return part, [*data.notes, line]


def edges(found: Iterable[Setting], best: Setting) -> list[str]:
    """A caution where the best temperature is the first or the last that was tried."""
    like = (best.rule, best.heads, best.width)
    tried = [s.temperature for s in found if (s.rule, s.heads, s.width) == like]
    if len(tried) > 1 and best.temperature in (min(tried), max(tried)):
        return ["The best temperature is at the end of those that were tried."]
    return []


def diversity(search: Search, found: dict[Setting, np.ndarray]) -> list[Row]:
    """Orthogonal, independent and aligned heads of the best split into several that fit d.

    Differences are from orthogonal heads. Aligned heads are one head: their error is the mean over
    the orthogonal heads, each used alone, at the temperature that is best for one head. Where d = 1
    there are none.
    """

    def least(settings: Iterable[Setting]) -> Setting:
        return min(settings, key=lambda s: float(found[s].mean()))

    several = [s for s in found if s.heads > 1 and s.heads * s.width <= search.dimension]
    if not several:
        return []
    best = least(several)
    like = (best.rule, 1, best.width)
    one = least(s for s in found if (s.rule, s.heads, s.width) == like)
    size, made = (best.heads, best.width), dict[str, list[np.ndarray]]()
    for draw in search.draws(best.width):
        frames = search.frames(*size, draw)
        own = haar_frames(search.dimension, *size, search.seed + 1000 * draw)
        for name, losses in (
            ("orthogonal heads", search.reported(best, frames)),
            ("independent heads", search.reported(best, own)),
            ("aligned heads", search.reported(one, frames, of="head")),
        ):
            made.setdefault(name, []).append(losses)
    arrays = {name: np.stack(losses) for name, losses in made.items()}
    groups = search.data.groups[search.reporters]
    return table(arrays, arrays["orthogonal heads"], groups, dict.fromkeys(arrays, best))


def table(
    losses: dict[str, np.ndarray], best: np.ndarray, groups: np.ndarray, named: dict[str, Setting]
) -> list[Row]:
    """Means, standard errors and paired differences of losses (draw, Q)."""

    def spread(of: np.ndarray) -> float:
        between = of.mean(1).var(ddof=1) / len(of) if len(of) > 1 else 0.0
        return float(np.hypot(standard_error(of.mean(0), groups), between**0.5))

    return [
        Row(
            name,
            float(one.mean()),
            spread(one),
            float((one - best).mean()),
            spread(one - best),
            named.get(name),
        )
        for name, one in losses.items()
    ]
