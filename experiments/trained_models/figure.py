"""Trained heads in three panels: predictors of merging costs, the law, patterns and outputs."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from sims import figures
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.judgement.wording import percent
from sims.study.panels import Panels

from .problems import TOKENS
from .statistic import GIVEN, law_table

ROWS = {
    "outputs": "output size",
    f"subspaces{GIVEN}": "subspaces,\ngiven size",
    f"patterns{GIVEN}": "patterns,\ngiven size",
}
HEADS = 8
"""Heads for which lines are drawn: of the models that have fewest."""
WITHIN = conventions.TOLERANCES["roads"]


def numbers(panels: Panels) -> dict[str, object]:
    """Median correlations with their intervals, and the table of attention maps."""
    medians = {}
    for name, values in zip(panels["statistic"], panels["correlations"], strict=True):
        medians[name] = median(values[np.isfinite(values)])
    frame = _rows(panels)
    recovered = frame.groupby("model")["recovered"].first()
    near = {}
    for tokens, rows in frame.groupby("tokens"):
        near[tokens] = f"{(rows['gap'].abs() < WITHIN).sum()} of {len(rows)}"
    return {"median": medians, "recovered": recovered, "near": near, "law": law_table(frame)}


def _rows(panels: Panels) -> pd.DataFrame:
    """Attention maps beside heads of the law, a row per model, pass and choice of tokens."""
    return panels.arrays.drop_dims(("statistic", "layers")).to_dataframe()


def median(values: np.ndarray) -> tuple[float, float, float]:
    """The median of stored layers, and order statistics that enclose it at the house's level."""
    count = len(values)
    rank = max(1, int(binom(count, 0.5).ppf((1 - conventions.LEVEL) / 2)))
    low, high = np.sort(values)[[rank - 1, count - rank]]
    return float(np.median(values)), float(low), float(high)


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure, by the effects that the answers count."""
    found = panels.arrays["correlations"]
    drawing, axes = figures.mosaic(("aa", "bc"), height=3.9, heights=(1, 1.1), title=finding(found))
    _correlations(axes["a"], found, panels.parameters)
    frame = _rows(panels)
    of_all = frame[frame["tokens"] == TOKENS[0]]
    _beside_the_law(axes["b"], of_all)
    axes["b"].legend(loc="upper left")
    _patterns_and_outputs(axes["c"], of_all)
    return drawing


def finding(found: xr.DataArray) -> str:
    """The title: whether size, and overlaps given sizes, have medians whose intervals exclude 0."""
    merging = [found.sel(statistic=f"merging, {name}").values for name in ROWS]
    size, *overlaps = map(median, merging)
    if size[1] <= 0:
        return "Neither size nor overlap predicts the cost of merging trained heads"
    adds = any(low > 0 for _, low, _ in overlaps)
    end = ", and overlap adds to it" if adds else "; overlap adds little"
    return f"Output size predicts the cost of merging trained heads{end}"


def _correlations(ax: Axes, found: xr.DataArray, stored: pd.DataFrame) -> None:
    """A point per stored layer, and the median with its interval."""
    values = found.sel(statistic=[f"merging, {row}" for row in ROWS]).values
    rows = -np.arange(len(ROWS))
    for shift, (model, layers) in enumerate(stored.groupby("model", sort=False)):
        shown = values[:, layers.index]
        heights = np.broadcast_to(rows[:, None] + 0.18 - 0.14 * shift, shown.shape)
        figures.dots(ax, shown.ravel(), heights.ravel(), shift, str(model), ms=3)
    middle, low, high = np.transpose([median(of_row) for of_row in values])
    ax.errorbar(
        middle,
        rows + 0.36,
        xerr=(middle - low, high - middle),
        fmt="|",
        ms=6,
        capsize=2,
        color="black",
        label="median, 95 % interval",
    )
    ax.set_yticks(rows, list(ROWS.values()))
    figures.dotted(ax, x=0)
    ax.set(
        xlim=(-1.05, 1.05),
        xlabel="rank correlation with the cost of merging two heads, within a layer",
        title=f"Predictors of the cost of merging, {len(stored)} layers",
    )
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, 0), borderaxespad=3.6, ncols=3)


def _patterns_and_outputs(ax: Axes, frame: pd.DataFrame) -> None:
    """What averages keep: a point per pass, and heads whose values are alike by a cosine κ."""
    for shift, (_, rows) in enumerate(frame.groupby("model", sort=False)):
        figures.dots(ax, rows["kept"], rows["written_kept"], shift, "", ms=2.5)
    alone = 1 / HEADS
    kept = np.array([alone, 1.0])
    for alike, label, up in ((1, "heads of the law", 3), (0.5, "half apart", -17), (0, "apart", 3)):
        outputs = alone + alike * (kept - alone)
        figures.theory(ax, kept, outputs, lw=0.7)
        ax.annotate(
            label,
            (1, outputs[1]),
            xytext=(0, up),
            textcoords="offset points",
            ha="right",
            fontsize=figures.SMALL,
        )
    ax.set(
        xlim=(0, 1.02),
        ylim=(0, 1.08),
        xlabel="variance kept by averaging patterns",
        ylabel="kept by averaging outputs",
        title=f"Patterns keep {_middle(frame['kept'])}, outputs {_middle(frame['written_kept'])}",
    )


def _middle(shares: pd.Series) -> str:
    return percent(float(shares.median()))


def _beside_the_law(ax: Axes, frame: pd.DataFrame) -> None:
    """Variance that averaging keeps over n_eff/n: a point per pass, and a line to the law's."""
    for shift, (_, rows) in enumerate(frame.groupby("model", sort=False)):
        ink = figures.PALETTE[shift]
        x = rows["selectivity"]
        ax.vlines(x, rows["kept"], rows["law_kept"], color=ink, lw=0.5)
        figures.dots(ax, x, rows["kept"], shift, "", ms=2.5)
        figures.dots(ax, x, rows["law_kept"], shift, "", marker="_", ms=4)
    ax.plot([], [], ls="", marker="o", color="black", label="trained heads")
    ax.plot([], [], ls="", marker="_", color="black", label="heads of the law")
    gap = (frame["kept"] - frame["law_kept"]).abs().median()
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (0.02, 0.05, 0.2, 1))
    ax.set(
        xlim=(0.015, 1.05),
        ylim=(0, 1.25),
        xlabel=figures.SELECTIVITY,
        ylabel="share of variance kept",
        title=f"Median gap to heads of the law {gap:.2f} (n = {len(frame)})",
    )
