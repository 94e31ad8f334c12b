"""Errors by width, items needed by number of entries, the best scale by entry."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import jackknife, mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    NEEDED,
    PRINTED_RATE,
    PRINTED_SIZE,
    RANGES,
    by_entries,
    effects,
    fitted,
    part,
    rate,
    width,
)

D = 2
SHOWN = {"within": "norm ≤ 1", "products": "8 products"}


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    own = curves(results)
    size, speed = fitted(results, own["products"])
    widths = effects(results)["widths"]
    return {
        "rate": float(rate(results, own["within"], "rate, later").mean()),
        "law": float(np.log(2) / D),
        "size": float(size.mean()),
        "speed": float(speed.mean()),
        "narrow": float(np.exp(max(e.value for e in widths if e.at["constant"] == "1/ln2"))),
        "wide": float(np.exp(max(e.value for e in widths if e.at["constant"] == "8"))),
    }


def curves(results: Results) -> dict[str, str]:
    """Kind of target to the point of its curve at d = 2 and one block."""
    return {
        str(results.coordinates[p]["target"]): p
        for p in part(results, "curve")
        if results.number(p, "d") == D and results.coordinates[p]["blocks"] == 1
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        1,
        3,
        height=2.9,
        title="Pruning halves the error with every item an entry, if targets are within reach",
    )
    by_width(
        axes[0, 0], results, claims["slt-rate", "targets within the assumption, 12 to 20 items"]
    )
    by_count(axes[0, 1], results, claims["slt-entries", "slope"])
    by_scale(axes[0, 2], results, claims["slt-scale", "n_K^(1/4)"])
    figures.letters(axes.flat)
    return drawing


def by_width(ax: Axes, results: Results, claim: Verdict) -> None:
    """Median error of an entry against n_K with theory, its mean output error, the printed fit."""
    rows, points = [], curves(results)
    for name, words in SHOWN.items():
        data, theory = results.estimates[points[name]], results.prediction(points[name])
        for place, items in enumerate(data["per_entry"].values):
            values = mean_and_error(data["median_entry"].values[:, place])
            rows.append((D * items, words, *values, float(theory["median_entry"].values[place])))
    frame = pd.DataFrame(rows, columns=["n_K", "target", "simulation", "mcse", "theory"])
    figures.curve(
        ax,
        frame,
        None,
        "n_K",
        "median error of an entry",
        hue="target",
        log="y",
        verdict=claim,
        labels={"loc": "lower left"},
    )
    figures.log_axes(ax, y=True)
    x = frame["n_K"].unique()
    printed = PRINTED_SIZE * np.exp(-PRINTED_RATE * x)
    figures.reference(ax, printed, "printed fit of means", x=x, at=0.9)
    data = results.estimates[points["products"]]
    means, errors = np.transpose([mean_and_error(v) for v in data["mean_output"].values.T])
    figures.simulated(ax, x, means, errors, figures.PALETTE[1], "x")
    figures.note(ax, "×: mean error of the output, 8 products")
    figures.note(ax, "grey: where the rate is judged")
    first, last = RANGES["rate, later"]
    ax.axvspan(D * first, D * last, color=figures.BAND, lw=0, zorder=0)
    ax.set(xlabel="width of the source $n_K$", title=f"$d$ = {D}")


def by_count(ax: Axes, results: Results, claim: Verdict) -> None:
    """Items needed for an error of 2^−11 against the number of entries."""
    data, theory = results.estimates["many"], results.prediction("many")
    items, counts = data["searched"].values.astype(float), data["count"].values
    found = jackknife(
        {"log": data["log_error"].values}, lambda means: by_entries(means["log"], items)
    )
    law = by_entries(theory["log_error"].values, items)
    rows = [
        (count, *mean_and_error(column), float(one))
        for count, column, one in zip(counts, found.T, law, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["entries", "simulation", "mcse", "theory"])
    figures.curve(ax, frame, None, "entries", "items needed", log="x", verdict=claim)
    slope = law[0] + np.log2(counts / counts[0])
    figures.reference(ax, slope, "slope 1", x=counts, at=0.8)
    figures.ticks(ax.xaxis, counts)
    ax.set(xlabel="entries", title=rf"largest error $2^{{{np.log2(NEEDED):.0f}}}$")


def by_scale(ax: Axes, results: Results, claim: Verdict) -> None:
    """Scale of least median error against the entry, with theory's and n_K^{1/4}."""
    points = part(results, "scale")
    for place, n in enumerate(sorted({width(results, p) for p in points})):
        own = [p for p in points if width(results, p) == n]
        found = []
        for point in own:
            data = results.estimates[point]
            best = int(data["error"].mean("batch").values.argmin())
            found.append((results.number(point, "entry"), float(data["scale"].values[0, best])))
        x, y = np.transpose(found)
        ax.plot(
            x * (1 + 0.06 * (place - 1)),
            y,
            ls="none",
            marker=figures.MARKERS[place],
            color=figures.PALETTE[place],
            markerfacecolor="white",
            label=f"$n_K$ = {n:g}",
        )
        ax.axhline(n**0.25, color=figures.PALETTE[place], lw=0.8, ls=(0, (4, 3)))
    entries = sorted({results.number(p, "entry") for p in points})
    law = {results.number(p, "entry"): float(results.prediction(p)["best"]) for p in points}
    figures.theory(ax, entries, [law[w] for w in entries], figures.GREY)
    figures.log_axes(ax, x=True, y=True, plain=True)
    figures.ticks(ax.xaxis, entries)
    figures.ticks(ax.yaxis, (0.5, 1, 2, 4))
    ax.set(xlabel="entry |w|", ylabel="best bound of weights", title="scale", ylim=(0.45, 6.5))
    ax.legend(loc="upper left")
    figures.badge(ax, claim)
    figures.note(ax, r"dashed: $n_K^{1/4}$")
