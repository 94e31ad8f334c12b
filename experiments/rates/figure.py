"""Exponents at many keys and on the way there, by least squares and hierarchically."""

from collections.abc import Sequence

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .pools import POOLS
from .statistic import FAR, relative, sizes


def numbers(results: Results) -> dict[str, object]:
    """Exponents at common sizes over the stated ones, by least squares and hierarchically."""
    return {"exponents": relative(results)}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; slopes and gaps are those that the answers count."""
    law = results.predictions["law"]
    word = next(answer.word for answer in answers if answer.id == "rates")
    title = f"Does a head's error fall at the classical rate? {word.capitalize()}, at many keys"
    drawing, axes = figures.mosaic(("ab", "cc"), height=5.4, heights=(1, 0.6), title=title)
    draw_slopes(axes["a"], law)
    draw_local_slopes(axes["b"], law.isel(number=law["nuisance"].values > 0))
    draw_exponents(axes["c"], results)
    figures.letters(axes[k] for k in "abc")
    return drawing


def draw_slopes(ax: Axes, law: xr.Dataset) -> None:
    """Slopes at many keys against the stated exponents, a point a problem."""
    far = law.isel(pool=0, n=law["n"].values > FAR)
    fitted = np.polyfit(np.log(far["n"]), np.log(far["error"]).T, 1)[0]
    tolerance, line = house.TOLERANCES["slope"], np.array([-0.85, -0.15])
    ax.fill_between(line, line - tolerance, line + tolerance, color=figures.BAND, zorder=0)
    figures.theory(ax, line, line, zorder=1)
    colours = dict(zip(range(1, 5), figures.PALETTE, strict=False))
    stated, width = law["exponent"].values, law["width"].values
    sns.scatterplot(x=stated, y=fitted, hue=width, palette=colours, s=6, linewidth=0, ax=ax)
    ax.legend(loc="upper left", title="$d_k$")
    ax.set(
        xlabel="stated exponent $−2β/(2β + d_k)$, β ≤ 2",
        ylabel="slope of log error on log $n$",
        title=f"From 7·10⁷ keys, {len(stated)} problems (grey: ± {tolerance:g})",
    )


def draw_local_slopes(ax: Axes, law: xr.Dataset) -> None:
    """Local slopes less the stated exponent: median and middle half of the problems."""
    n = law["n"].values
    local = np.diff(np.log(law["error"].values)) / np.diff(np.log(n))
    local -= law["exponent"].values[:, None, None]
    middle = np.sqrt(n[1:] * n[:-1])
    for place, name in enumerate(POOLS):
        figures.quartiles(ax, middle, local[:, place], figures.PALETTE[place], label=name)
    ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True)
    ax.legend(loc="lower right")
    ax.set(
        xlabel="number of keys $n$",
        ylabel="local slope less stated exponent",
        title=f"Slope on the way there ({len(local)} problems)",
    )


def draw_exponents(ax: Axes, results: Results) -> None:
    """Simulated exponents over the stated ones, and the hierarchical mean and spread."""
    for place, fit in enumerate(relative(results).values()):
        ink, height = figures.PALETTE[place], 0.15 - place
        jitter = np.random.default_rng(place).uniform(-0.5, -0.2, len(fit.squares))
        ax.plot(fit.squares, height + jitter, ".", ms=3, color=ink, alpha=0.5)
        ax.plot([fit.mean - fit.spread, fit.mean + fit.spread], [height, height], color=ink, lw=1)
        ax.plot(fit.interval, [height, height], color=ink, lw=5, solid_capstyle="butt")
    ax.axvline(1, color=figures.GREY, lw=0.8, ls=":")
    ax.set_yticks([0, -1], POOLS[:2])
    first, *_, last = sizes(results)
    ax.set(
        xlabel="fitted exponent / stated exponent",
        ylim=(-1.5, 0.4),
        title=f"Simulated at {first:.0f} to {last:,.0f} keys ({len(fit.squares)} problems)",
    )
