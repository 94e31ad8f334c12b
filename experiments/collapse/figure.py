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
    "plain β=1": ("attention alone", "collapse-order", "attention alone"),
    "causal": ("causal mask", "collapse-order", "mask or score bias, rate"),
    "bias": ("score bias", "collapse-order", "mask or score bias, rate"),
    "residual L=48": ("residual stream", "residual-depth", "growth, softmax and a norm"),
    "residual/√L L=48": (
        "residual stream, branches/√48",
        "residual-depth",
        "branches scaled by 1/√L",
    ),
}
"""Unit to the name of its curve, and to the claim and regime of the law that it follows."""
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
    } | {name: float(np.argmax(found)) for name, found in smallest(results).items()}


def smallest(results: Results) -> dict[str, np.ndarray]:
    """By size of the search's space, from the smallest up, whether a rank was lost, or gained."""
    own = results.estimates["search"]
    return {name: own[name].max("batch").values > 0 for name in ("lost", "gained")}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        1,
        2,
        height=3.3,
        title="Depth makes tokens alike unless branches shrink; LayerNorm may change their rank",
    )
    depth, ranks = axes[0]
    residuals(depth, results, claims)
    changes(ranks, results)
    figures.badge(ranks, claims["layernorm-rank-corrected", "LayerNorm"])
    figures.note(ranks, "verdicts: of a, the laws; of b, the formula of every change")
    figures.letters(axes.flat)
    return drawing


def residuals(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Points of simulation, and lines of theory through the layer from which each law holds."""
    own = {words: claims[claim, regime] for words, claim, regime in LINES.values()}
    for (name, (label, *_)), colour, marker in zip(
        LINES.items(), figures.PALETTE, figures.MARKERS, strict=False
    ):
        found = logs(results, name)[:, : SHOWN + 1] / np.log(10)
        rows = [mean_and_error(found[:, layer]) for layer in range(found.shape[1])]
        mean, error = np.transpose(rows)
        # Points below the axis would be drawn over its label.
        seen = mean > LOWEST
        at = np.arange(len(mean))
        figures.simulated(
            ax,
            at[seen],
            mean[seen],
            error[seen],
            colour,
            marker=marker,
            label=figures.signed(label, own),
        )
        law = line(results, name, mean)
        figures.theory(ax, at[len(mean) - len(law) :], np.maximum(law, LOWEST - 1), colour)
    ax.set(
        xlabel="layer",
        ylabel="log₁₀ of the relative residual ρ",
        ylim=(LOWEST, 0.5),
        title="distance of tokens, with laws",
    )
    ax.legend(loc="lower right")
    figures.badge(ax, own)
    figures.bars_note(ax)


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
    colours = {-1.0: figures.PALETTE[6], 0.0: figures.BAND, 1.0: figures.PALETTE[0]}
    for (k, n), value in np.ndenumerate(image):
        if np.isfinite(value):
            ax.add_patch(_cell(n, k, colours.get(value, "white")))
            text = f"{value:+.0f}".replace("-", "−") if value else "0"
            ax.text(
                n,
                k,
                text,
                ha="center",
                va="center",
                fontsize=figures.SMALL,
                color="white" if value else figures.GREY,
            )
    ax.set(
        xlim=(1.4, MOST + 0.6),
        ylim=(0.4, FEATURES + 0.6),
        xlabel="tokens n",
        ylabel="affine rank before",
        title=f"change by LayerNorm, $d$ = {FEATURES}",
    )


def _cell(n: int, k: int, colour: str):  # type: ignore[no-untyped-def]
    from matplotlib.patches import Rectangle

    return Rectangle((n - 0.5, k - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=1)
