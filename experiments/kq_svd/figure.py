"""Outputs by the keys' mean, and scores by the balance of keys and queries."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .statistic import EIGEN, KQ, K


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure, by the numbers that the answers count."""
    scores, outputs = answers["kq-heldout"].how_often(), answers["kq-output"].how_often()
    title = f"KQ-SVD has the best scores in {scores} of problems, the best outputs in {outputs}"
    drawing, (left, right) = figures.pairs(2, title=title, height=2.8)
    law = panels.parameters[: len(panels["output"])]
    shown = pd.DataFrame(panels["output"], columns=["keys as they are", "keys centred"])
    frame = shown.assign(mean=law["key_mean"]).melt("mean")
    look = {"fliersize": 1, "linewidth": 0.6}
    left.set_yscale("log")
    sns.boxplot(frame, x="mean", y="value", hue="variable", ax=left, **look)
    figures.dotted(left, y=1)
    figures.describe(
        left,
        "mean of the keys (standard deviations)",
        "output error / better rival's",
        "Centring all methods removes most failures",
        log="y",
    )
    for place, name in ((K, "K-SVD"), (EIGEN, "Eigen"), (KQ, "KQ-SVD")):
        over = panels["score"][:, place]
        binned(right, law["balance"], over, figures.PALETTE[place], label=name)
    figures.describe(
        right,
        "factor of keys against queries",
        "score error / least error",
        f"KQ-SVD errs least on new scores (n = {len(law)})",
        log="xy",
    )
    return drawing
