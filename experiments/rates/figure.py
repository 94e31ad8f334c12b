"""Exponents at many keys and on the way there, by least squares and hierarchically."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .pools import FITTED, POOLS


def numbers(panels: Panels) -> dict[str, Any]:
    """Exponents at common sizes over the stated ones, by least squares and hierarchically.

    They are of one head and of averaged ones.
    """
    fits = {}
    for place, pool in enumerate(POOLS[:2]):
        fits[pool] = {name: panels[name][place] for name in FITTED}
    return {"exponents": fits}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; slopes and gaps are those that the answers count."""
    word = answers["rates"].word
    title = f"Does a head's error fall at the classical rate? {word.capitalize()}, at many keys"
    drawing, axes = figures.mosaic(("ab", "cc"), height=3.6, heights=(1, 0.55), title=title)
    draw_slopes(axes["a"], panels)
    draw_local_slopes(axes["b"], panels)
    draw_exponents(axes["c"], panels)
    return drawing


def draw_slopes(ax: Axes, panels: Panels) -> None:
    """Slopes at many keys against the stated exponents, a point a problem."""
    tolerance = conventions.TOLERANCES["slope"]
    figures.diagonal(ax, -0.85, -0.15, f"stated, ± {tolerance:g}", tolerance)
    stated, width = panels["stated"], panels.parameters["width"].to_numpy()
    for place in range(width.max()):
        rows = width == place + 1
        figures.dots(ax, stated[rows], panels["slope"][rows], place, f"$d_k$ = {place + 1}", ms=1.5)
    ax.legend(loc="upper left")
    ax.set(
        ylim=(None, 0.3),
        xlabel="stated exponent $−2β/(2β + d_k)$",
        ylabel="slope of log error on log $n$",
        title=f"As stated from 7·10⁷ keys on (n = {len(stated)})",
    )


def draw_local_slopes(ax: Axes, panels: Panels) -> None:
    """Local slopes less the stated exponent: median and middle half of the problems."""
    local = panels["local"]
    for place, name in enumerate(POOLS):
        figures.quartiles(ax, panels["middle"], local[:, place], figures.PALETTE[place], label=name)
    figures.dotted(ax)
    figures.log_axes(ax, x=True)
    ax.legend(loc="lower right")
    ax.set(
        ylim=(-0.4, None),
        xlabel="number of keys $n$",
        ylabel="local slope − stated exponent",
        title=f"Averaging slows the approach (n = {len(local)})",
    )


def draw_exponents(ax: Axes, panels: Panels) -> None:
    """Simulated exponents over the stated ones, and the hierarchical mean and spread."""
    for place, squares in enumerate(panels["squares"]):
        ink, height = figures.PALETTE[place], 0.15 - place
        jitter = np.random.default_rng(place).uniform(-0.5, -0.2, len(squares))
        ax.plot(squares, height + jitter, ".", ms=1.5, color=ink, alpha=0.5)
        spread = panels["spread"][place]
        ax.errorbar(panels["mean"][place], height, xerr=spread, color=ink, lw=0.8)
        ax.plot(panels["interval"][place], [height] * 2, color=ink, lw=3, solid_capstyle="butt")
    for look, label in ((".", "problem"), ("-", "spread")):
        ax.plot([], [], look, ms=1.5, lw=0.8, color=figures.GREY, label=label)
    ax.plot([], [], color=figures.GREY, lw=3, label="95 % interval of the mean")
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, 0), borderaxespad=3.6, ncols=3)
    figures.dotted(ax, x=1)
    ax.set_yticks([0, -1], POOLS[:2])
    first, *_, last = panels["sizes"]
    ax.set(
        xlabel="fitted exponent / stated exponent",
        ylim=(-1.5, 0.4),
        title=f"From {first:.0f} to {last:,.0f} keys, problems differ (n = {len(squares)})",
    )
