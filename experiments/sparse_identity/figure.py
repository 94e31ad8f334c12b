"""What a row attends to, in the plane; gaps by claim; the way to softmax."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import batches, effects, part

ANY, EQUAL = "scores −distance²/2s", "dot products, equal key norms"
GAPS = {
    "sparsemax, distance": ("sparsemax-epanechnikov", ANY),
    "sparsemax, equal norms": ("sparsemax-epanechnikov", EQUAL),
    "entmax, distance": ("entmax-family", ANY),
    "entmax, equal norms": ("entmax-family", EQUAL),
    "relu, equal norms": ("relu-epanechnikov", "equal key norms"),
    "relu of the gap, equal norms": (
        "relu-epanechnikov",
        "gap to the best key, equal key norms",
    ),
}
"""Family of gaps to the claim and regime that it decides."""
TINT = "#dbe8f3"
"""Of the region whose keys are attended to."""
SHOWN = (3, 12)
"""The row that is drawn has so many attended keys: of the first rows the first with as many."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes: shares of rows that pass over a nearer key."""
    shares = {
        rule: [float(batches(results, point, rule).mean()) for point in part(results, "literal")]
        for rule in ("sparsemax", "relu")
    }
    empty = [abs(effect.value) for effect in effects(results)["empty rows"]]
    return {
        "sparsemax_least": min(shares["sparsemax"]),
        "sparsemax_most": max(shares["sparsemax"]),
        "relu_least": min(shares["relu"]),
        "relu_most": max(shares["relu"]),
        "empty_gap": max(empty),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    own = {label: claims[at] for label, at in GAPS.items()}
    families = effects(results)
    drawing, axes = figures.mosaic(
        ("abc", "ddd"),
        height=4.3,
        heights=(2.2, 1.6),
        title="Sparsemax attends to a disc if keys have one norm, and to a half-plane if not",
    )
    attention(axes["a"], results, "disc")
    attention(axes["b"], results, "half-plane")
    gaps = [
        (label, np.asarray(effect.values).max(), 0.0)
        for label in GAPS
        for effect in families[label]
    ]
    figures.forest(
        axes["d"],
        pd.DataFrame(gaps, columns=["label", "value", "error"]),
        percent=False,
        verdict=own,
        margin={label: (-np.inf, claim.margin) for label, claim in own.items()},
    )
    axes["d"].set(xlim=0, xlabel="largest gap (units of rounding)", title="rules against kernels")
    rows = [
        (
            "α-entmax",
            results.number(point, "power"),
            *mean_and_error(batches(results, point, "gap")),
        )
        for point in part(results, "softmax")
    ]
    points = pd.DataFrame(rows, columns=["rule", "power", "simulation", "mcse"])
    last = points.iloc[-1]
    line = points.assign(theory=last["simulation"] * last["power"] / points["power"])
    figures.curve(
        axes["c"],
        points,
        line,
        "power",
        "largest difference of weights",
        hue="rule",
        log="xy",
        labels="none",
        verdict=claims["softmax-limit", "fixed keys"],
    )
    axes["c"].set(xlabel="power ν", title="the way to softmax")
    figures.letters(axes[letter] for letter in sorted(axes))
    return drawing


def attention(ax: Axes, results: Results, name: str) -> None:
    """Keys of one row, those attended to filled, with the edge of what is attended to."""
    data = results.estimates[name].isel(batch=0)
    counts = (data["attended"] > 0).sum("key").values
    row = data.isel(replicate=int(np.argmax((counts >= SHOWN[0]) & (counts <= SHOWN[1]))))
    keys, query, weights = (row[part].values for part in ("keys", "query", "attended"))
    inside = weights > 0
    # w = z − τ for every attended key.
    threshold = float(np.mean((keys @ query - weights)[inside]))
    ax.scatter(
        keys[~inside, 0],
        keys[~inside, 1],
        s=14,
        facecolors="white",
        edgecolors=figures.GREY,
        zorder=2,
    )
    ax.scatter(keys[inside, 0], keys[inside, 1], s=20, color=figures.PALETTE[0], zorder=3)
    ax.scatter(query[0], query[1], marker="*", s=90, color=figures.PALETTE[1], zorder=4)
    reach = 1.15 * max(np.abs(keys).max(), np.abs(query).max())
    if name == "disc":
        square = query @ query + keys[0] @ keys[0] - 2 * threshold
        ax.add_patch(
            Circle((query[0], query[1]), square**0.5, facecolor=TINT, edgecolor=figures.PALETTE[0])
        )
        reach = max(reach, 1.05 * (np.abs(query).max() + square**0.5))
    else:
        grid = np.linspace(-reach, reach, 400)
        field = query[0] * grid[None] + query[1] * grid[:, None]
        ax.contourf(grid, grid, field, [threshold, np.inf], colors=[TINT])
        ax.contour(grid, grid, field, [threshold], colors=[figures.PALETTE[0]], linewidths=1)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    figures.note(ax, "star: query")
    figures.note(ax, "filled keys: attended to, as all in the blue region")
    ax.set_title("keys of one norm: a disc" if name == "disc" else "any keys: a half-plane")
