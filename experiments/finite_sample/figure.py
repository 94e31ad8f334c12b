"""First-order gaps against the effective number of keys, and simulation against exact theory."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import TERMS, by_kernel, curve, effective_keys, simulated


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    gaps = [simulated(results, p, term) for p in results.points for term in TERMS.values()]
    keys = [effective_keys(results, point) for point in results.points]
    return {
        "worst_gap": max(abs(gap.value) for gap in gaps),
        "worst_error": max(gap.error for gap in gaps),
        "comparisons": len(gaps),
        "fewest_keys": min(keys),
        "most_keys": max(keys),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    groups = by_kernel(results)
    looks = list(zip(figures.PALETTE, figures.MARKERS, strict=False))
    drawing, axes = figures.panels(2, 2, width=figures.PAGE, height=4.6, sharex=True)
    for label, ax in zip(("noise variance", "signal variance", "squared bias"), axes.flat):
        ax.axhspan(-5, 5, color="0.93", zorder=0)
        for (kernel, names), (color, marker) in zip(groups.items(), looks, strict=False):
            keys, gap = curve(results, kernel, TERMS[label])
            figures.theory(ax, keys, 100 * gap, color)
            for name in names:
                value, error = first_over_simulated(results, name, TERMS[label])
                at = effective_keys(results, name)
                figures.simulated(ax, at, 100 * (value - 1), 100 * error, color, marker)
        ax.set_yscale("symlog", linthresh=1.0)
        ticks = (-10, -1, 0, 1, 10, 100, 1000, 10000)
        ax.set_yticks(ticks, [f"{t:,}".replace("-", "−") for t in ticks])
        ax.set_ylim(-20, 20000)
        ax.axhline(0, color=figures.GREY, lw=0.8, zorder=1)
        ax.set_title(label)
        ax.set_ylabel("first order / exact − 1 (%)")
    ax = axes[1, 1]
    ax.axhspan(-1, 1, color="0.93", zorder=0)
    ax.axhline(0, color=figures.GREY, lw=0.8, zorder=1)
    for names, (color, marker) in zip(groups.values(), looks, strict=False):
        for place, term in enumerate(TERMS.values()):
            gaps = [simulated(results, name, term) for name in names]
            figures.simulated(
                ax, [effective_keys(results, name) * 1.08 ** (place - 2.5) for name in names],
                [100 * gap.value for gap in gaps], [100 * gap.error for gap in gaps],
                color, marker, markersize=2.4, capsize=1,
            )  # fmt: skip
    ax.set_title("all terms")
    ax.set_ylabel("simulation / exact − 1 (%)")
    ax.set_ylim(-1.5, 1.5)
    for ax in axes.flat:
        figures.log_axes(ax, x=True)
    for ax in axes[1]:
        ax.set_xlabel(r"effective keys $n_\mathrm{eff}$")
    figures.key(axes[1, 0], list(groups), loc="upper right")
    figures.letters(axes.flat)
    return drawing


def first_over_simulated(results: Results, point: str, term: str) -> tuple[float, float]:
    """First-order over simulated value, and its Monte Carlo standard error."""
    first, exact = (float(results.prediction(point, order)[term]) for order in ("first", "exact"))
    gap = simulated(results, point, term)
    value = first / (exact * (1 + gap.value))
    return value, value * gap.error
