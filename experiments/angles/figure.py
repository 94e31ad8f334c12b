"""Noise correlation and variance kept against the angle."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    ANGLE,
    KERNEL,
    averaged,
    compared,
    curves,
    gap_to_exact,
    gap_to_law,
    noise_correlation,
    query_error,
    variance_kept,
)

LOOKS = {
    width: (figures.PALETTE[place], figures.MARKERS[place]) for place, width in enumerate((1, 2, 4))
}
"""Of a head width, the same in every panel."""


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    many, few = averaged(results), compared(results)
    laws = {name: float(results.prediction(name)["law"]) for name in many}
    estimates = [mean_and_error(results.pseudovalues(name, noise_correlation)) for name in many]
    gaps = {
        kernel: max(
            abs(gap_to_law(results, name).value)
            for name in many
            if results.coordinates[name][KERNEL] == kernel
        )
        for kernel in ("gaussian", "softmax")
    }
    problem = results.problems[many[0]]
    return {
        "gap_gaussian": gaps["gaussian"],
        "gap_softmax": gaps["softmax"],
        "query_error": max(query_error(results.prediction(p)) / law for p, law in laws.items()),
        "mcse": max(error / value for value, error in estimates),
        "gap_exact": max(abs(gap_to_exact(results, name).value) for name in few),
        "few": results.problems[few[0]]["queries"]["count"],
        "least_keys": min(float(results.prediction(name)["n_eff"].mean()) for name in many),
        "queries": problem["queries"]["count"],
        "n": problem["n"],
        "scale": problem["queries"]["scale"],
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    groups = curves(results)
    drawing, axes = figures.panels(2, 2, sharex=True)
    bandwidths = {
        kernel: sorted({b for k, b, _ in groups if k == kernel}) for kernel, _, _ in groups
    }
    small, large = bandwidths["gaussian"][0], bandwidths["gaussian"][-1]
    temperature = bandwidths["softmax"][0]
    for ax, kernel, bandwidth in (
        (axes[0, 0], "gaussian", small),
        (axes[0, 1], "gaussian", large),
        (axes[1, 0], "softmax", temperature),
    ):
        for (of, at, width), points in groups.items():
            if (of, at) == (kernel, bandwidth):
                law = results.prediction(points[0])["law_curve"]
                figures.theory(ax, law["curve_angle"], law, LOOKS[width][0])
                _simulated(ax, results, points, noise_correlation, width)
        ax.set(ylim=(0, 1.04), ylabel="noise correlation of two heads")
        setting = f"b = {bandwidth:g}" if kernel == "gaussian" else f"s = {bandwidth**2:.2f}"
        ax.set_title(f"{kernel} kernel, {setting}")
    ax = axes[1, 1]
    for (kernel, bandwidth, width), points in groups.items():
        if (kernel, bandwidth) == ("gaussian", small):
            theory = [results.prediction(name) for name in points]
            kept = [float(t["ensemble_variance"] / t["variance"]) for t in theory]
            figures.theory(ax, [results.number(p, ANGLE) for p in points], kept, LOOKS[width][0])
            _simulated(ax, results, points, variance_kept, width)
    heads = results.problems[averaged(results)[0]]["heads"]["count"]
    ax.axhline(1 / heads, color=figures.GREY, lw=0.8, ls=(0, (4, 3)), zorder=1)
    ax.annotate("1/H: independent heads", (0, 1 / heads), xytext=(0, 3), color=figures.GREY,
                textcoords="offset points", fontsize=7)  # fmt: skip
    ax.set(ylim=(0, 1.04), ylabel="variance of the ensemble / of a head")
    ax.set_title(f"signal and noise, b = {small:g}")
    for ax in axes[1]:
        ax.set(xlabel="principal angle θ (degrees)", xticks=range(0, 91, 15))
    widths = sorted({width for _, _, width in groups})
    colors, markers = zip(*(LOOKS[width] for width in widths), strict=True)
    labels = [f"$d_k$ = {width}" for width in widths]
    figures.key(axes[0, 1], labels, colors, markers, loc="lower left")
    figures.letters(axes.flat)
    return drawing


def _simulated(ax: Axes, results: Results, points: list[str], statistic: Any, width: int) -> None:
    angles = [results.number(name, ANGLE) for name in points]
    pairs = [mean_and_error(results.pseudovalues(name, statistic)) for name in points]
    value, error = zip(*pairs, strict=True)
    figures.simulated(ax, angles, value, error, *LOOKS[width])
