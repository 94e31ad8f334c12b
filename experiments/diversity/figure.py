"""The validity map of sixteen indices, error against diversity, and the counterexamples."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from sims import figures
from sims.diversity import DEFINITIONS
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    REGIMES,
    Configuration,
    Key,
    configurations,
    counterexamples,
    error_ratio,
    groups,
    predicted,
    rises,
    search,
)

PARTS = {"MSE": "mse", "squared bias": "squared_bias", "variance": "ensemble_variance"}
SHADES = {"supported": "#c7e5d5", "refuted": "#f6cdb8", "inconclusive": "#e6e6e6"}
MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
ROWS = [(d, v) for v in ("total", "geometric", "noise", "signal") for d in DEFINITIONS]
"""Of the map: claims are about the upper half."""
SEARCHES = {"three lines,\nnoise alone": "", "two lines,\none wave": "one wave"}
"""The map's columns of counterexamples; the search of all indices, or one for each of them."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers for the caption."""
    own = search(results)
    none = [] if own is None else own["searched_ratio"].values[own["less"].values == ""]
    first = [results.prediction(point) for point in results.points]
    return {
        "configurations": len(groups(results, "pure noise")),
        "draws": max((data.sizes.get("target", 0) for data in first), default=0),
        "fewest_keys": min(float(1 / (1 / data["n_eff"]).mean()) for data in first),
        "tried": 0 if own is None else int(own["tried"].sum()),
        "most_without": float(max(none, default=np.nan)),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    examples = counterexamples(results)
    drawing, axes = figures.panels(1, 1, width=figures.PAGE, height=7.2)
    axes[0, 0].remove()
    upper, middle, lower = cast(
        Sequence[SubFigure], drawing.subfigures(3, 1, height_ratios=(3.8, 2.1, 1.15))
    )
    top = upper.subplots()
    draw_map(top, results, {v.regime: v for v in verdicts if v.claim == "hdi-monotone"})
    present = [r for r in ("pure noise", "one fixed target", "single index") if groups(results, r)]
    below = middle.subplots(1, len(present), squeeze=False)[0]
    for ax, regime in zip(below, present, strict=True):
        draw_parts(ax, results, configurations(results, regime))
        ax.set_title(regime)
        ax.set_xlabel("index (mean, total)")
    below[0].set_ylabel("share of aligned heads' MSE")
    figures.key(below[0], list(PARTS), loc="lower left")
    last = lower.subplots(1, max(len(examples), 1), squeeze=False)[0]
    for ax, (name, pair) in zip(last, examples.items(), strict=False):
        draw_example(ax, results, name, *pair)
    figures.letters([top, *below, last[0]])
    return drawing


def draw_map(ax: Axes, results: Results, verdicts: Mapping[str, Verdict]) -> None:
    """Every index and regime: the verdict, or theory's answer where the ledger has no claim."""
    columns = [regime for regime in REGIMES if groups(results, regime)]
    columns += list(SEARCHES) if counterexamples(results) else []
    for column, name in enumerate(columns):
        worst = {} if name in SEARCHES else worst_rises(results, configurations(results, name))
        for row, key in enumerate(ROWS):
            verdict = verdicts.get(f"{name}, {key[0]}, {key[1]}")
            words, fill, style = "–", "white", "italic"
            if verdict is not None:
                style, fill, words = "normal", SHADES[verdict.verdict], MARKS[verdict.verdict]
                if verdict.effect is not None:
                    words += f"  {percent(-verdict.effect)}"
            elif key in worst:
                words = percent(worst[key])
            elif name in SEARCHES and (rise := counterexample(results, name, key)) is not None:
                words, fill, style = f"✗  {percent(rise)}", SHADES["refuted"], "normal"
            ax.bar(column, 1, 1, row - 0.5, color=fill, ec="0.85", lw=0.8)
            ax.text(column, row, words, ha="center", va="center", fontsize=6, fontstyle=style,
                    color="black" if style == "normal" else "0.35")  # fmt: skip
    for row in (4, 8, 12):
        ax.axhline(row - 0.5, color="black", lw=0.8)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(ROWS) - 0.5, -0.5))
    ax.set_yticks(range(len(ROWS)), [f"{d}, {v}" for d, v in ROWS], fontsize=6.5)
    names = [c if "\n" in c else c.replace(" ", "\n", 1) for c in columns]
    ax.set_xticks(range(len(columns)), names, fontsize=6.5)
    ax.xaxis.tick_top()
    ax.set_title("change of the MSE from a less to a more diverse configuration, worst pair")
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)


