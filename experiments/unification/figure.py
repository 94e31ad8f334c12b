"""How often less correlation pays, and by how much: by mechanism and by selectivity."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars
from sims.judgement.answers import Answers
from sims.study.panels import Panels

KINDS = ("heads", "trees", "ants")
INKS = dict(zip(KINDS, figures.PALETTE, strict=False))
CHANGE = "change of the pool's error (%)"


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    answer = answers["unification"]
    title = f"A pool of less correlated estimators errs less: {answer.spoken()}"
    drawing, axes = figures.mosaic(("ac", "bb"), height=3.9, title=title)
    change = -100 * panels.effects["fall"].value[:, 0]
    asked = panels.parameters.assign(change=change).dropna(subset="change")
    rows = {}
    for kind, share in answer.shares().items():
        if kind in ("all", *KINDS) and share.simulated is not None:
            rows[f"{kind} (n = {share.simulated.total})"] = share.simulated.parts
    outcome_bars(axes["a"], rows)
    axes["a"].set_title(f"The error falls by over 1 %: {answer.word}")
    _mechanisms(axes["b"], asked)
    heads = asked[asked["kind"] == "heads"]
    binned(axes["c"], heads["selectivity"], heads["change"], INKS["heads"])
    figures.dotted(axes["c"])
    axes["c"].set(
        xlim=(0, 1),
        xlabel=figures.SELECTIVITY,
        ylabel=CHANGE,
        title=f"Selective heads gain more (n = {len(heads)})",
    )
    return drawing


def _mechanisms(ax: Axes, asked: pd.DataFrame) -> None:
    """Change of the error by mechanism: median, middle half and range."""
    counts = asked["mechanism"].value_counts().sort_index()
    sns.boxplot(
        asked,
        x="change",
        y="mechanism",
        hue="kind",
        palette=INKS,
        order=list(counts.index),
        whis=(5, 95),
        showfliers=False,
        linewidth=0.6,
        legend=False,
        ax=ax,
    )
    labels = [f"{name} (n = {count})" for name, count in counts.items()]
    ax.set_yticks(range(len(counts)), labels)
    figures.dotted(ax, x=0)
    ax.set(xlabel=CHANGE, ylabel="", title="Random features raise the error")
