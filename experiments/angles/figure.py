"""Noise correlation and variance kept against the angle between heads' subspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sims.results import Results

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KERNEL, WIDTH = "heads.kernel", "heads.width"
ANGLE, BANDWIDTH = "heads.frames.angle", "heads.bandwidth"
FEW = "queries.count"
"""Coordinate of the points that exact theory covers."""
Terms = Mapping[str, np.ndarray]


def noise_correlation(terms: Terms) -> np.ndarray:
    """Of two heads: a ratio of averages over queries, as the law is."""
    return terms["cross_noise_covariance"] / terms["noise_variance"]


def variance_kept(terms: Terms) -> np.ndarray:
    """Share of a head's variance that the ensemble keeps."""
    return terms["ensemble_variance"] / terms["variance"]


def table(results: Results, statistic: Callable[[Terms], np.ndarray], few: bool) -> pd.DataFrame:
    """A statistic by both roads at the points of equal angles, of few queries or of many."""
    rows = []
    for name, at in results.points.items():
        if (FEW in at) != few or not np.isscalar(at[ANGLE]):
            continue
        theory = results.theory[name]
        value, error = mean_and_error(results.pseudovalues(name, statistic))
        predicted = float(statistic({str(k): v.values for k, v in theory.items()}))
        width = f"$d_k$ = {at[WIDTH]}"
        rows.append((name, at[KERNEL], at[BANDWIDTH], width, at[ANGLE], value, error, predicted))
    columns = ["name", KERNEL, BANDWIDTH, "heads", "angle", "simulation", "mcse", "theory"]
    frame = pd.DataFrame(rows, columns=columns)
    widths = sorted({at[WIDTH] for at in results.points.values()})
    # A width has its colour in every panel.
    return frame.assign(heads=pd.Categorical(frame["heads"], [f"$d_k$ = {w}" for w in widths]))


def law(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """The angle law's dense curve for each width of these points."""
    parts = []
    for heads, part in rows.groupby("heads", observed=True):
        curve = results.theory[part["name"].iloc[0]]["law_curve"]
        parts.append(pd.DataFrame({"angle": curve["angle"], "value": curve, "heads": heads}))
    return pd.concat(parts).astype({"heads": rows["heads"].dtype})


def figure(results: Results, verdicts: list[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    correlation = table(results, noise_correlation, few=False)
    drawing, axes = figures.panels(2, 3, width=figures.PAGE, height=4.4)
    settings = correlation.groupby([KERNEL, BANDWIDTH], sort=True)
    for ax, ((kernel, bandwidth), rows) in zip(axes[0], settings, strict=True):
        claim = claims[f"{kernel} kernel"]
        figures.curve(
            ax, rows.rename(columns={"simulation": "value"}), law(results, rows), "angle", "value",
            error="mcse", hue="heads", margin=claim.margin, verdict=claim,
            labels={"loc": "lower left"} if ax is axes[0, 1] else None,
        )  # fmt: skip
        at = f"$b$ = {bandwidth:g}" if kernel == "gaussian" else f"$s$ = {bandwidth**2:.2f}"
        ax.set_title(f"{kernel}, {at}")
        ax.set_ylabel("noise correlation")
    exact = table(results, noise_correlation, few=True)
    # Widths stand side by side.
    exact["angle"] += 5 * (exact["heads"].cat.codes - 0.5)
    for ax, kernel in zip(axes[1], ("gaussian", "softmax"), strict=False):
        claim = claims[f"{kernel} kernel, exact"]
        rows = exact[exact[KERNEL] == kernel]
        figures.gap(
            ax, rows, "angle", hue="heads", margin=claim.margin, verdict=claim, labels=None, log=""
        )
        ax.set_title(f"{kernel}, exact")
    kept = table(results, variance_kept, few=False)
    kept = kept[(kept[KERNEL] == "gaussian") & (kept[BANDWIDTH] == kept[BANDWIDTH].min())]
    last = axes[1, 2]
    figures.curve(
        last, kept.rename(columns={"simulation": "value"}),
        kept.rename(columns={"theory": "value"}), "angle", "value", error="mcse", hue="heads",
        verdict=claims["total variance, one fixed target"], labels=None,
    )  # fmt: skip
    last.set_title("signal and noise")
    last.set_ylabel("share of variance kept")
    heads = next(iter(results.simulation.values())).sizes["head"]
    figures.reference(last, 1 / heads, "1/$H$: independent heads")
    for ax in axes.flat:
        ax.set(xlabel="principal angle θ (degrees)", xlim=(-5, 98))
        figures.ticks(ax.xaxis, range(0, 91, 30))
    for ax in (*axes[0], last):
        ax.set_ylim(0, 1.08)
    figures.letters(axes.flat)
    return drawing
