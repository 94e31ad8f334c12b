"""Noise correlation of two heads against the angle between their key subspaces, by query maps."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import OF_KEYS, law, place, values

NAMES = {
    OF_KEYS: "$W_Q = W_K$",
    "equal": "equal",
    "random": "random",
    "orthogonal": "orthogonal",
    "opposite": "opposite",
}
"""Query maps as the figure calls them, in its order."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    found = {place(results, name): name for name in results.points}
    width = max(width for width, _, _ in found)
    opposite, apart = found[width, "opposite", 0.0], found[width, OF_KEYS, 90.0]
    return {
        "width": width,
        "opposite": mean_and_error(values(results, opposite))[0],
        "apart": mean_and_error(values(results, apart))[0],
        "problems": min(results.batches(name) for name in results.points),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    rows = []
    for name in results.points:
        width, maps, angle = place(results, name)
        rows.append(
            (width, maps, angle, *mean_and_error(values(results, name)), law(results, name))
        )
    columns = ["width", "query maps", "angle", "simulation", "mcse", "theory"]
    table = pd.DataFrame(rows, columns=columns)
    table["order"] = table["query maps"].map({maps: i for i, maps in enumerate(NAMES)})
    table = table.sort_values(["width", "order", "angle"]).replace({"query maps": NAMES})
    widths = sorted(set(table["width"]))
    judged = next(v for v in verdicts if v.regime == "softmax, law of query and key maps")
    drawing, axes = figures.panels(
        1, len(widths), height=3.0, title="One key subspace does not make two heads one"
    )
    for ax, width in zip(axes[0], widths, strict=True):
        figures.curve(
            ax,
            table[table["width"] == width],
            None,
            "angle",
            "noise correlation of two heads" if width == widths[0] else "",
            hue="query maps",
            labels={"loc": "upper right", "title": "query maps"} if width == widths[-1] else None,
            verdict=judged if width == widths[-1] else None,
        )
        ax.set(title=f"$d_k$ = {width}", xlabel="angle between key subspaces (degrees)")
        figures.ticks(ax.xaxis, (0, 30, 60, 90))
        # Room above the lines, for the key.
        ax.set_ylim(top=1 + 0.3 * (1 - ax.get_ylim()[0]))
    figures.letters(axes.flat)
    return drawing