def worst_rises(results: Results, every: Sequence[Configuration]) -> dict[Key, float]:
    """Each index to the largest relative rise of theory's error over pairs that it tells apart."""
    worst: dict[Key, float] = {}
    for low, high in permutations(every, 2):
        for key, rise in rises(low, high).items():
            if rise >= results.settings["resolution"]:
                worst[key] = max(worst.get(key, -np.inf), high.law / low.law - 1)
    return worst


def counterexample(results: Results, column: str, key: Key) -> float | None:
    """The relative rise of the simulated error in the pair for an index, if one is shown."""
    definition, version = key
    # Under noise alone the total index is that of noise.
    own = f"{definition}, {'noise' if version == 'total' else version}"
    pair = counterexamples(results).get(SEARCHES[column] or own)
    return None if pair is None else float(error_ratio(results, *pair).mean()) - 1


def percent(value: float) -> str:
    """With sign, two digits below 10 %; a factor where it more than doubles."""
    if value > 1:
        return f"× {1 + value:.2g}"
    digits = 1 if abs(value) < 0.0995 else 0
    return f"{100 * value:+.{digits}f} %".replace("-", "−")


def draw_parts(ax: Axes, results: Results, every: Sequence[Configuration]) -> None:
    """Error and its two parts against the index; the line joins equiangular heads."""
    every = sorted(every, key=lambda one: one.index["mean", "total"])
    index = np.array([one.index["mean", "total"] for one in every])
    points = [one.points[0] for one in every]
    kinds = [results.problems[point]["heads"]["frames"]["kind"] for point in points]
    even = np.array([kind == "equiangular" for kind in kinds])
    scale = float(results.prediction(points[0])["mse"])
    for term, color, marker in zip(PARTS.values(), figures.PALETTE, figures.MARKERS, strict=False):
        line = np.array([float(results.prediction(point)[term]) for point in points]) / scale
        figures.theory(ax, index[even], line[even], color)
        batches = [results.estimates[point][term].values / scale for point in points]
        value, error = np.transpose([mean_and_error(b) for b in batches])
        for chosen, fill in ((even, "white"), (~even, color)):
            figures.simulated(
                ax, index[chosen], value[chosen], error[chosen], color, marker,
                markerfacecolor=fill,
            )  # fmt: skip
    ax.set_ylim(bottom=0)


def draw_example(ax: Axes, results: Results, name: str, less: str, more: str) -> None:
    """Both sets of lines of a counterexample, and the ratio of their errors by both roads."""
    for place, point in enumerate((less, more)):
        angles = np.deg2rad(results.problems[point]["heads"]["frames"]["angles"])
        for angle in np.unique(angles):
            x, y = np.cos(angle), np.sin(angle)
            ax.plot(
                [3 * place - x, 3 * place + x], [-y, y], color=figures.PALETTE[place],
                # As many lines as lie on one another.
                lw=1.1 * np.sum(angles == angle), solid_capstyle="butt",
            )  # fmt: skip
    ax.text(1.5, 0, "→", ha="center", va="center")
    value, error = mean_and_error(error_ratio(results, less, more))
    law = predicted(results, [more]) / predicted(results, [less])
    digits = 3 if law < 10 else 1
    ax.set_title(
        name.replace(", ", ",\n") if ", " in name else "all sixteen,\none wave", fontsize=6.5
    )
    ratios = f"× {law:.{digits}f}\n× {value:.{digits}f} ± {2 * error:.{digits}f}"
    ax.text(1.5, -1.3, ratios, ha="center", va="top", fontsize=6)
    ax.set(xlim=(-1.1, 4.1), ylim=(-2.7, 1.1), aspect="equal")
    ax.axis("off")
