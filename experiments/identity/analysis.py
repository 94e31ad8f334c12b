"""Claims `identity` and `ensemble`; the figure: rounding gaps, and what a missing tilt moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sims.results import Results

from sims import figures
from sims.judgement import Evidence, Verdict, claim, equivalence, identity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KERNEL = "Gaussian kernel, "
GAPS = (
    ("identity", "float64", "single", "float64"),
    ("identity", "float32", "single", "float32"),
    ("identity", "float64 inputs, softmax in float32", "single", "mixed"),
    ("identity", f"{KERNEL}equal key norms", "equal", "plain"),
    ("identity", f"{KERNEL}any key norms, with the tilt", "tilt", "tilted"),
    ("ensemble", "float64", "layer", "float64"),
    ("ensemble", "float32", "layer", "float32"),
)
"""Claim, regime, part of the experiment, variable."""
PRECISIONS = {"float64": "float64, equinox", "float32": "float32, jax.nn"}


def judge(results: Results, experiment: Any) -> list[Verdict]:
    verdicts = []
    for name, regime, part, variable in GAPS:
        wanted = claim(experiment, name, regime)
        gaps = [data[variable].values.ravel() for data in _part(results, part).values()]
        finding = identity(
            np.concatenate(gaps) if gaps else [],
            margin=wanted.margin,
            level=wanted.level,
            replicates=results.replicates,
        )
        verdicts.append(Verdict.of(wanted, results.experiment, finding))

    rows = _moved(results)
    spread, moved, error, law = rows[rows[:, 0] > 0].T
    common: dict[str, Any] = {
        "batches": np.array([results.batches(n) for n in _part(results, "tilt")][: len(spread)]),
        "replicates": results.replicates,
        "fixed": True,
    }
    for regime, effects, errors in (
        ("unequal key norms, without the tilt", moved, error),
        ("size of the difference", moved / law - 1, error / law),
    ):
        wanted = claim(experiment, "identity", KERNEL + regime)
        evidence = Evidence(effects, errors, **common)
        finding = equivalence(evidence, margin=wanted.margin, level=wanted.level)
        verdicts.append(Verdict.of(wanted, results.experiment, finding))
    return verdicts


def figure(results: Results) -> Figure:
    drawing, axes = figures.panels(1, 3, height=2.5, width=figures.PAGE)
    single, layer, tilt = axes[0]
    with figures.style():
        _single(single, results)
        _layer(layer, results)
        _tilt(tilt, results)
    figures.letters(axes.flat)
    return drawing


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    rows = _moved(results)
    single = _part(results, "single").values()
    data = next(iter(_part(results, "tilt").values()))
    return {
        "worst": {v: max(float(d[v].max()) for d in single) for v in PRECISIONS},
        "worst_layer": max(
            float(d[v].max()) for d in _part(results, "layer").values() for v in PRECISIONS
        ),
        "widths": sorted({int(d.attrs["width"]) for d in single}),
        "tilt_width": int(data.attrs["width"]),
        "tilt_n": int(data.attrs["n"]),
        "normal_spread": _normal_spread(int(data.attrs["width"])),
        "moved_at_normal": float(np.interp(_normal_spread(data.attrs["width"]), *rows[:, :2].T)),
        "law_gap": float(np.max(np.abs(rows[1:, 1] / rows[1:, 3] - 1))),
        "tilted": max(
            float(d["tilted_total_variation"].max()) for d in _part(results, "tilt").values()
        ),
    }


def _part(results: Results, part: str) -> dict[str, xr.Dataset]:
    """Datasets of one part of the experiment; ``equal`` is its points of equal key norms."""
    wanted = "tilt" if part == "equal" else part
    return {
        name: data
        for name, data in results.simulation.items()
        if data.attrs["part"] == wanted and (part != "equal" or data.attrs["spread"] == 0)
    }


def _moved(results: Results) -> np.ndarray:
    """Spread, attention moved, its MCSE and the n → ∞ law: one row a spread, ascending."""
    rows = []
    for name, data in _part(results, "tilt").items():
        batches = data["total_variation"].mean("replicate").values
        error = batches.std(ddof=1) / np.sqrt(len(batches))
        law = float(results.theory[name]["total_variation"])
        rows.append((data.attrs["spread"], batches.mean(), error, law))
    return np.array(sorted(rows))


def _normal_spread(width: int) -> float:
    """About the coefficient of variation of the norm of N(0, I) keys."""
    return float(1 / np.sqrt(2 * width))


def _ranges(
    ax: Axes, x: Any, samples: list[np.ndarray], color: Any, marker: str, filled: bool
) -> None:
    """Median over replicates with a bar from the smallest to the largest."""
    middle, low, high = (np.array([f(s) for s in samples]) for f in (np.median, np.min, np.max))
    ax.errorbar(
        x, middle, yerr=[middle - low, high - middle], color=color, marker=marker, ls="none",
        markerfacecolor=color if filled else "white", markeredgewidth=0.9, elinewidth=0.8,
        capsize=2, capthick=0.8,
    )  # fmt: skip


def _single(ax: Axes, results: Results) -> None:
    data = _part(results, "single").values()
    sizes = sorted({d.attrs["n"] for d in data})
    widths = sorted({d.attrs["width"] for d in data})
    count = len(widths) * len(PRECISIONS)
    for i, (width, color, marker) in enumerate(
        zip(widths, figures.PALETTE, figures.MARKERS, strict=False)
    ):
        for j, variable in enumerate(PRECISIONS):
            samples = [
                np.concatenate(
                    [
                        d[variable].values.ravel()
                        for d in data
                        if (d.attrs["n"], d.attrs["width"]) == (n, width)
                    ]
                )
                for n in sizes
            ]
            # Side by side: the middle of the group stands at n.
            shift = (i * len(PRECISIONS) + j - (count - 1) / 2) * 0.8 / count
            _ranges(ax, np.arange(len(sizes)) + shift, samples, color, marker, j == 0)
    ax.set_xticks(range(len(sizes)), [str(n) for n in sizes])
    ax.set(xlabel="number of keys $n$", ylabel="largest gap of a weight\n(units of rounding)")
    figures.key(ax, [f"$d_k$ = {w}" for w in widths], ncols=len(widths), loc="upper center",
                columnspacing=0.8, handlelength=1.0, handletextpad=0.4)  # fmt: skip
    ax.set_title("one head")
    _unit_axis(ax)


def _layer(ax: Axes, results: Results) -> None:
    data = list(_part(results, "layer").values())
    for j, (variable, text) in enumerate(PRECISIONS.items()):
        samples = [d[variable].values.ravel() for d in data]
        x = np.arange(len(data)) + (j - 0.5) * 0.3
        _ranges(ax, x, samples, figures.GREY, "o", j == 0)
        ax.plot([], [], color=figures.GREY, marker="o", ls="none", markeredgewidth=0.9,
                markerfacecolor=figures.GREY if j == 0 else "white",
                label=text.split(",")[0])  # fmt: skip
    ax.set_xticks(
        range(len(data)), [f"{d.attrs['heads']}×{d.attrs['width']}" for d in data], fontsize=6.5
    )
    ax.set(xlabel="layer, $H × d_k$", ylabel="largest gap of an output\n(units of rounding)")
    ax.legend(loc="upper center", ncols=2, columnspacing=0.8, handletextpad=0.2)
    ax.set_title("multi-head layer")
    _unit_axis(ax)


def _unit_axis(ax: Axes) -> None:
    figures.log_axes(ax, y=True, plain=True)
    ax.set(ylim=(0.05, 40))
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.set_xticks([], minor=True)
    ax.axhline(1, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)


def _tilt(ax: Axes, results: Results) -> None:
    rows = _moved(results)
    parts = _part(results, "tilt")
    name, data = next(iter(parts.items()))
    plain, tilted = figures.PALETTE[3], figures.PALETTE[0]
    curve = results.theory[name]["curve"]
    figures.theory(ax, curve["curve_spread"], curve, plain)
    figures.simulated(ax, rows[:, 0], rows[:, 1], rows[:, 2], plain, "s")
    means = np.array(
        sorted(
            (
                d.attrs["spread"],
                *_mean_and_error(d["tilted_total_variation"]),
            )
            for d in parts.values()
        )
    )
    figures.simulated(ax, means[:, 0], means[:, 1], means[:, 2], tilted, "o")
    normal = _normal_spread(data.attrs["width"])
    ax.axvline(normal, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    ax.annotate("keys $N(0, I)$", (normal, 0.56), xytext=(3, 0), textcoords="offset points",
                fontsize=6.5, color=figures.GREY, va="center")  # fmt: skip
    ax.annotate("without the tilt", (0.5, rows[-1, 1]), xytext=(0, -46), fontsize=7, color=plain,
                textcoords="offset points", ha="right")  # fmt: skip
    ax.annotate("with the tilt", (0.5, 0), xytext=(0, 5), fontsize=7, color=tilted,
                textcoords="offset points", ha="right")  # fmt: skip
    ax.set(xlabel="spread of key norms (sd / mean)", ylabel="attention moved, $½Σ|w - w'|$")
    ax.set(ylim=(-0.03, 0.62), xlim=(-0.02, 0.53))
    ax.set_title("Gaussian for softmax kernel")


def _mean_and_error(data: xr.DataArray) -> tuple[float, float]:
    batches = data.mean("replicate").values
    return float(batches.mean()), float(batches.std(ddof=1) / np.sqrt(len(batches)))
