"""Gaps of simulation to three theories, and the gap of first-order to exact theory."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import effects

OWN, FIXED = "adaptive-radius", "fixed-radius-enough"
TERMS = {
    "adaptive, first order": ("first order", OWN, "first order, 30 effective keys and more"),
    "fixed radius, signal": ("fixed radius, signal", FIXED, "signal"),
    "fixed radius, noise": ("fixed radius, noise", FIXED, "noise"),
}
"""Row of panel a to its family of effects, claim and regime."""
BIAS = {
    "adaptive, first order": ("bias, first order", OWN, "the bias's 1/n part"),
    "fixed radius": ("bias, fixed radius", FIXED, "the bias's 1/n part"),
}
"""The same of panel b."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes: how far a fixed radius is off."""
    families = effects(results)
    signal, single, noise, bias = (
        [abs(effect.value) for effect in families[name]]
        for name in (
            "fixed radius, signal",
            "fixed radius over adaptive, signal",
            "fixed radius, noise",
            "bias, fixed radius",
        )
    )
    return {
        "signal_gap": max(signal),
        "signal_most": max(single),
        "noise_gap": max(noise),
        "bias_least": min(bias),
        "bias_most": max(bias),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    families = effects(results)
    drawing, axes = figures.mosaic(
        ("ac", "bc"),
        height=3.3,
        heights=(1.3, 1.0),
        title="Radii that the sample sets, term by term, beside fixed ones",
    )
    for ax, rows, label in (
        (axes["a"], TERMS, "simulation (signal: adaptive theory) / theory − 1 (%)"),
        (axes["b"], BIAS, "1/n part of the bias / exact − 1 (%)"),
    ):
        own = {row: claims[claim, regime] for row, (_, claim, regime) in rows.items()}
        gaps = [
            (row, effect.value, effect.error)
            for row, (family, _, _) in rows.items()
            for effect in families[family]
        ]
        figures.forest(
            ax,
            pd.DataFrame(gaps, columns=["label", "value", "error"]),
            percent=True,
            verdict=own,
            margin={row: claim.margin for row, claim in own.items()},
        )
        ax.set(xlabel=label)
    for style, words in (("-", "signal variance"), ("--", "noise variance")):
        lines: dict[str, list[tuple[float, float]]] = {}
        for effect in families[f"remainder, {words}"]:
            kernel = str(effect.at["kernel"])
            lines.setdefault(kernel, []).append((float(effect.x or np.nan), effect.value))
        for colour, (kernel, line) in zip(figures.PALETTE, lines.items(), strict=False):
            n, gap = np.transpose(line)
            label = f"{kernel}, {words.split()[0]}"
            axes["c"].loglog(n, gap, style, color=colour, marker="o", ms=3, label=label)
    axes["c"].set(xlabel="number of keys $n$", ylabel="|first order / exact − 1|")
    figures.ticks(axes["c"].xaxis, results.settings["sizes"])
    axes["c"].set_ylim(bottom=5e-6)
    axes["c"].legend(handlelength=2.6, loc="lower left", ncols=2)
    figures.letters(axes[letter] for letter in sorted(axes))
    return drawing
