"""Trained heads: predictors of merging costs, and what averages keep of patterns and outputs."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from sims import figures
from sims.figures.groups import dots_by
from sims.figures.marks import dots
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.judgement.wording import percent
from sims.study.panels import Panels

from .problems import TOKENS
from .statistic import GIVEN, law_table

ROWS = {
    "merging, outputs": "output size",
    f"merging, subspaces{GIVEN}": "subspaces,\ngiven size",
    f"merging, patterns{GIVEN}": "patterns,\ngiven size",
}
LAW = ((1, "x", "law, shared values"), (0.5, "+", "law, values correlated at ½"))
"""Correlation of the values of two heads of the law, with a marker and a name."""
PALE = "0.6"
"""Colour of heads of the law."""
WITHIN = conventions.TOLERANCES["methods"]


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
    passes = _rows(panels)
    passes = passes[passes["tokens"] == TOKENS[0]]
    share = passes[["kept", "written_kept"]].median().map(percent)
    patterns, outputs = share["kept"], share["written_kept"]
    title = f"Averaging keeps {patterns} of the variance of patterns, {outputs} of that of outputs"
    drawing, axes = figures.mosaic(("a", "b"), height=4.8, heights=(1.3, 1), title=title)
    _patterns_and_outputs(axes["a"], passes)
    found = panels.arrays["correlations"].sel(statistic=list(ROWS)).values
    medians = np.array([median(values) for values in found])
    frame = pd.DataFrame(found.T, columns=list(ROWS.values()))
    _correlations(axes["b"], frame.assign(model=panels.parameters["model"]), medians)
    return drawing


def finding(low: np.ndarray) -> str:
    """The message on merging, by lower ends of the medians of size, and of overlaps given it."""
    if low[0] <= 0:
        return "Neither size nor overlap predicts the cost of merging trained heads"
    end = ", and overlap adds to it" if low[1:].max() > 0 else "; overlap adds little"
    return f"Output size predicts the cost of merging trained heads{end}"


def _correlations(ax: Axes, frame: pd.DataFrame, medians: np.ndarray) -> None:
    """A point per stored layer, and the median with its interval."""
    points = frame.sort_values("model").melt("model")
    look = {"dodge": True, "legend": False, "size": 2.5}
    sns.stripplot(points, x="value", y="variable", hue="model", ax=ax, **look)
    middle, low, high = medians.T
    bars = (middle - low, high - middle)
    label = "median, 95 % interval"
    ax.errorbar(middle, np.arange(3) - 0.45, xerr=bars, fmt="|k", capsize=2, label=label)
    figures.dotted(ax, x=0)
    figures.describe(
        ax,
        "rank correlation with the cost of merging two heads, within a layer",
        "",
        f"{finding(low)} ({len(frame)} layers)",
    )


def kept_of_outputs(kept: Any, correlation: Any, alike: float) -> Any:
    """What an average of outputs keeps of heads of the law whose values correlate at κ (alike).

    ``1/H + κ (k − 1/H)`` where one of patterns keeps k, with ``1/H = (k − ρ)/(1 − ρ)`` since heads
    of the law are equally sharp and correlate at ρ.
    """
    alone = (kept - correlation) / (1 - correlation)
    return alone + alike * (kept - alone)


def _patterns_and_outputs(ax: Axes, frame: pd.DataFrame) -> None:
    """What averages keep: a point per pass, and the same of heads of the law."""
    dots_by(ax, frame, "kept", "written_kept", "model")
    kept, correlation = frame["law_kept"], frame["law_correlation"]
    for alike, marker, label in LAW:
        outputs = kept_of_outputs(kept, correlation, alike)
        dots(ax, kept, outputs, 0, label, color=PALE, marker=marker, zorder=1)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    figures.describe(
        ax,
        "share of variance kept by averaging patterns",
        "kept by averaging outputs",
        f"Values and output maps decorrelate trained heads ({len(frame)} passes)",
    )
