"""Cost of a kept temperature as the context grows, and the drift of the best temperature."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .rules import MATCHED, POWERS, SIMULATED
from .statistic import MIDDLE

RIVALS = {
    "1.5-entmax against softmax": "softmax,\nkept",
    "1.5-entmax against top-k": "top-k,\nkept",
    "re-tuned": "softmax,\nre-tuned",
}
"""Comparisons as the axis names them."""
FAR = 256
"""Number of keys over that of the tuned context to which the figure goes."""
LINES = {
    "top-k": "top-k, k kept",
    "softmax": "softmax",
    "softmax, log n": "softmax, scores times log n",
    "sparsemax": "sparsemax (ν = 1)",
    MATCHED: MATCHED,
}
"""Rules as the legend names them."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; lines and points are over the problems that the answers count."""
    words = {name: answer.word for name, answer in answers.items()}
    word = words["competitive"]
    title = f"At {SIMULATED} times the keys, 1.5-entmax errs less than softmax: {word}"
    drawing, axes = figures.mosaic(("aa", "bc"), height=4.2, title=title)
    draw_losses(axes["a"], panels)
    draw_changes(axes["b"], panels)
    draw_exponents(axes["c"], panels)
    for letter, text, question in (
        ("a", f"{MATCHED} stays within 5 %", "kept-temperature"),
        ("b", "Less error than top-k", "top-k-alternative"),
        ("c", "The best temperature moves as stated", "kept-temperature-exponent"),
    ):
        axes[letter].set_title(f"{text}: {words[question]}")
    return drawing


def draw_losses(ax: Axes, panels: Panels) -> None:
    """Median error over the least one by theory, its interval, and the simulated medians."""
    near = panels.arrays.sel(ratio=slice(None, FAR))
    for ink, (rule, label) in zip(figures.PALETTE, LINES.items(), strict=False):
        of_rule = near.sel(rule=rule)
        losses = of_rule["stated"].values
        low, middle, high = interval_of_median(losses[np.isfinite(losses).all(1)])
        ax.fill_between(near["ratio"], low, high, color=ink, alpha=0.25, lw=0)
        ax.plot(near["ratio"], middle, color=ink, label=label)
        simulated = of_rule["simulated"].values
        low, middle, high = interval_of_median(simulated[np.isfinite(simulated), None])
        ax.errorbar(SIMULATED, middle, [middle - low, high - middle], fmt="o", color=ink)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, near["ratio"].values.astype(int))
    figures.ticks(ax.yaxis, (1, 2, 5, 10, 20, 50))
    ax.plot([], [], "o", color=figures.GREY, label="simulated")
    ax.legend(loc="upper left")
    count = f"{near.sizes['number']} problems, {near.sizes['problem']} simulated"
    ax.set(
        xlabel=f"number of keys / number at tuning ({count})",
        ylabel="error, kept / least",
    )


def interval_of_median(values: np.ndarray) -> np.ndarray:
    """A 95 % interval and the median over problems (N, …): lower end, median, upper end."""
    half = 0.98 / len(values) ** 0.5
    ends = np.clip([0.5 - half, 0.5, 0.5 + half], 0, 1)
    return np.asarray(np.quantile(values, ends, axis=0))


def draw_changes(ax: Axes, panels: Panels) -> None:
    """Simulated changes of the error from other rules to 1.5-entmax, a point a problem."""
    made = panels.effects
    rows = {label: -100 * made[name].value[:, 0] for name, label in RIVALS.items()}
    frame = pd.DataFrame(rows).melt(var_name="rival", value_name="change").dropna()
    figures.dotted(ax, x=0)
    ink = figures.PALETTE[0]
    sns.stripplot(frame, x="change", y="rival", ax=ax, color=ink, size=1.5, alpha=0.5)
    ax.set(xlabel=f"change to {MIDDLE} (%), n = {len(made['re-tuned'].value)}", ylabel="")


def draw_exponents(ax: Axes, panels: Panels) -> None:
    """Exponents of the best temperature against the stated ones, a point a problem."""
    drawn = panels.parameters
    beta, nu, width = (drawn[name].to_numpy() for name in ("smoothness", "power", "width"))
    stated = 2 * (beta / nu - 1) / (2 * beta + width)
    tolerance = conventions.TOLERANCES["slope"]
    figures.diagonal(ax, -0.5, 0.5, f"stated, ± {tolerance:g}", tolerance)
    for place, power in enumerate(POWERS.values()):
        rows = nu == power
        figures.dots(ax, stated[rows], panels["exponent"][rows], place, f"ν = {power:g}")
    ax.legend(loc="upper left", ncols=2)
    ax.set(
        ylim=(None, 1.3),
        xlabel="stated exponent",
        ylabel="best temperature's exponent",
    )
