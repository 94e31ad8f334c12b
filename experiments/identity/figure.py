"""Gaps to library attention by claim, and the attention that a missing tilt moves."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import effects, moved, part

GAPS = {
    "one head, float64": ("identity", "float64"),
    "one head, float32": ("identity", "float32"),
    "one head, mixed": ("identity", "float64 inputs, softmax in float32"),
    "layer, float64": ("ensemble", "float64"),
    "layer, float32": ("ensemble", "float32"),
    "with the tilt": ("identity", "Gaussian kernel, any key norms, with the tilt"),
}
"""Family of gaps to the claim and regime that it decides."""
LITERAL = "without the tilt"
MOVED = {LITERAL: "total_variation", "with the tilt": "tilted_total_variation"}


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    tilt, shares = part(results, "tilt"), attention(results, LITERAL)
    # About the spread of the norms of N(0, I) keys.
    normal = float(1 / np.sqrt(2 * results.number(tilt[0], "width")))
    return {
        "normal_spread": normal,
        "moved_at_normal": float(np.interp(normal, shares["spread"], shares["simulation"])),
        "tilted": max(float(results.estimates[p][MOVED["with the tilt"]].max()) for p in tilt),
    }


def attention(results: Results, kernel: str) -> pd.DataFrame:
    """The share of attention that moves, with its MCSE, by the spread of key norms."""
    rows = [
        (kernel, results.number(p, "spread"), *mean_and_error(moved(results, p, MOVED[kernel])))
        for p in part(results, "tilt")
    ]
    return pd.DataFrame(rows, columns=["kernel", "spread", "simulation", "mcse"]).sort_values(
        "spread"
    )


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    own = {label: claims[at] for label, at in GAPS.items()}
    families = effects(results)
    gaps = [(label, np.asarray(e.values).max(), 0.0) for label in GAPS for e in families[label]]
    drawing, axes = figures.panels(
        1,
        2,
        height=2.5,
        title="Attention is kernel regression to rounding, with the exponential kernel",
    )
    left, right = axes[0]
    figures.forest(
        left,
        pd.DataFrame(gaps, columns=["label", "value", "error"]),
        percent=False,
        verdict=own,
        margin={label: (-np.inf, claim.margin) for label, claim in own.items()},
    )
    left.set(xlim=0, xlabel="largest gap (units of rounding)", title="heads against libraries")
    law = results.prediction(part(results, "tilt")[0])["curve"]
    line = pd.DataFrame({"kernel": LITERAL, "spread": law["curve_spread"], "theory": law})
    claim = claims["identity", "Gaussian kernel, unequal key norms, without the tilt"]
    figures.curve(
        right,
        pd.concat([attention(results, kernel) for kernel in MOVED]),
        pd.concat([line, line.assign(kernel="with the tilt", theory=0.0)]),
        "spread",
        "attention moved (%)",
        hue="kernel",
        verdict={LITERAL: claim, "with the tilt": own["with the tilt"]},
    )
    figures.band(right, claim.margin)
    figures.percent_axis(right.yaxis)
    right.set(xlabel="spread of key norms (sd / mean)", title="Gaussian for softmax kernel")
    figures.letters(axes.flat)
    return drawing
