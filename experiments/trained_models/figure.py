"""Trained heads: predictors of merging costs, and what averages keep of patterns and outputs."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from sims import figures
from sims.figures.groups import dots_by
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
    found = panels.arrays["correlations"].sel(statistic=list(ROWS)).values
    medians = np.array([median(values) for values in found])
    title = finding(medians[:, 1])
    drawing, axes = figures.mosaic(("a", "b"), height=4.6, heights=(1, 1.1), title=title)
    frame = pd.DataFrame(found.T, columns=list(ROWS.values()))
    _correlations(axes["a"], frame.assign(model=panels.parameters["model"]), medians)
    frame = _rows(panels)
    _patterns_and_outputs(axes["b"], frame[frame["tokens"] == TOKENS[0]])
    return drawing


def finding(low: np.ndarray) -> str:
    """The title, by the lower ends of the medians of size, and of overlaps given sizes."""
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
        f"Predictors of the cost of merging, {len(frame)} layers",
    )


def _patterns_and_outputs(ax: Axes, frame: pd.DataFrame) -> None:
    """What averages keep: a point per pass, and heads whose values are alike by a cosine κ."""
    dots_by(ax, frame, "kept", "written_kept", "model")
    alone = 1 / HEADS
    for alike, label in ((1, "heads of the law"), (0.5, "half apart"), (0, "apart")):
        outputs = alone + alike * (1 - alone)
        figures.theory(ax, [alone, 1], [alone, outputs], lw=0.7)
        ax.text(1.01, outputs, label, va="center")
    share = frame[["kept", "written_kept"]].median().map(percent)
    figures.describe(
        ax,
        "share of variance kept by averaging patterns",
        "kept by averaging outputs",
        f"Patterns keep {share['kept']}, outputs {share['written_kept']}",
    )
