"""Cost of a kept temperature as the context grows, and the drift of the best temperature."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .rules import POWERS, SIMULATED
from .statistic import KEPT, MIDDLE, Sample, effects

RIVALS = {
    "1.5-entmax against softmax": "softmax,\nboth kept",
    "1.5-entmax against top-k": "top-k,\nboth kept",
    "re-tuned": "softmax,\nboth re-tuned",
}
"""Comparisons as the axis names them."""
FAR = 256
"""Number of keys over that of the tuned context to which the figure goes."""
MATCHED = "α-entmax with ν = β"
LINES = {
    "top-k": "top-k, k kept",
    "softmax": "softmax",
    "softmax, log n": "softmax, scores times log n",
    "sparsemax": "sparsemax (ν = 1)",
    MATCHED: MATCHED,
}
"""Rules as the legend names them."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; lines and points are over the problems that the answers count."""
    words = {answer.id: answer.word for answer in answers}
    word = words["competitive"]
    title = f"At {SIMULATED} times the keys, 1.5-entmax errs less than softmax: {word}"
    drawing, axes = figures.mosaic(("aa", "bc"), height=6, title=title)
    sample = Sample(results)
    draw_losses(axes["a"], sample)
    draw_changes(axes["b"], results)
    draw_exponents(axes["c"], sample)
    for letter, text, question in (
        ("a", f"{MATCHED} stays within 5 % of its least error", "kept-temperature"),
        ("b", "Less error than top-k", "top-k-alternative"),
        ("c", "The best temperature moves as stated", "kept-temperature-exponent"),
    ):
        axes[letter].set_title(f"{text}: {words[question]}")
    figures.letters(axes[letter] for letter in "abc")
    return drawing


def draw_losses(ax: Axes, sample: Sample) -> None:
    """Median error over the least one by theory, its interval, and the simulated medians."""
    near = sample.law.sel(ratio=slice(None, FAR))
    stated = (near["kept"] / near["best"]).values
    for ink, (rule, label) in zip(figures.PALETTE, LINES.items(), strict=False):
        names = sample.matched("smoothness") if rule == MATCHED else rule
        losses = sample.of_rule(stated, names)
        low, middle, high = interval_of_median(losses[np.isfinite(losses).all(1)])
        ax.fill_between(near["ratio"], low, high, color=ink, alpha=0.25, lw=0)
        ax.plot(near["ratio"], middle, color=ink, label=label)
        simulated = 1 + sample.loss(names, KEPT).mean(1)
        low, middle, high = interval_of_median(simulated[np.isfinite(simulated), None])
        ax.errorbar(SIMULATED, middle, [middle - low, high - middle], fmt="o", ms=4, color=ink)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, near["ratio"].values.astype(int))
    figures.ticks(ax.yaxis, (1, 2, 5, 10, 20, 50))
    ax.legend(loc="upper left")
    count = f"{sample.law.sizes['number']} problems, {len(sample.errors)} simulated"
    ax.set(
        xlabel=f"number of keys / number at tuning ({count})",
        ylabel="error at the kept parameter / least error",
    )


def interval_of_median(values: np.ndarray) -> np.ndarray:
    """A 95 % interval and the median over problems (N, …): lower end, median, upper end."""
    half = 0.98 / len(values) ** 0.5
    ends = np.clip([0.5 - half, 0.5, 0.5 + half], 0, 1)
    return np.asarray(np.quantile(values, ends, axis=0))


def draw_changes(ax: Axes, results: Results) -> None:
    """Simulated changes of the error from other rules to 1.5-entmax, a point a problem."""
    made = effects(results)
    rows = {label: -100 * made[name].value[:, 0] for name, label in RIVALS.items()}
    frame = pd.DataFrame(rows).melt(var_name="rival", value_name="change").dropna()
    ax.axvline(0, color=figures.GREY, lw=0.8, ls=":")
    ink = figures.PALETTE[0]
    sns.stripplot(frame, x="change", y="rival", ax=ax, color=ink, size=2.5, alpha=0.5)
    ax.set(xlabel=f"change of the error to {MIDDLE} (%)", ylabel="")


def draw_exponents(ax: Axes, sample: Sample) -> None:
    """Exponents of the best temperature against the stated ones, a point a problem."""
    far = sample.law.sel(ratio=slice(SIMULATED, None))
    beta, nu, width = (far[name].values for name in ("smoothness", "power", "width"))
    best = np.log(sample.of_rule(far["tuned"].values, sample.matched("power")))
    x = np.log(far["ratio"].values)
    fitted = (best - best.mean(1, keepdims=True)) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    stated, line = 2 * (beta / nu - 1) / (2 * beta + width), np.array([-0.5, 0.5])
    tolerance = house.TOLERANCES["slope"]
    ax.fill_between(line, line - tolerance, line + tolerance, color=figures.BAND, zorder=0)
    figures.theory(ax, line, line, zorder=1)
    jitter = np.random.default_rng(0).uniform(-0.006, 0.006, len(nu))
    colours = dict(zip(POWERS.values(), figures.PALETTE, strict=False))
    sns.scatterplot(x=stated + jitter, y=fitted, hue=nu, palette=colours, s=9, linewidth=0, ax=ax)
    ax.legend(title="ν", loc="upper left")
    ax.set(
        xlabel="stated exponent 2(β − ν)/(ν(2β + d))",
        ylabel="exponent of the best temperature",
    )
