"""How often less correlation pays, and by how much, by mechanism."""

import seaborn as sns
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import outcome_bars
from sims.judgement.answers import Answers
from sims.study.panels import Panels

KINDS = ("all", "heads", "trees", "ants")


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    answer = answers["unification"]
    title = answer.sentence("A pool of less correlated estimators", "errs less")
    drawing, axes = figures.mosaic(("a", "b"), height=4.0, title=title)
    rows = {}
    for kind, share in answer.shares().items():
        if kind in KINDS and share.simulated is not None:
            rows[f"{kind} ({share.simulated.total})"] = share.simulated.parts
    outcome_bars(axes["a"], rows, title=answer.sentence("The error", "falls by over 1 %"))
    change = -100 * panels.effects["fall"].value[:, 0]
    frame = panels.parameters.assign(change=change).dropna(subset="change")
    frame["mechanism"] += frame.groupby("mechanism")["change"].transform("size").map(" ({})".format)
    look = {"color": figures.PALETTE[0], "whis": (5, 95), "showfliers": False, "linewidth": 0.6}
    frame = frame.sort_values("mechanism")
    sns.boxplot(frame, x="change", y="mechanism", ax=axes["b"], **look)
    figures.dotted(axes["b"], x=0)
    label = "change of the pool's error (%)"
    figures.describe(axes["b"], label, "", "Random features raise the error")
    return drawing
