"""Errors at the best bandwidth, their slopes, and what averaging heads changes."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse, mean_and_error, ratio
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    COMMON,
    ENSEMBLE,
    FAR,
    HEADS,
    SATURATION,
    best,
    compare,
    exponent,
    simulated_change,
    slope_of,
    slopes,
    widths,
)

FEWEST_COMPARED = 50.0
"""Effective keys of the caption's two groups of problems, as in the claim."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    gaps = compare(results)
    inside = [abs(e.value) for e in gaps if float(e.at["n_eff"]) >= FEWEST_COMPARED]
    outside = [abs(e.value) for e in gaps if float(e.at["n_eff"]) < FEWEST_COMPARED]
    change, data = simulated_change(results), widths(results)
    joint = results.prediction(ENSEMBLE)
    one, many = slope_of(joint["mse_of_heads"].values, joint["size"].values)
    common = slopes(data[1], COMMON, max(HEADS), 1) - slopes(data[1], COMMON, 1, 1)
    edges = [
        slopes(law.sel(beta=[SATURATION]), FAR).mean() - exponent(SATURATION, width)
        for width, law in data.items()
    ]
    return {
        "compared": len(inside),
        "left_out": len(outside),
        "worst": max(inside, default=0.0),
        "few_keys": min(float(e.at["n_eff"]) for e in gaps),
        "worst_few": max(outside, default=0.0),
        "smallest": int(joint["size"][0]),
        "largest": int(joint["size"][-1]),
        "joint": max(HEADS),
        "simulated_gain": -change.value,
        "predicted_gain": float(one - many),
        "simulated_bar": 2 * change.error,
        "common_least": float(-common.mean(0).max()),
        "common_most": float(-common.mean(0).min()),
        "edge": float(max(edges)),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    data = widths(results)
    drawing, axes = figures.panels(2, max(len(data), 3), height=4.9, width=figures.PAGE)
    for ax, (width, law) in zip(axes[0], data.items(), strict=False):
        draw_errors(ax, law, results.estimates[f"width {width}"], width)
    axes[0, 0].set_ylabel("MSE at the best bandwidth")
    betas = data[min(data)]["beta"].values
    figures.key(axes[0, 0], [f"{b:g}" for b in betas], title="β", loc="lower left")
    draw_slopes(axes[1, 0], data)
    draw_gains(axes[1, 1], results)
    draw_local(axes[1, 2], data[1])
    figures.letters(axes.flat)
    return drawing


def draw_errors(ax: Axes, law: xr.Dataset, simulated: xr.Dataset, width: int) -> None:
    n = np.geomspace(1e2, 1e8, 49)
    # The targets that were simulated, not all.
    shared = law.isel(group=slice(int(law.attrs["shared_groups"]))).mean("group")
    batches, lines = simulated["mse"].values, best(shared, n)[0]
    rows = zip(lines, batches.mean(0), mcse(batches), strict=True)
    for (line, value, error), color, marker in zip(
        rows, figures.PALETTE, figures.MARKERS, strict=False
    ):
        figures.theory(ax, n, line, color)
        figures.simulated(ax, simulated["size"], value, error, color, marker)
    figures.log_axes(ax, x=True, y=True)
    ax.set(title=f"$d_k$ = {width}", xlabel="number of keys $n$", ylim=(1e-7, 1))


def draw_slopes(ax: Axes, data: dict[int, xr.Dataset]) -> None:
    fine = np.linspace(0.4, 3.1, 200)
    colors, markers = figures.PALETTE[5:], figures.MARKERS[5:]
    for (width, law), color, marker in zip(data.items(), colors, markers, strict=False):
        flat = np.minimum(fine, SATURATION)
        figures.theory(ax, fine, exponent(flat, width), color)
        beyond = fine >= SATURATION
        figures.theory(ax, fine[beyond], exponent(fine[beyond], width), color, ls="--", lw=0.8)
        fitted = slopes(law, FAR)
        figures.simulated(ax, law["beta"], fitted.mean(0), mcse(fitted), color, marker)
    figures.key(ax, [f"{width}" for width in data], colors, markers, title="$d_k$", ncols=3)
    ax.set(xlabel="smoothness β", ylabel="slope of log MSE on log $n$", ylim=(-0.95, 0.02))


def draw_gains(ax: Axes, results: Results) -> None:
    """MSE of H heads over that of one, d_0 = 1, d_k = 2, β = 1."""
    law, joint = widths(results)[1], results.prediction(ENSEMBLE)
    n = np.geomspace(1e2, 1e16, 113)
    shared = law.sel(beta=[1.0]).isel(group=slice(int(law.attrs["shared_groups"]))).mean("group")
    for heads, color in zip((*HEADS, np.inf), figures.PALETTE, strict=False):
        line = best(shared, n, heads, 1)[0][0] / best(shared, n, 1, 1)[0][0]
        figures.theory(ax, n, line, color)
        if np.isfinite(heads):
            ax.axhline(float(heads ** exponent(1.0, 2)), color=color, lw=0.8, ls="--", zorder=1)
    one, many = np.moveaxis(results.estimates[ENSEMBLE]["mse_of_heads"].values.astype(float), 1, 0)
    pairs = zip(many.T, one.T, strict=True)
    value, error = np.transpose([mean_and_error(ratio(*pair)) for pair in pairs])
    figures.simulated(ax, joint["size"], value, error, figures.PALETTE[1], figures.MARKERS[1])
    figures.log_axes(ax, x=True, y=True)
    ax.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    ax.set(xlabel="number of keys $n$", ylabel="MSE of $H$ heads / of one", ylim=(0.08, 1.1))


def draw_local(ax: Axes, law: xr.Dataset) -> None:
    n = np.geomspace(1e2, 1e16, 57)
    for heads, color in zip((*HEADS, np.inf, 1), figures.PALETTE, strict=False):
        line = np.log(best(law.sel(beta=[1.0]).mean("group"), n, heads, 1)[0][0])
        figures.theory(ax, n, np.gradient(line, np.log(n)), color)
    for width in (1, 2):
        ax.axhline(float(exponent(1.0, width)), color=figures.GREY, lw=0.7, ls="--", zorder=1)
        ax.annotate(
            f"$-2β/(2β+{width})$", (1e16, exponent(1.0, width)), xytext=(0, 3), ha="right",
            textcoords="offset points", fontsize=6.5, color=figures.GREY,
        )  # fmt: skip
    names = [f"{h}" for h in HEADS] + ["∞", "1"]
    figures.key(ax, names, markers=[""] * 4, title="$H$ (e, f)", loc="center right")
    figures.log_axes(ax, x=True)
    ax.set(xlabel="number of keys $n$", ylabel="local slope")
