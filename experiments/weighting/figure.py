"""Gains by regime, and the error under estimated weights against the number of held-out pairs."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import COST, gains, predicted_gain, regimes

RULES = {"ordered": "ordered", "non_negative": "non-negative", "optimal": "optimal (any sign)"}
LABELS = {
    "cluster": "4 of 6\nsimilar",
    "bandwidths": "unequal\nbandwidths",
    "widths": "unequal\nwidths",
}
"""Regime to its name on the axis, where that is not its own."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    cost, heads = results.estimates[COST], int(results.prediction(COST).attrs["heads"])
    even = cost["error"].sel(rule="uniform").mean().item()
    best = cost["oracle"].sel(rule="optimal").mean().item()
    worse, insured = (
        cost["error"].sel(rule=rule, pairs=2 * heads).mean().item() / even
        for rule in ("optimal", "non_negative")
    )
    return {
        "possible": 1 - best / even,
        # Where the law's cost is what the best weights gain on these training sets.
        "break_even": round(heads + law_scale(results.prediction(COST)) / (even - best)),
        "least": 2 * heads,
        "worse": worse,
        "insured": insured,
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(1, 2, height=2.9, width=figures.PAGE)
    draw_gains(axes[0, 0], results)
    draw_cost(axes[0, 1], results.estimates[COST], results.prediction(COST))
    figures.letters(axes.flat)
    return drawing


def draw_gains(ax: Axes, results: Results) -> None:
    places = regimes(results)
    for i, (rule, text) in enumerate(RULES.items()):
        color, marker = figures.PALETTE[i], figures.MARKERS[i]
        for place, name in enumerate(places.values()):
            x = place + (i - 1) * 0.26
            predicted = 100 * predicted_gain(results.prediction(name, "exact"), rule)
            figures.theory(ax, [x - 0.11, x + 0.11], [predicted] * 2, color, lw=1.6)
            gain, error = mean_and_error(100 * gains(results.estimates[name], rule))
            label = text if not place else None
            figures.simulated(ax, x, gain, error, color, marker, label=label)
    ax.axhline(0, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    ax.set_xticks(range(len(places)), [LABELS.get(k, k) for k in places], fontsize=6.5)
    ax.set(ylabel="gain over uniform weights (%)")
    ax.legend(title="weights", loc="upper left")


def law_scale(law: xr.Dataset) -> float:
    """(σ² + R*)(H − 1), from the law's last value."""
    return float(law["excess"][-1] * (law["pairs"][-1] - law.attrs["heads"]))


def draw_cost(ax: Axes, cost: xr.Dataset, law: xr.Dataset) -> None:
    """Error beyond the best weights of the same training sets, in units of uniform weights'."""
    heads, pairs = law.attrs["heads"], cost["pairs"].values
    even = cost["error"].sel(rule="uniform").mean().item()
    beyond = (cost["error"] - cost["oracle"].sel(rule="optimal")) / even
    for i, rule in enumerate(RULES):
        columns = beyond.sel(rule=rule).transpose("pairs", "batch").values
        value, error = np.transpose([mean_and_error(column) for column in columns])
        # Side by side: the rules are close where their constraints do not bind.
        x = pairs * (1 + 0.06 * (i - 1))
        figures.simulated(ax, x, value, error, figures.PALETTE[i], figures.MARKERS[i])
    m = np.geomspace(2 * heads * 0.9, pairs[-1] * 1.1, 200)
    color = figures.PALETTE[list(RULES).index("optimal")]
    figures.theory(ax, m, law_scale(law) / (m - heads) / even, color)
    level, error = mean_and_error(beyond.sel(rule="uniform", pairs=pairs[-1]).values)
    ax.axhline(level, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    figures.simulated(ax, pairs[-1] * 1.25, level, error, figures.GREY, "D")
    ax.annotate("uniform", (pairs[-1], level), xytext=(2, 3), textcoords="offset points",
                ha="right", fontsize=6.5, color=figures.GREY)  # fmt: skip
    figures.log_axes(ax, x=True, y=True, plain=True)
    ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    ax.set(xlabel="held-out pairs $m$ behind the weights",
           ylabel="MSE beyond the best weights'\n(units of MSE under uniform weights)")  # fmt: skip
