"""Search over heads: leave-one-out errors of every rule, head dimension, count and temperature.

Errors are means over outputs of squared errors, in units of each output's variance: predicting the
mean has error 1. Half of the groups selects the setting; the other half reports its error. Every
row is predicted from all rows outside its group. Frames are random: errors are means over draws,
and the draws that report are not those that select.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from sims.advise.heads import diverse_frames, predict_heads, temperature_grid
from sims.advise.reading import Data, draw_groups
from sims.base.progress import followed

CHOOSERS, REPORTERS = 300, 600
"""Maximum numbers of rows for selection and reporting."""
DRAWS = 4
"""Number of draws of the frames with which every setting is tried."""
FRESH = 16
"""Number of fresh draws that confirm a choice, and of others that report its error."""
TRYING, CONFIRMING, REPORTING = range(3)
"""Purposes of draws: frames of one purpose are independent of those of another."""
COUNTS = (1, 2, 4, 8, 16)
"""Numbers of heads to try."""
BUDGET = 2
"""Largest H·d_k to try, over d; head dimensions are powers of 2, d, d/2 and the default's."""
FEW_COLUMNS = 64
"""Number of features above which powers of 4 are tried instead, with half of the draws."""
DEFAULT_HEADS = 8
ROUNDING = 1e-20
"""Squares below which predictions are equal."""


@dataclass(frozen=True)
class Setting:
    """Heads of attention.

    Attributes:
        rule: weight rule, see :mod:`sims.advise.heads`.
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


class Search:
    """Search over settings by their errors on the selection rows.

    Args:
        data: standardised data.
        seed: random seed for frames and selection rows.
    """

    def __init__(self, data: Data, seed: int = 0) -> None:
        self.data = data
        self.seed = seed
        self.dimension = data.features.shape[1]
        self.step = 1 + (self.dimension > FEW_COLUMNS)
        rng = np.random.default_rng([seed, 2])
        groups = rng.permutation(np.unique(data.groups))
        chooses = np.isin(data.groups, groups[: len(groups) // 2])
        halves = []
        for half, most in ((chooses, CHOOSERS), (~chooses, REPORTERS)):
            drawn = draw_groups(data.groups[half], rng, most)
            halves.append(np.flatnonzero(half)[drawn])
        self.choosers, self.reporters = halves

    def splits(self) -> dict[int, list[int]]:
        """Head dimension to numbers of heads; heads of d_k = d are all equal."""
        d = self.dimension
        heads, default_width = default_split(d)
        powers = 2 ** np.arange(0, int(np.log2(d)) + 1, self.step)
        counts = np.array(COUNTS)
        splits = {}
        for width in sorted({*powers.tolist(), default_width, max(d // 2, 1), d}):
            most = 1 if width == d else max(BUDGET * d, heads) // width
            splits[width] = counts[counts <= most].tolist()
        return splits

    def predictions(
        self,
        rows: np.ndarray,
        frames: np.ndarray,
        temperatures: dict[str, np.ndarray],
        keys: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Predictions of every head for given rows, (S, H, Q, o) by rule.

        Args:
            rows: numbers of the rows, (Q,).
            frames: (H, d, d_k).
            temperatures: rule to (S,).
            keys: numbers of the rows that are keys; None uses all.
        """
        data = self.data
        keys = np.arange(len(data.features)) if keys is None else keys
        barred = data.groups[rows][:, None] == data.groups[keys]
        known = data.features[keys], data.outputs[keys]
        return predict_heads(data.features[rows], *known, barred, frames, temperatures)

    def losses(self, rows: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Squared errors of predictions (…, Q, o), means over outputs, (…, Q); 0 for rounding."""
        losses = np.asarray(((predicted - self.data.outputs[rows]) ** 2).mean(-1))
        return np.where(losses < ROUNDING, 0.0, losses)

    def grid(self, width: int) -> dict[str, np.ndarray]:
        """Temperatures of heads of a given width, from the first head."""
        frame = self.draws(1, width, TRYING, 1)[0][0]
        points = self.data.features @ frame
        groups = self.data.groups
        rows = self.choosers[:100]
        return temperature_grid(points[rows], points, groups[rows][:, None] == groups)

    def try_all(self, progress: bool = False) -> dict[Setting, np.ndarray]:
        """Losses of all settings on the selection rows, averaged over draws."""
        losses_of = dict[Setting, np.ndarray]()
        splits = [*self.splits().items()]
        for width, counts in followed(splits, "head dimensions", progress):
            grid = self.grid(width)
            draws = self.draws(max(counts), width, TRYING, DRAWS // self.step)
            for frames in draws:
                predictions = self.predictions(self.choosers, frames, grid)
                for rule, count in product(predictions, counts):
                    ensembles = predictions[rule][:, :count].mean(1)
                    losses = self.losses(self.choosers, ensembles) / len(draws)
                    for temperature, loss in zip(grid[rule], losses, strict=True):
                        setting = Setting(rule, count, width, float(temperature))
                        losses_of[setting] = losses_of.get(setting, 0) + loss
        return losses_of

    def seeds(self, purpose: int, count: int = FRESH) -> list[int]:
        """Seeds of the draws of the frames for a purpose."""
        return np.random.SeedSequence([self.seed, purpose]).generate_state(count).tolist()

    def draws(self, heads: int, width: int, purpose: int, count: int = FRESH) -> list[np.ndarray]:
        """Draws of diverse frames (H, d, d_k); all draws with d_k = d give equal weights."""
        seeds = self.seeds(purpose, 1 if width == self.dimension else count)
        return [diverse_frames(self.dimension, heads, width, seed) for seed in seeds]

    def errors(
        self,
        setting: Setting,
        draws: Iterable[np.ndarray],
        rows: np.ndarray | None = None,
        alone: bool = False,
    ) -> np.ndarray:
        """Losses (draw, Q) of the ensemble, or mean losses of single heads.

        Args:
            setting: rule and temperature.
            draws: frames (H, d, d_k) of every draw.
            rows: numbers of the rows, (Q,); None is the reporting rows.
            alone: whether heads predict alone.
        """
        rows = self.reporters if rows is None else rows
        temperatures = {setting.rule: np.array([setting.temperature])}
        losses = []
        for frames in draws:
            heads = self.predictions(rows, frames, temperatures)[setting.rule][0]
            predicted = heads if alone else heads.mean(0, keepdims=True)
            losses.append(self.losses(rows, predicted).mean(0))
        return np.stack(losses)

    def confirm(self, setting: Setting) -> np.ndarray:
        """Losses (Q,) on the selection rows, averaged over fresh draws."""
        draws = self.draws(setting.heads, setting.width, CONFIRMING)
        return self.errors(setting, draws, self.choosers).mean(0)


def default_split(dimension: int) -> tuple[int, int]:
    """Default split: H = 8 or the largest power of two that fits, and d_k = d/H."""
    heads = min(DEFAULT_HEADS, 2 ** int(np.log2(dimension)))
    return heads, dimension // heads


def by_loss(tried: dict[Setting, np.ndarray], settings: Iterable[Setting]) -> list[Setting]:
    """Settings by mean loss, the least first; among equals, the widest heads."""
    return sorted(settings, key=lambda setting: (tried[setting].mean(), -setting.width))
