"""Paths and ends of the diversity index, and what learning gains."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse, mean_and_error, ratio
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import PARTS, predicted, share, simulated, streams

LABELS = {
    "noise": "noise",
    "single": "single\ndirection",
    "additive": "additive",
    "isotropic": "isotropic",
}
VARIANTS = {"plain": "plain", "penalty": "penalty on overlap", "weights": "learned output weights"}
COLORS = (figures.PALETTE[0], figures.PALETTE[1], "black")
"""Of the variants."""
ROADS = (predicted, simulated)


def numbers(results: Results) -> dict[str, object]:
    """Numbers that the caption quotes."""
    names = {stream: f"{stream}, plain" for stream in streams(results)}
    errors = {
        (name, road): float(road(results, name, "mse", "after").mean())
        for name in results.points
        for road in ROADS
    }
    ends = {name: float(results.estimates[name]["hdi_after"].mean()) for name in results.points}
    return {
        "seeds": min(results.batches(name) for name in results.points),
        "streams": {stream: LABELS[stream].replace("\n", " ") for stream in names},
        "shares": {
            stream: [float(share(results, name, "cross", road).mean()) for road in ROADS]
            for stream, name in names.items()
        },
        "hdi": {stream: ends[name] for stream, name in names.items()},
        "free": ends["additive, weights"],
        "free_gain": 1
        - errors["additive, weights", simulated] / errors["additive, plain", simulated],
        "harm": [errors["single, penalty", r] / errors["single, plain", r] - 1 for r in ROADS],
        "n_eff": min(
            float(results.prediction(name)[f"n_eff_{state}"].mean())
            for name in results.points
            for state in ("before", "after")
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(2, 2, height=5.2, width=figures.PAGE)
    draw_paths(axes[0, 0], results)
    draw_ends(axes[0, 1], results)
    draw_gains(axes[1, 0], results)
    draw_errors(axes[1, 1], results)
    names = [LABELS[stream] for stream in streams(results)]
    for ax in (axes[0, 1], axes[1, 0], axes[1, 1]):
        ax.set_xticks(range(len(names)), names)
    figures.letters(axes.flat)
    return drawing


def draw_paths(ax: Axes, results: Results) -> None:
    names = streams(results)
    for stream, color, marker in zip(names, figures.PALETTE, figures.MARKERS, strict=False):
        path = results.estimates[f"{stream}, plain"]["hdi"].values
        steps = np.arange(path.shape[1])
        some = np.linspace(0, len(steps) - 1, 9).astype(int)
        mean, error = path.mean(0), mcse(path)
        ax.plot(steps, mean, color=color, lw=0.9, zorder=2)
        figures.simulated(ax, some, mean[some], error[some], color, marker)
    ax.set(xlabel="gradient step", ylabel="diversity index", ylim=(-0.05, 1.08))
    figures.key(ax, [LABELS[s].replace("\n", " ") for s in names], loc="center right")
    ax.set_title("uniform output weights")


def draw_ends(ax: Axes, results: Results) -> None:
    for i, (variant, text) in enumerate(VARIANTS.items()):
        ends = [
            mean_and_error(results.estimates[f"{stream}, {variant}"]["hdi_after"].values)
            for stream in streams(results)
        ]
        value, error = np.array(ends).T
        x = np.arange(len(ends)) + (i - 1) * 0.2
        figures.simulated(ax, x, value, error, COLORS[i], figures.MARKERS[4 + i], label=text)
    ax.set(ylabel="diversity index after learning", ylim=(-0.05, 1.08))
    ax.legend(loc="center left", bbox_to_anchor=(0.42, 0.3))


def draw_both(ax: Axes, x: float, roads: Sequence[np.ndarray], color: str, marker: str) -> None:
    """Theory's mean over seeds as a dash, the simulation's as a point."""
    (law, _), (value, error) = (mean_and_error(values) for values in roads)
    figures.theory(ax, [x - 0.11, x + 0.11], [law] * 2, color, lw=1.6)
    figures.simulated(ax, x, value, error, color, marker)


def draw_gains(ax: Axes, results: Results) -> None:
    """What the gain is made of."""
    for i, part in enumerate(PARTS):
        for place, stream in enumerate(streams(results)):
            shares = [100 * share(results, f"{stream}, plain", part, road) for road in ROADS]
            x = place + (i - 1) * 0.26
            draw_both(ax, x, shares, figures.PALETTE[i], figures.MARKERS[i])
    ax.axhline(0, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    ax.set(ylabel="share of the held-out gain (%)", ylim=(-15, 125), yticks=range(0, 101, 25))
    figures.key(ax, list(PARTS.values()), title="fall of", loc="center")


def draw_errors(ax: Axes, results: Results) -> None:
    """Held-out error after learning over that before."""
    for i, variant in enumerate(VARIANTS):
        for place, stream in enumerate(streams(results)):
            ratios = [
                ratio(
                    *(road(results, f"{stream}, {variant}", "mse", s) for s in ("after", "before"))
                )
                for road in ROADS
            ]
            draw_both(ax, place + (i - 1) * 0.26, ratios, COLORS[i], figures.MARKERS[4 + i])
    ax.set(ylabel="held-out MSE, after / before", ylim=(0, 1.08))
