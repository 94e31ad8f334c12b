"""log ρ against depth by regime, and the change of affine rank by tokens and affine rank."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .cases import GENERIC, MOST, sizes
from .effects import logs

LINES = {
    "plain β=1": "attention alone", "causal": "causal mask", "bias": "score bias",
    "residual L=48": "residual stream", "residual/√L L=48": "residual stream, branches/√48",
}  # fmt: skip
"""Unit to the name of its curve."""
SHOWN = 24
"""Layers that are drawn."""
FEATURES = 8
"""Of the sets of tokens whose ranks are drawn."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    deficit = results.estimates["entropies"]["deficit"].mean("batch").isel(scale=-1)
    four = results.estimates["plain β=4"]["collapsed"].mean("batch").values[6]
    return {
        "plain_deficit": float(deficit.sel(scores="plain")),
        "normed_deficit": float(deficit.sel(scores="normed")),
        "left": 1 - float(four),
        "open": float(results.estimates["channels"]["open"].values[:, 1].mean()),
    } | {
        name: float(np.argmax(found)) for name, found in smallest(results).items()
    }  # fmt: skip


def smallest(results: Results) -> dict[str, np.ndarray]:
    """By size of the search's space, from the smallest up, whether a rank was lost, or gained."""
    own = results.estimates["search"]
    return {name: own[name].max("batch").values > 0 for name in ("lost", "gained")}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(
        1, 2, height=3.3,
        title="Depth makes tokens alike unless branches shrink; LayerNorm may change their rank",
    )  # fmt: skip
    depth, ranks = axes[0]
    residuals(depth, results)
    changes(ranks, results)
    figures.letters(axes.flat)
    return drawing


def residuals(ax: Axes, results: Results) -> None:
    """Points of simulation, and lines of theory through the layer from which each law holds."""
    for (name, label), colour, marker in zip(
        LINES.items(), figures.PALETTE, figures.MARKERS, strict=False
    ):
        own = logs(results, name)[:, : SHOWN + 1] / np.log(10)
        rows = [mean_and_error(own[:, layer]) for layer in range(own.shape[1])]
        mean, error = np.transpose(rows)
        # Points below the axis would be drawn over its label.
        seen = mean > LOWEST
        at = np.arange(len(mean))
        figures.simulated(ax, at[seen], mean[seen], error[seen], colour, marker=marker, label=label)
        law = line(results, name, mean)
        figures.theory(ax, at[len(mean) - len(law) :], np.maximum(law, LOWEST - 1), colour)
    ax.set(xlabel="layer", ylabel="log₁₀ ρ", ylim=(LOWEST, 0.5), title="distance of tokens")
    ax.legend(fontsize=6, loc="lower right")


LOWEST = -13.0
"""log₁₀ ρ at the foot of the axis."""


def line(results: Results, name: str, mean: np.ndarray) -> np.ndarray:
    """log₁₀ ρ by the late law, fixed at one layer; empty where there is none."""
    if name.startswith("plain"):
        first = int(np.argmax(mean < np.log10(0.03)))
        step = mean[first + 1] - mean[first]
        powers = 3.0 ** np.arange(len(mean) - first - 1)
        return np.asarray(mean[first] + step * np.concatenate([[0], np.cumsum(powers)]))
    law = results.prediction(name)
    rate = float(law["rate"]) if "rate" in law else -0.5 * float(law["growth"])
    if "/√L" in name:
        return np.array([])
    half = len(mean) // 2
    return np.asarray(mean[half] + rate / np.log(10) * np.arange(len(mean) - half))


def changes(ax: Axes, results: Results) -> None:
    """Change of affine rank under LayerNorm at d = 8, generic tokens."""
    image = np.full((FEATURES + 1, MOST + 1), np.nan)
    for regime in GENERIC:
        own = results.estimates[f"norm, {regime}"]
        change = (own["layer"] - own["before"]).mean("batch").values
        for size, value in zip(sizes(regime), change, strict=True):
            if size.d == FEATURES:
                image[size.k, size.n] = value
    colours = {-1.0: figures.PALETTE[1], 0.0: figures.BAND, 1.0: figures.PALETTE[0]}
    for (k, n), value in np.ndenumerate(image):
        if np.isfinite(value):
            ax.add_patch(_cell(n, k, colours.get(value, "white")))
            text = f"{value:+.0f}".replace("-", "−") if value else "0"
            ax.text(n, k, text, ha="center", va="center", fontsize=6.5,
                    color="white" if value else figures.GREY)  # fmt: skip
    ax.set(xlim=(1.4, MOST + 0.6), ylim=(0.4, FEATURES + 0.6), xlabel="tokens n",
           ylabel="affine rank before", title=f"change by LayerNorm, d = {FEATURES}")  # fmt: skip


def _cell(n: int, k: int, colour: str):  # type: ignore[no-untyped-def]
    from matplotlib.patches import Rectangle

    return Rectangle((n - 0.5, k - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=1)
