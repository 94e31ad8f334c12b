"""Gaps in units of rounding, of heads and of layers, and what a missing tilt moves."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import law, moved, part

PRECISIONS = {"float64": "float64, equinox", "float32": "float32, jax.nn"}


def numbers(results: Results) -> dict[str, object]:
    """Numbers that the caption quotes."""
    single, layer, tilt = (part(results, name) for name in ("single", "layer", "tilt"))
    width = int(results.number(tilt[0], "width"))
    spread, shares, _ = rows(results, "total_variation").T
    return {
        "worst": {v: largest(results, single, v) for v in PRECISIONS},
        "worst_layer": max(largest(results, layer, v) for v in PRECISIONS),
        "widths": sorted({int(results.number(point, "width")) for point in single}),
        "tilt_width": width,
        "tilt_n": int(results.number(tilt[0], "n")),
        "normal_spread": normal_spread(width),
        "moved_at_normal": float(np.interp(normal_spread(width), spread, shares)),
        "law_gap": max(
            abs(moved(results, point).mean() / law(results, point) - 1)
            for point in tilt
            if results.number(point, "spread") > 0
        ),
        "tilted": largest(results, tilt, "tilted_total_variation"),
    }


def largest(results: Results, points: Sequence[str], variable: str) -> float:
    """The largest of all replicates at some points."""
    return max(float(results.estimates[point][variable].max()) for point in points)


def rows(results: Results, variable: str) -> np.ndarray:
    """Spread, share of attention moved and its MCSE: one row a spread, ascending."""
    every = [
        (results.number(point, "spread"), *mean_and_error(moved(results, point, variable)))
        for point in part(results, "tilt")
    ]
    return np.array(sorted(every))


def normal_spread(width: int) -> float:
    """About the coefficient of variation of the norm of N(0, I) keys."""
    return float(1 / np.sqrt(2 * width))


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(1, 3, height=2.5, width=figures.PAGE)
    single, layer, tilt = axes[0]
    draw_single(single, results)
    draw_layers(layer, results)
    draw_tilt(tilt, results)
    figures.letters(axes.flat)
    return drawing


def draw_ranges(
    ax: Axes, x: ArrayLike, samples: Sequence[np.ndarray], color: str, marker: str, filled: bool
) -> None:
    """Median over replicates with a bar from the smallest to the largest."""
    middle, low, high = (np.array([f(s) for s in samples]) for f in (np.median, np.min, np.max))
    ax.errorbar(
        x, middle, yerr=[middle - low, high - middle], color=color, marker=marker, ls="none",
        markerfacecolor=color if filled else "white", markeredgewidth=0.9, elinewidth=0.8,
        capsize=2, capthick=0.8,
    )  # fmt: skip


def draw_single(ax: Axes, results: Results) -> None:
    sizes: dict[tuple[float, float], list[str]] = {}
    for point in part(results, "single"):
        at = results.number(point, "n"), results.number(point, "width")
        sizes.setdefault(at, []).append(point)
    counts, widths = (sorted(set(axis)) for axis in zip(*sizes, strict=True))
    lanes = len(widths) * len(PRECISIONS)
    for i, width in enumerate(widths):
        for j, variable in enumerate(PRECISIONS):
            samples = [
                np.concatenate([results.estimates[p][variable].values for p in sizes[n, width]])
                for n in counts
            ]
            # Side by side: the middle of the group stands at n.
            shift = (i * len(PRECISIONS) + j - (lanes - 1) / 2) * 0.8 / lanes
            x = np.arange(len(counts)) + shift
            draw_ranges(ax, x, samples, figures.PALETTE[i], figures.MARKERS[i], j == 0)
    ax.set_xticks(range(len(counts)), [f"{n:g}" for n in counts])
    ax.set(xlabel="number of keys $n$", ylabel="largest gap of a weight\n(units of rounding)")
    figures.key(ax, [f"$d_k$ = {w:g}" for w in widths], ncols=len(widths), loc="upper center",
                columnspacing=0.8, handlelength=1.0, handletextpad=0.4)  # fmt: skip
    ax.set_title("one head")
    unit_axis(ax)


def draw_layers(ax: Axes, results: Results) -> None:
    points = part(results, "layer")
    for j, (variable, text) in enumerate(PRECISIONS.items()):
        samples = [results.estimates[point][variable].values for point in points]
        x = np.arange(len(points)) + (j - 0.5) * 0.3
        draw_ranges(ax, x, samples, figures.GREY, "o", j == 0)
        ax.plot([], [], color=figures.GREY, marker="o", ls="none", markeredgewidth=0.9,
                markerfacecolor=figures.GREY if j == 0 else "white",
                label=text.split(",")[0])  # fmt: skip
    sizes = [tuple(results.number(p, k) for k in ("heads", "width")) for p in points]
    ax.set_xticks(range(len(points)), [f"{h:g}×{w:g}" for h, w in sizes], fontsize=6.5)
    ax.set(xlabel="layer, $H × d_k$", ylabel="largest gap of an output\n(units of rounding)")
    ax.legend(loc="upper center", ncols=2, columnspacing=0.8, handletextpad=0.2)
    ax.set_title("multi-head layer")
    unit_axis(ax)


def unit_axis(ax: Axes) -> None:
    """Units of rounding, with a line at one."""
    figures.log_axes(ax, y=True, plain=True)
    ax.set(ylim=(0.05, 40))
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.set_xticks([], minor=True)
    ax.axhline(1, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)


def draw_tilt(ax: Axes, results: Results) -> None:
    first = part(results, "tilt")[0]
    plain, tilted = figures.PALETTE[3], figures.PALETTE[0]
    curve = results.prediction(first)["curve"]
    figures.theory(ax, curve["curve_spread"], curve, plain)
    without, with_ = (rows(results, v) for v in ("total_variation", "tilted_total_variation"))
    for every, color, marker in ((without, plain, "s"), (with_, tilted, "o")):
        figures.simulated(ax, every[:, 0], every[:, 1], every[:, 2], color, marker)
    normal = normal_spread(int(results.number(first, "width")))
    ax.axvline(normal, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    ax.annotate("keys $N(0, I)$", (normal, 0.56), xytext=(3, 0), textcoords="offset points",
                fontsize=6.5, color=figures.GREY, va="center")  # fmt: skip
    ax.annotate("without the tilt", (0.5, without[-1, 1]), xytext=(0, -46), fontsize=7,
                color=plain, textcoords="offset points", ha="right")  # fmt: skip
    ax.annotate("with the tilt", (0.5, 0), xytext=(0, 5), fontsize=7, color=tilted,
                textcoords="offset points", ha="right")  # fmt: skip
    ax.set(xlabel="spread of key norms (sd / mean)", ylabel="attention moved, $½Σ|w - w'|$")
    ax.set(ylim=(-0.03, 0.62), xlim=(-0.02, 0.53))
    ax.set_title("Gaussian for softmax kernel")
