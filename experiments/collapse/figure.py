"""Residuals by layer, powers of depth, rates by both roads, and what is lost of heads."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .problems import ALONE, BIAS, MASK, NONE
from .statistic import effects, exponents, parameters, stacked

LOWEST = -12.0
"""log₁₀ ρ that the first panel ends at."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; a point is a problem."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6.0,
        title="Depth makes tokens alike; gates reveal heads whose values all tokens share",
    )
    law, path = parameters(results), stacked(results, "path").mean(1) / np.log(10)
    law, ends = law.iloc[: len(path)], stacked(results, "ends")
    alone = law["block"] == ALONE
    _paths(axes["a"], path, law, alone)
    _powers(axes["b"], law[~alone].assign(power=exponents(ends).mean(1)[~alone]))
    rate = results.predictions["law"]["rate"].values[: len(law)]
    near = np.isfinite(effects(results)["rate"].value)
    fell = (ends[..., 1] - ends[..., 0]).mean(1) / law["depth"]
    _rates(axes["c"], law.assign(rate=-rate, fell=-fell)[near])
    _lost(axes["d"], parameters(results), results.predictions["law"]["lost"].values)
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _paths(ax: Axes, path: np.ndarray, law: pd.DataFrame, alone: pd.Series) -> None:
    """log₁₀ ρ by layer: median and middle half of the problems of a kind."""
    free = law["positions"] == NONE
    unscaled = law["branches"] == "whole"
    kinds = {
        "attention alone": alone & free,
        "the same with a mask or bias": alone & ~free,
        "residual stream": ~alone & unscaled,
        r"the same, branches$/\sqrt{L}$": ~alone & ~unscaled,
    }
    inks = zip(figures.PALETTE, figures.MARKERS, kinds.items(), strict=False)
    for ink, marker, (label, chosen) in inks:
        layers = np.arange(path.shape[1])
        figures.quartiles(ax, layers, path[chosen], ink, marker=marker, ms=3, label=label)
    ax.set(
        xlim=(0, len(path[0]) - 1),
        ylim=(LOWEST, 0.2),
        xlabel="layer",
        ylabel=r"$\log_{10}$ of the relative residual $\rho$",
        title="Attention alone equalises tokens at once",
    )
    ax.legend(loc="lower right")


def _powers(ax: Axes, law: pd.DataFrame) -> None:
    """Power of depth by which ρ falls in a residual stream, by the variance of its branches."""
    look = zip(("whole", "scaled"), figures.PALETTE, figures.MARKERS, strict=False)
    for kind, ink, marker in look:
        for tied, face in ((False, ink), (True, "white")):
            rows = law[(law["branches"] == kind) & (law["tied"] == tied)]
            label = f"{kind}, {'tied' if tied else 'new'} weights"
            ax.plot(
                rows["variance"],
                rows["power"],
                marker,
                ms=3.5,
                ls="",
                color=ink,
                mfc=face,
                label=label,
            )
    ax.axhline(house.TOLERANCES["slope"], color=figures.GREY, lw=0.8, ls=":")
    ax.set_yscale("symlog", linthresh=0.3)
    figures.log_axes(ax, x=True)
    figures.ticks(ax.yaxis, (-0.1, 0.1, 0.3, 1, 3, 10))
    ax.legend(title="branches", loc="upper left", ncols=2)
    ax.set(
        ylim=(-0.2, 200),
        xlabel=r"variance $\sigma^2$ of a branch",
        ylabel=r"power $p$ in $\rho \propto L^{-p}$",
        title=r"Only branches scaled by $1/\sqrt{L}$ keep tokens apart",
    )


def _rates(ax: Axes, law: pd.DataFrame) -> None:
    """Fall of log ρ a layer under a mask or bias, simulated against theory."""
    for ink, marker, kind in zip(figures.PALETTE, figures.MARKERS, (BIAS, MASK), strict=False):
        rows = law[law["positions"] == kind]
        ax.plot(rows["rate"], rows["fell"], marker, ms=3.5, ls="", color=ink, label=kind)
    line = np.array([0, 1.05 * law["fell"].max()])
    figures.theory(ax, line, line)
    ax.legend(loc="upper left")
    ax.set(
        xlabel=r"theory: $-\log|\lambda_2|$ and what the norm takes",
        ylabel=r"fall of $\log\rho$ a layer, simulated",
        title="A mask or bias makes the fall geometric",
    )


def _lost(ax: Axes, law: pd.DataFrame, lost: np.ndarray) -> None:
    """Share of the heads' variance that is lost without gates and with, by theory."""
    for ink, content in zip(figures.PALETTE, ("free", "attended"), strict=False):
        for output, face, marker in (("plain sum", ink, "o"), ("projection", "white", "s")):
            rows = ((law["content"] == content) & (law["output"] == output)).to_numpy()
            label = f"{content}, {output}"
            ax.plot(*100 * lost[rows].T, marker, ms=3.5, ls="", color=ink, mfc=face, label=label)
    ax.plot([0, 100], [0, 100], color=figures.GREY, lw=0.8, ls=":")
    ax.legend(title="heads", loc="upper left")
    ax.set(
        xlabel="lost without gates (% of the heads' variance)",
        ylabel="lost with gates (%)",
        title="Gates help if tokens share a head's values",
    )
