"""The error by levels, outcomes, corrections of blocks, and mixtures of scales."""

import numpy as np
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
    _ratios(axes["c"], panels, "spread", corrected, "keys")
    figures.ticks(axes["c"].xaxis, (0.1, 0.3, 1, 3))
    axes["c"].set(
        ylim=(2e-4, None),
        xlabel="standard deviation in a block",
        ylabel="error, corrected / not",
        title="Correcting wide blocks harms",
    )
    mixed = 1 + panels.effects["one bandwidth"].value
    _ratios(axes["d"], panels, "step", mixed, "views")
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
    half = panels.parameters["levels"].to_numpy()[:, None] // 2 >= np.array(KEPT)
    ends = (panels["predicted"], "-", 1.0), (panels["simulated"], "", 0.0)
    for ink, marker, kind in zip(figures.PALETTE, figures.MARKERS, TARGETS, strict=False):
        for error, line, band in ends:
            of_kind = (panels.parameters["target"] == kind).to_numpy()
            inside = (half & of_kind[:, None])[: len(error)]
            ratio = np.where(inside, (error / error[:, :1]) ** 0.5, np.nan)
            if not inside.any():
                continue
            shown = inside.any(0)
            low, median, high = np.nanquantile(ratio[:, shown], (0.25, 0.5, 0.75), axis=0)
            kept = np.array(KEPT)[shown]
            ax.fill_between(kept, low, high, color=ink, alpha=0.2 * band, lw=0)
            label = None if line else f"{kind} (n = {inside[:, 0].sum()})"
            ax.plot(kept, median, line or marker, color=ink, label=label)
    figures.log_axes(ax, y=True)
    ax.legend(title="target's weights", loc="lower left")
    ax.set(
        ylim=(2e-4, 1.5),
        xlabel="levels kept, L",
        ylabel="error / error of one level",
        title="Levels pay if weights are ordered",
    )


def _ratios(ax: Axes, panels: Panels, x: str, values: np.ndarray, hue: str) -> None:
    """Medians and quartiles of a ratio along a field of the law, by another one."""
    frame = panels.parameters.iloc[: len(values)].assign(ratio=values)
    binned_by(ax, frame, x, "ratio", hue, {"views": "$d_k$"}.get(hue, hue))
    figures.dotted(ax, y=1)
    figures.log_axes(ax, x=True, y=True)
