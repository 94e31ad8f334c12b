"""Open directions by layer, counted against claim and formula; a gauge orbit in (v̄, c̄)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import claimed, indices, moments, regime
from .layers import free_layers


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    mean = indices(results)["mean", "total"].mean(0)
    error = results.estimates["orbit"]["error"].values
    return {
        "least": float(mean[0]),
        "most": float(mean[-1]),
        "kept": float(np.abs(error / error[:, :1] - 1).max()),
        "condition": float(results.estimates["recovery, full row rank"]["recovered"].values.max()),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(
        1,
        2,
        height=3.2,
        title="One output has many sets of heads, and diversity indices tell them apart",
    )
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    counts(axes[0, 0], results, {k: claims["head-freedom", k] for k in REGIMES})
    along(axes[0, 1], results)
    figures.badge(axes[0, 1], claims["hdi-conditions", "gauge orbit, the error"])
    figures.letters(axes.flat)
    return drawing


REGIMES = {"rank d_k": "$q = d_k$", "other rank": "other $q$", "full row rank": "$q = H d_k$"}
"""Regime of the literal claim, n(H − 1)d_k, to the rank q of W_O."""


def counts(ax: Axes, results: Results, own: dict[str, Verdict]) -> None:
    """Counted open directions of all heads over those of the claim, by the rank of W_O."""
    layers = list(free_layers(results.settings).values())
    counted = results.estimates["free"]["joint"].values[0]
    law = results.prediction("free")["joint"].values
    for (kind, label), colour, marker in zip(
        REGIMES.items(), figures.PALETTE, figures.MARKERS, strict=False
    ):
        chosen = [
            place
            for place, layer in enumerate(layers)
            if layer["gates"] == "none" and layer["heads"] > 1 and regime(layer) == kind
        ]
        claims = [claimed(layers[place]) for place in chosen]
        ax.plot(claims, law[chosen], "_", color=colour, markersize=9, zorder=2)
        ax.plot(
            claims,
            counted[chosen],
            marker,
            color=colour,
            markerfacecolor="white",
            label=figures.signed(label, {label: own[kind]}),
        )
    top = ax.get_xlim()[1]
    ax.plot([0, top], [0, top], color=figures.GREY, lw=0.8, ls="--", zorder=1)
    ax.set(xlabel="claimed: $n(H − 1)d_k$", ylabel="counted", title="open directions, all heads")
    ax.legend(title="rank $q$ of $W_O$, and the claim", loc="upper left")
    figures.badge(ax, own)
    figures.note(ax, "dashes: formula $n(H d_k − q)$; dashed line: the claim")


def along(ax: Axes, results: Results) -> None:
    """Mean variance and covariance of heads along the orbit, the index as colour."""
    found = moments(results)["total"].mean(0)
    heads = found.shape[-1]
    trace = np.trace(found, axis1=-2, axis2=-1)
    variance, covariance = trace / heads, (found.sum((-2, -1)) - trace) / (heads * (heads - 1))
    index = indices(results)["mean", "total"].mean(0)
    pooled = variance[0] / heads + (1 - 1 / heads) * covariance[0]
    ends = np.array([variance.min(), variance.max()])
    figures.theory(ax, ends, (pooled - ends / heads) / (1 - 1 / heads), figures.GREY)
    ax.plot(variance, covariance, "o", color=figures.PALETTE[0], zorder=3)
    for x, y, value in zip(variance, covariance, index, strict=True):
        ax.annotate(
            f"{value:.2f}",
            (x, y),
            xytext=(5, 3),
            textcoords="offset points",
            fontsize=figures.SMALL,
            color=figures.PALETTE[0],
        )
    ax.set(
        xlabel="mean variance of a head",
        ylabel="mean covariance of two",
        title="one error; at the dots: index",
    )
    figures.note(ax, "line: error $v/H + (1 − 1/H)c$ constant")
