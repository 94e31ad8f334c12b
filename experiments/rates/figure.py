"""Exponents at many keys and on the way there, by least squares and hierarchically, both roads."""

from collections.abc import Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import FAR, POOLS, relative, sizes


def numbers(results: Results) -> dict[str, object]:
    """Exponents at common sizes over the stated ones: least squares beside the hierarchical fit."""
    return {"exponents": relative(results)}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; slopes and gaps are those that the answers count."""
    drawing, axes = figures.mosaic(
        ("ab", "cc"),
        height=5.4,
        heights=(1, 0.6),
        title="One head falls at the classical rate; averaged heads do so late",
    )
    _slopes(axes["a"], results)
    _way(axes["b"], results)
    _exponents(axes["c"], results)
    figures.letters(axes[k] for k in "abc")
    return drawing


def _slopes(ax: Axes, results: Results) -> None:
    """Slopes at many keys against the stated exponents, a point a problem."""
    law = results.predictions["law"]
    far = law["n"].values > FAR
    stated, error = law["exponent"].values, law["error"].values[:, 0, far]
    fitted = np.polyfit(np.log(law["n"].values[far]), np.log(error).T, 1)[0]
    tolerance, line = house.TOLERANCES["slope"], np.array([-0.85, -0.15])
    ax.fill_between(line, line - tolerance, line + tolerance, color=figures.BAND, zorder=0)
    figures.theory(ax, line, line, zorder=1)
    colours = dict(zip(range(1, 5), figures.PALETTE, strict=False))
    sns.scatterplot(
        x=stated, y=fitted, hue=law["width"].values, palette=colours, s=6, linewidth=0, ax=ax
    )
    ax.legend(loc="upper left", title="$d_k$")
    ax.set(
        xlabel="stated exponent $−2β/(2β + d_k)$, β ≤ 2",
        ylabel="slope of log error on log $n$",
        title=f"$n > 10^7$: within ± {tolerance:g} of the rate",
    )


def _way(ax: Axes, results: Results) -> None:
    """Local slopes less the stated exponent: median and middle half of the problems."""
    law = results.predictions["law"]
    problems = law.isel(number=law["nuisance"].values > 0)
    n = problems["n"].values
    local = np.diff(np.log(problems["error"].values)) / np.diff(np.log(n))
    local -= problems["exponent"].values[:, None, None]
    middle = np.sqrt(n[1:] * n[:-1])
    for place, name in enumerate(POOLS):
        figures.quartiles(ax, middle, local[:, place], figures.PALETTE[place], label=name)
    ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True)
    ax.legend(loc="lower right")
    ax.set(
        xlabel="number of keys $n$",
        ylabel="local slope less stated exponent",
        title="Averaged heads reach the rate of one late",
    )


def _exponents(ax: Axes, results: Results) -> None:
    """Simulated exponents over the stated ones, and the hierarchical mean and spread."""
    for place, fit in enumerate(relative(results).values()):
        ink = figures.PALETTE[place]
        jitter = np.random.default_rng(place).uniform(-0.35, -0.05, len(fit.squares))
        ax.plot(fit.squares, jitter - place, ".", ms=3, color=ink, alpha=0.5)
        ends = fit.mean - fit.spread, fit.mean + fit.spread
        ax.plot(ends, [-place + 0.15] * 2, color=ink, lw=1)
        ax.plot(fit.interval, [-place + 0.15] * 2, color=ink, lw=5, solid_capstyle="butt")
    ax.axvline(1, color=figures.GREY, lw=0.8, ls=":")
    ax.set_yticks([0, -1], POOLS[:2])
    first, *_, last = sizes(results)
    ax.set(
        xlabel="fitted exponent / stated exponent",
        ylim=(-1.5, 0.4),
        title=f"At {first:.0f} to {last:,.0f} keys averaged heads look faster (simulated)",
    )
