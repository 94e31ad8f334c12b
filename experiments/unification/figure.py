"""Variance of pooled agents against their number, by system and collapsed to one law."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import collapsed, gaps, measured, systems


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    every = [results.estimates[measured(name)] for name in systems(results)]
    rho = [float(data["covariance"].mean() / data["variance"].mean()) for data in every]
    fading = next(name for name, kind in systems(results).items() if "evaporating" in kind)
    return {
        "least": min(rho),
        "most": max(rho),
        "agents": int(results.estimates[fading]["agents"][-1]),
        "evaporated": gaps(results, fading)[-1].value,
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(1, 2, height=3.3, width=figures.PAGE)
    (left, right), names = axes[0], list(systems(results))
    for i, name in enumerate(names):
        color, marker = figures.PALETTE[i], figures.MARKERS[i]
        data, moments = results.estimates[name], results.estimates[measured(name)]
        agents, pooled = data["agents"].values, data["pooled"].values
        v = moments["variance"].values.mean()
        m = np.geomspace(1, agents[-1], 100)
        rho = moments["covariance"].values.mean() / v
        figures.theory(left, m, rho + (1 - rho) / m, color)
        figures.simulated(left, agents, pooled.mean(0) / v, mcse(pooled) / v, color, marker)
        # Side by side, or seven systems would lie on one another.
        shift = 1.03 ** (i - (len(names) - 1) / 2)
        figures.simulated(right, agents * shift, *collapsed(data, moments), color, marker)
    most = max(int(results.estimates[name]["agents"][-1]) for name in names)
    m = np.geomspace(1, most, 100)
    figures.theory(right, m, 1 / m, figures.GREY)
    right.annotate("law, $1/M$", (m[25], 1 / m[25]), xytext=(10, 6), fontsize=7, ha="left",
                   textcoords="offset points", color=figures.GREY)  # fmt: skip
    ticks = [2**k for k in range(0, 12, 2) if 2**k <= most]
    for ax in (left, right):
        figures.log_axes(ax, x=True, y=True, plain=True)
        ax.set_xticks(ticks, [str(t) for t in ticks])
        ax.set_xticks([], minor=True)
        ax.set(xlabel="number of agents $M$")
    left.set(ylabel="variance of the pool / variance of one", ylim=(0.04, 1.15))
    left.set_yticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    right.set(ylabel="share that pooling can remove and has not", ylim=(0.006, 1.3))
    right.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    figures.key(right, names, loc="lower left", fontsize=6.5)
    figures.letters(axes.flat)
    return drawing
