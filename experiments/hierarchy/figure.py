"""The error by levels, outcomes, corrections of blocks, and mixtures of scales."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned_by, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .problems import KEPT

TARGETS = ("geometric", "power law", "any order")
QUESTIONS = {
    "scale-decay": "falls, geometric weights",
    "scale-decay-power": "falls, power law",
    "scale-decay-any": "falls, no order",
    "scale-error": "correction, spread ≤ 1",
    "scale-error-wide": "correction, spread > 1",
}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    first, second = answers["scale-decay"].word, answers["scale-decay-power"].word
    title = (
        f"The error of few levels falls geometrically: {first} for geometric weights, "
        f"{second} for a power law"
    )
    drawing, axes = figures.mosaic(("ab", "cd"), height=4.3, title=title)
    _levels(axes["a"], panels)
    outcome_bars(axes["b"], outcomes_of_answers(answers, QUESTIONS))
    axes["b"].set_title(f"The correction helps narrow blocks: {answers['scale-error'].word}")
    corrected = 1 - panels.effects["correction"].value[:, 0]
    mixed = 1 + panels.effects["one bandwidth"].value
    frame = panels.parameters[: len(mixed)].assign(corrected=corrected, mixed=mixed)
    binned_by(axes["c"], frame, "spread", "corrected", "keys", "keys")
    binned_by(axes["d"], frame, "step", "mixed", "views", "$d_k$")
    for ax in (axes["c"], axes["d"]):
        figures.dotted(ax, y=1)
        figures.log_axes(ax, x=True, y=True)
    figures.ticks(axes["c"].xaxis, (0.1, 0.3, 1, 3))
    axes["c"].set(
        ylim=(2e-4, None),
        xlabel="standard deviation in a block",
        ylabel="error, corrected / not",
        title="Correcting wide blocks harms",
    )
    figures.ticks(axes["d"].xaxis, (1.1, 1.5, 2, 3))
    figures.ticks(axes["d"].yaxis, (0.5, 0.7, 1))
    axes["d"].set(
        xlabel="ratio of bandwidths",
        ylabel="error, mixed / one bandwidth",
        title="Mixing scales in outputs lowers the error",
    )
    return drawing


def _levels(ax: Axes, panels: Panels) -> None:
    """Root mean squared error over that of one level, up to half of the target's levels."""
    half = panels.parameters["levels"].to_numpy()[:, None] // 2 >= KEPT
    for place, kind in enumerate(TARGETS):
        of_kind = (panels.parameters["target"] == kind).to_numpy()
        ink = figures.PALETTE[place]
        label = None
        for name, mark in {"predicted": "-", "simulated": figures.MARKERS[place]}.items():
            error = panels[name]
            ratio = np.where(half[: len(error)], (error / error[:, :1]) ** 0.5, np.nan)
            rows = pd.DataFrame(ratio[of_kind[: len(error)]])
            low, median, high = rows.quantile([0.25, 0.5, 0.75]).to_numpy()
            if mark == "-":
                ax.fill_between(KEPT, low, high, color=ink, alpha=0.2, lw=0)
            else:
                label = f"{kind} (n = {len(rows)})"
            ax.plot(KEPT, median, mark, color=ink, label=label)
    figures.log_axes(ax, y=True)
    ax.legend(title="target's weights", loc="lower left")
    ax.set(
        ylim=(2e-4, 1.5),
        xlabel="levels kept, L",
        ylabel="error / error of one level",
        title="Levels pay if weights are ordered",
    )
