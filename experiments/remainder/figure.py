"""The relative gap against n, beside lines of slope −1."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import TERMS, controlled, gaps


def numbers(results: Results) -> dict[str, float]:
    """How many times fewer replicates the controls need: the least and the most over all points."""
    name, count = TERMS["noise variance"]
    gains = [
        (
            mcse(data[name].sel(control=0).values)
            / mcse(controlled(data, f"{name}_remainder", count))
        )
        ** 2
        for data in results.estimates.values()
    ]
    return {"gain_low": float(np.min(gains)), "gain_high": float(np.max(gains))}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(1, 2, width=figures.PAGE, height=2.9, sharey=True)
    for ax, kernel in zip(axes.flat, results.points, strict=True):
        for index, term in enumerate(TERMS):
            rows = [(e.x, e.value, e.error) for e in gaps(results, kernel, term)]
            n, mean, error = np.transpose(np.array(rows, float))
            # The line's height: weighted as the fit, so that noisy points do not move it.
            weight = np.where(mean > 0, (mean / error) ** 2, 0)
            level = np.average(np.log(np.abs(mean) * n), weights=weight)
            color, marker = figures.PALETTE[index], figures.MARKERS[index]
            figures.theory(ax, n, 100 * np.exp(level) / n, color, ls="--")
            figures.simulated(ax, n * 1.06**index, 100 * mean, 100 * error, color, marker)
        figures.log_axes(ax, x=True, y=True)
        ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        ax.set_xticks(n, [f"{k:g}" for k in n])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("number of keys $n$")
        ax.set_title(f"{kernel} kernel")
    axes[0, 0].set_ylabel("1 − exact / first order (%)")
    figures.key(axes[0, 0], list(TERMS), loc="lower left", title="dashed: slope −1")
    figures.letters(axes.flat)
    return drawing
