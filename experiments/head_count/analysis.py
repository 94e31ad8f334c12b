"""Ensemble variance against the number of heads, at fixed angles."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sims import figures
from sims.judgement import Evidence, Verdict, bound, claim, equivalence, identity, ordering
from sims.results import Results
from sims.terms import jackknife

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ANGLE, COUNT = "heads.frames.angle", "heads.count"


def variance_ratio(data: Any) -> Any:
    """Variance of the ensemble over the mean variance of a head."""
    return data["ensemble_variance"] / data["variance"]


class Ratio(NamedTuple):
    """A point's ratio: simulated, its MCSE, predicted, and a bound on theory's relative error."""

    value: float
    error: float
    predicted: float
    slack: float
    batches: int
    name: str


def ratios(results: Results) -> dict[tuple[float, int], Ratio]:
    """(angle, H) to the ratio there."""
    table = {}
    for name, at in results.points.items():
        value, error = jackknife(results.simulation[name], variance_ratio)
        theory = results.theory[name]
        predicted = float(variance_ratio(theory))
        parts = ("ensemble_variance", "variance")
        slack = sum(float(theory[f"{part}_error"] / theory[part]) for part in parts)
        table[at[ANGLE], at[COUNT]] = Ratio(
            float(value), float(error), predicted, slack, results.batches(name), name
        )
    return table


def paired(results: Results, first: str, second: str) -> tuple[float, float, int]:
    """Ratio at the first point less ratio at the second over common draws, MCSE, batches."""
    count = min(results.batches(first), results.batches(second))

    def difference(data: Any) -> Any:
        one = data["ensemble_variance"] / data["variance"]
        return one - data["other_ensemble_variance"] / data["other_variance"]

    keep = ["ensemble_variance", "variance"]
    one, other = (results.simulation[n][keep].isel(batch=slice(count)) for n in (first, second))
    other = other.rename({k: f"other_{k}" for k in keep})
    value, error = jackknife(one.merge(other), difference)
    return float(value), float(error), count


def judge(results: Results, experiment) -> list[Verdict]:
    table = ratios(results)
    names = {(at[ANGLE], at[COUNT]): name for name, at in results.points.items()}
    angles, counts = sorted({a for a, _ in table}), sorted({h for _, h in table})
    replicates = results.replicates

    def verdict(chosen, finding):
        return Verdict.of(chosen, results.experiment, finding)

    aligned = claim(experiment, "not-heads-alone", "aligned heads")
    # Heads of one subspace are one head: an identity of every draw, here of every batch.
    gaps = [(variance_ratio(results.simulation[names[0, h]]) - 1).values for h in counts if h > 1]
    verdicts = [
        verdict(
            aligned,
            identity(
                np.concatenate(gaps),
                margin=aligned.margin,
                level=aligned.level,
                replicates=replicates,
            ),
        )
    ]
    curve = claim(experiment, "not-heads-alone", "any angle")
    spread = [table[a, h] for a in angles for h in counts if a > 0 and h > 1]
    verdicts.append(
        verdict(
            curve,
            equivalence(
                Evidence(
                    np.array([r.value / r.predicted - 1 for r in spread]),
                    np.array([r.error / r.predicted for r in spread]),
                    np.array([r.batches for r in spread]),
                    replicates,
                    tuple((r.name,) for r in spread),
                    bounds=np.array([r.slack for r in spread]),
                ),
                margin=curve.margin,
                level=curve.level,
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
                Evidence(
                    np.array([value for value, _, _ in steps]),
                    np.array([error for _, error, _ in steps]),
                    np.array([count for _, _, count in steps]),
                    replicates,
                    tuple((names[a, most], names[b, most]) for a, b in pairwise(angles)),
                ),
                margin=wider.margin,
                level=wider.level,
            ),
        )
    )
    adding = claim(experiment, "adding-heads")
    narrow = next(a for a in angles if a > 0)
    few = counts[-2]
    gain, error, count = paired(results, names[narrow, few], names[narrow, most])
    before = table[narrow, few].value
    verdicts.append(
        verdict(
            adding,
            bound(
                Evidence(
                    np.array([gain / before]),
                    error / before,
                    count,
                    replicates,
                    ((names[narrow, few], names[narrow, most]),),
                ),
                margin=adding.margin,
                level=adding.level,
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
            value, error, predicted = np.array([table[angle, h][:3] for h in counts]).T
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
