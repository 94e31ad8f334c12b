"""Three panels, a cost each: rank correlations of what may predict it, pass by pass."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import GIVEN, by_pass, effects, labels

ROWS = {
    "outputs": "size of outputs",
    "matrices": r"size of $W_V W_O$",
    "subspaces": "index of key subspaces",
    "patterns": "index of patterns",
    f"subspaces{GIVEN}": "subspaces, given sizes",
    f"patterns{GIVEN}": "patterns, given sizes",
    "random": "random",
}
TITLES = {
    "merging": "Merging two heads:\nlayer's output",
    "unexplained": "Merging two heads:\nshare of the head's own output",
    "predictions": "Pruning one head:\nmodel's predictions",
}


def numbers(results: Results) -> dict[str, object]:
    """Median correlations with their intervals and shares of tokens returned, for the caption."""
    medians = {name: median(effect.value) for name, effect in effects(results).items()}
    recovered = {m: float(d["recovered"].mean()) for m, d in results.estimates.items()}
    return {"median": medians, "recovered": recovered}


def median(values: np.ndarray) -> tuple[float, float, float]:
    """The median of stored layers, and order statistics that enclose it at the house's level."""
    count = len(values)
    rank = int(binom(count, 0.5).ppf((1 - house.LEVEL) / 2))
    low, high = np.sort(values)[[rank - 1, count - rank]]
    return float(np.median(values)), float(low), float(high)


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure, by the effects that the answers count."""
    drawing, axes = figures.panels(
        1,
        3,
        height=3.4,
        sharey=True,
        title="The size of what trained heads write orders costs; overlaps add little to it",
    )
    for ax, cost in zip(axes[0], TITLES, strict=True):
        _correlations(ax, results, cost)
    axes[0, 0].set_yticks([-k for k in range(len(ROWS))], list(ROWS.values()))
    drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figures.letters(axes[0])
    return drawing


def _correlations(ax: Axes, results: Results, cost: str) -> None:
    """A point a pass; bars: median of stored layers with its interval."""
    stored, passes, names = effects(results), by_pass(results), labels()
    for place, row in enumerate(ROWS):
        name = f"{cost}, {row}"
        for shift, (model, values) in enumerate(passes.items()):
            shown = values[..., names.index(name)].mean(0)
            ax.plot(
                shown,
                [0.22 * (1 - shift) - place] * len(shown),
                ls="",
                marker=figures.MARKERS[shift],
                ms=3,
                alpha=0.7,
                color=figures.PALETTE[shift],
                label=model if place == 0 else None,
            )
        middle, low, high = median(stored[name].value)
        ax.errorbar(
            middle,
            -place,
            xerr=[[middle - low], [high - middle]],
            marker="D",
            ms=4,
            capsize=2,
            color="black",
            label="median, stored layers" if place == 0 else None,
        )
    ax.axvline(0, color=figures.GREY, lw=0.8, ls=":")
    ax.set(xlim=(-1.05, 1.05), xlabel="rank correlation with the cost", title=TITLES[cost])
