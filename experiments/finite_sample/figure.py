"""First-order theory against exact theory and simulation, and exact theory against simulation."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.effects import Effect
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import TERMS, by_kernel, curve, effective_keys, simulated

DRAWN = ("noise variance", "signal variance", "squared bias")
"""Terms whose first-order gap is drawn: the other three follow them."""
LEAST_KEYS = 50
"""Effective keys from which on first-order theory is held to its claims."""
LEAST_GAP = 0.05
"""First order's gap from which on exact theory is held to simulation, as in the row's ``where``."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    gaps = list(compared(results).values())
    keys = [float(gap.at["n_eff"]) for gap in gaps]
    return {
        "worst_gap": max(abs(gap.value) for gap in gaps),
        "worst_error": max(gap.error for gap in gaps),
        "comparisons": len(gaps),
        "fewest_keys": min(keys),
        "most_keys": max(keys),
    }


def compared(results: Results) -> dict[tuple[str, str], Effect]:
    """Simulation over exact theory where the row "every term" looks, by point and term.

    There first order is off by 5 % and more; elsewhere sampling goes on for no row.
    """
    gaps = {
        (point, label): simulated(results, point, term)
        for point in results.points
        for label, term in TERMS.items()
        if term != "mse"
    }
    return {
        name: gap
        for name, gap in gaps.items()
        if float(gap.at["first_order_gap"]) >= LEAST_GAP and float(gap.at["n_eff"]) <= LEAST_KEYS
    }


def points(results: Results) -> pd.DataFrame:
    """Simulated terms, and those that first-order theory predicts."""
    rows = []
    for kernel, names in by_kernel(results).items():
        for name in names:
            data, theory = results.estimates[name], results.prediction(name, "first")
            for label, term in TERMS.items():
                value, error = float(data[term].mean()), float(data[f"{term}_mcse"])
                keys = effective_keys(results, name)
                rows.append((kernel, label, keys, value, error, float(theory[term])))
    columns = ["kernel", "term", "keys", "simulation", "mcse", "theory"]
    return pd.DataFrame(rows, columns=columns)


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    first = points(results)
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    own = {kernel: by_regime[f"first order, {kernel}"] for kernel in by_kernel(results)}
    margin = next(iter(own.values())).margin
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=5,
        title="Where first-order theory of attention stops being true",
    )
    for ax, label in zip((axes[letter] for letter in "abc"), DRAWN, strict=True):
        ax.set_yscale("symlog", linthresh=0.01, linscale=0.6)
        for kernel, color in zip(by_kernel(results), figures.PALETTE, strict=False):
            keys, gap = curve(results, kernel, TERMS[label])
            figures.theory(ax, keys, 1 / (1 + gap) - 1, color)
        figures.gap(
            ax,
            first[first["term"] == label],
            "keys",
            hue="kernel",
            verdict=own,
            over=(LEAST_KEYS, np.inf),
            # The claim is about first order / exact − 1, whose band is not quite symmetric here.
            margin=(1 / (1 + margin) - 1, 1 / (1 - margin) - 1),
            labels={"loc": "lower right"} if label == DRAWN[-1] else None,
        )
        ax.set_ylim(-1.6, 0.2)
        figures.ticks(ax.yaxis, (-1, -0.1, -0.01, 0, 0.01, 0.1), percent=True)
        ax.set(
            title=label,
            xlabel=r"effective keys $n_\mathrm{eff}$",
            ylabel="simulation / first order − 1 (%)",
        )
    gaps = [(label, gap.value, gap.error) for (_, label), gap in compared(results).items()]
    figures.forest(
        axes["d"],
        pd.DataFrame(gaps, columns=["label", "value", "error"]),
        margin=by_regime["every term"].margin,
        verdict=by_regime["every term"],
    )
    axes["d"].set(title="exact theory where first order fails", xlabel="simulation / exact − 1 (%)")
    figures.letters(axes[letter] for letter in sorted(axes))
    return drawing
