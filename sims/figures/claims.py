"""Panel of a claim: its effect in every problem, sorted. No JAX."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims.figures.layout import panels
from sims.figures.marks import dotted
from sims.figures.theme import GREY, PALETTE, style
from sims.judgement.effects import Effects

WORDS = {"selectivity": r"$n_\mathrm{eff}/n$", "n_eff": r"$n_\mathrm{eff}$"}
"""Parameters that can colour the problems, with their names; the first available is used."""
SHOWN = (0.01, 0.99)
"""Quantiles of the effects at the ends of the axis."""


def sorted_effects(effects: Effects, selected: np.ndarray, parameters: pd.DataFrame) -> Figure:
    """Figure of the effects of the selected problems, sorted, with ± 2 standard errors.

    Args:
        effects: effects of all problems; sizes are drawn where they are reported.
        selected: mask of the problems, (M,).
        parameters: one row per problem; n_eff/n colours the points if available.
    """
    value, error, label = _plotted(effects)
    rows = np.flatnonzero(selected[: len(value)] & np.isfinite(value))
    rows = rows[np.argsort(value[rows], kind="stable")]
    name = next((name for name in WORDS if name in parameters), None)
    colour = None if name is None else np.log10(parameters[name].to_numpy(float)[rows])
    drawing, axes = panels(height=2.0)
    with style():
        _draw(axes[0, 0], value[rows], 2 * np.nan_to_num(error[rows]), colour)
        axes[0, 0].set(xlabel=f"problems in order, N = {len(rows)}", ylabel=label)
        if name is not None:
            bar = drawing.colorbar(axes[0, 0].collections[-1], ax=axes[0, 0], pad=0.02)
            bar.set_label(f"log₁₀ {WORDS[name]}")
    return drawing


def _draw(ax: Axes, height: np.ndarray, far: np.ndarray, colour: np.ndarray | None) -> None:
    """Points in order, their errors, and a line at zero."""
    place = np.arange(1, len(height) + 1)
    ax.vlines(place, height - far, height + far, color=GREY, lw=0.4, rasterized=True)
    dotted(ax)
    ink = {"color": PALETTE[0]} if colour is None else {"c": colour, "cmap": "viridis"}
    ax.scatter(place, height, s=4, lw=0, rasterized=True, zorder=3, **ink)
    low, high = np.quantile(height, SHOWN) if len(height) else (-1.0, 1.0)
    margin = 0.08 * (high - low) or 1.0
    ax.set_ylim(min(low, 0.0) - margin, max(high, 0.0) + margin)


def _plotted(effects: Effects) -> tuple[np.ndarray, np.ndarray, str]:
    """Plotted number of every problem, its Monte Carlo standard error, and the axis' label."""
    value = effects.value
    error = effects.error
    if effects.size is not None:
        error = np.zeros_like(effects.size) if effects.size_error is None else effects.size_error
        return 100 * effects.size, 100 * error, "relative change (%)"
    if effects.kind == "gap":
        return 100 * value, 100 * error, "simulation over theory, less 1 (%)"
    if effects.kind == "outcome":
        return 100 * value.min(1), 100 * error.max(1), "least relative fall (%)"
    if effects.predicted is not None and len(effects.predicted) > len(value):
        inside = True if effects.valid is None else effects.valid
        value = np.where(inside, effects.predicted, np.nan)
        error = np.zeros_like(value)
    label = "effect" if effects.kind == "mean" else "effect, above 0 if the claim holds"
    return value, error, label
