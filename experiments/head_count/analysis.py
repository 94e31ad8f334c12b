"""Ensemble variance against the number of heads, at fixed angles."""

from itertools import pairwise

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict, bound, claim, equivalence, ordering
from sims.results import Results
from sims.terms import jackknife

ANGLE, COUNT = "heads.frames.angle", "heads.count"


def variance_ratio(data: xr.Dataset) -> xr.DataArray:
    """Variance of the ensemble over the mean variance of a head."""
    return data["ensemble_variance"] / data["variance"]


def ratios(results: Results) -> dict[tuple[float, int], tuple[float, float, float]]:
    """(angle, H) to the simulated ratio, its MCSE and the predicted ratio."""
    table = {}
    for name, at in results.points.items():
        value, error = jackknife(results.simulation[name], variance_ratio)
        predicted = float(variance_ratio(results.theory[name]))
        table[at[ANGLE], at[COUNT]] = (float(value), float(error), predicted)
    return table


def paired(results: Results, first: str, second: str) -> tuple[float, float]:
    """Ratio at the first point less ratio at the second, over common draws."""

    def difference(data: xr.Dataset) -> xr.DataArray:
        one = data["ensemble_variance"] / data["variance"]
        return one - data["other_ensemble_variance"] / data["other_variance"]

    keep = ["ensemble_variance", "variance"]
    other = results.simulation[second][keep].rename({k: f"other_{k}" for k in keep})
    value, error = jackknife(results.simulation[first][keep].merge(other), difference)
    return float(value), float(error)


def judge(results: Results, experiment) -> list[Verdict]:
    table = ratios(results)
    names = {(at[ANGLE], at[COUNT]): name for name, at in results.points.items()}
    angles, counts = sorted({a for a, _ in table}), sorted({h for _, h in table})
    common = {
        "batches": min(results.batches(name) for name in results.points),
        "replicates": results.replicates,
    }

    def verdict(chosen, finding):
        return Verdict.of(chosen, results.experiment, finding)

    aligned = claim(experiment, "not-heads-alone", "aligned heads")
    several = [table[0, h] for h in counts if h > 1]
    verdicts = [
        verdict(
            aligned,
            equivalence(
                [value - 1 for value, _, _ in several],
                [error for _, error, _ in several],
                margin=aligned.margin,
                level=aligned.level,
                **common,
            ),
        )
    ]
    curve = claim(experiment, "not-heads-alone", "any angle")
    spread = [table[a, h] for a in angles for h in counts if a > 0 and h > 1]
    verdicts.append(
        verdict(
            curve,
            equivalence(
                [value / predicted - 1 for value, _, predicted in spread],
                [error / predicted for _, error, predicted in spread],
                margin=curve.margin,
                level=curve.level,
                **common,
            ),
        )
    )
    wider = claim(experiment, "not-heads-alone", "wider angle at fixed H")
    most = counts[-1]
    steps = [paired(results, names[a, most], names[b, most]) for a, b in pairwise(angles)]
    verdicts.append(
        verdict(
            wider,
            ordering(
                [value for value, _ in steps],
                [error for _, error in steps],
                margin=wider.margin,
                level=wider.level,
                **common,
            ),
        )
    )
    adding = claim(experiment, "adding-heads")
    narrow = next(a for a in angles if a > 0)
    few = counts[-2]
    gain, error = paired(results, names[narrow, few], names[narrow, most])
    before = table[narrow, few][0]
    verdicts.append(
        verdict(
            adding,
            bound(
                [gain / before],
                [error / before],
                margin=adding.margin,
                level=adding.level,
                **common,
            ),
        )
    )
    return verdicts


def figure(results: Results) -> Figure:
    table = ratios(results)
    angles, counts = sorted({a for a, _ in table}), sorted({h for _, h in table})
    drawing, axes = figures.panels(1, 1, width=figures.COLUMN, height=2.9)
    ax = axes[0, 0]
    with figures.style():
        heads = np.array(counts)
        ax.plot(heads, 1 / heads, color=figures.GREY, lw=0.9, ls=":", zorder=1)
        ax.annotate(
            "independent heads, $1/H$",
            (8, 1 / 8),
            xytext=(-6, -1),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=6.5,
            color=figures.GREY,
        )
        for angle, color, marker in zip(angles, figures.PALETTE, figures.MARKERS, strict=False):
            value, error, predicted = np.array([table[angle, h] for h in counts]).T
            figures.theory(ax, heads, predicted, color)
            figures.simulated(ax, heads, value, error, color, marker)
            name = {0: "aligned, ", 90: "orthogonal, "}.get(int(angle), "") + f"{angle:.0f}°"
            ax.annotate(
                name,
                (heads[-1], predicted[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color=color,
            )
        figures.log_axes(ax, x=True, y=True, plain=True)
        ax.set_xticks(heads, [str(h) for h in heads])
        ax.set_xticks([], minor=True)
        ax.set_yticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
        ax.set_ylim(0.9 / heads[-1], 1.15)
        ax.set_xlim(0.93, heads[-1] * 2.6)
        ax.set_xlabel("number of heads $H$")
        ax.set_ylabel("ensemble variance / head variance")
    return drawing
