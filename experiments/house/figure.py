"""The house sample in four panels: the curve over the share of variance, shares, T95, indices."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.judgement.summaries import Effects, Gap
from sims.study.results import Results

from .sets import INDICES
from .statistic import MATRICES, OUTCOMES, TARGETS, effects, parameters

BINS = np.linspace(0.05, 0.95, 7).tolist()
"""Ends of the groups of problems along the curve, of the share of variance in the error."""
LINES = {"hdi-pairs": "share of variance kept", "hdi-monotone-pairs": "error"}
HEADLINE = {
    "variance kept": ("variance of the average", 95.5),
    "error / mean head": ("error relative to one head's", 84),
    "error": ("error", 66),
}
"""Outcome to its name in the figure of the README, and the height of that name."""
TERMS = {
    "decomposition-mse": "error",
    "decomposition-bias": "squared bias",
    "decomposition-variance": "variance",
    "decomposition-covariance": "covariance",
    "exact": "error, exact, n = 64",
    "angles": "correlation by angles",
}
CLAIMS = {
    "hdi": "index ↑: variance kept ↓",
    "not-heads-alone": "random keep less than aligned",
    "hdi-monotone": "index ↑: error ↓",
    "adding-heads": "doubling pays more if random",
    "extremes": "orthogonal keep least",
}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; numbers are those of the answers, and of theory for the curve and the table."""
    by_id = {answer.id: answer for answer in answers}
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6.2,
        title="Diverse heads keep less variance; the error falls where variance is most of it",
    )
    effect, drawn = effects(results), parameters(results)
    _curve(axes["a"], effect, drawn)
    _claims(axes["b"], by_id)
    _within(axes["c"], by_id)
    _table(axes["d"], effect, drawn["in_range"])
    figures.letters(axes[k] for k in "abcd")
    return drawing


def headline(results: Results) -> Figure:
    """The figure of the README: what falls with diversity, over the share of variance."""
    drawing, axes = figures.panels(width=1.35 * figures.COLUMN, height=3.1)
    ax, effect, drawn = axes[0, 0], effects(results), parameters(results)
    groups = pd.cut(drawn["share"], BINS)
    for ink, (outcome, (label, height)) in zip(figures.PALETTE, HEADLINE.items(), strict=False):
        predicted = effect[f"subspaces, {outcome}, given target"].predicted
        frame = pd.DataFrame({"group": groups, "falls": 100 * np.asarray(predicted)})
        frame = frame[drawn["in_range"]].dropna()
        summary = frame.groupby("group", observed=True)["falls"].agg(["mean", "sem"])
        x, width = [100 * group.mid for group in summary.index], 1.96 * summary["sem"]
        ax.fill_between(
            x, summary["mean"] - width, summary["mean"] + width, color=ink, alpha=0.18, lw=0
        )
        ax.plot(x, summary["mean"], color=ink, lw=2)
        ax.text(x[-1], height, label, color=ink, ha="right")
    ax.axhline(50, color=figures.GREY, lw=0.8, ls=":")
    ax.text(6, 51, "a coin toss", color=figures.GREY, fontsize=figures.SMALL)
    ax.set(xlim=(5, 95), ylim=(40, 101), xlabel="share of variance in the error (%)")
    ax.set_ylabel("pairs of head sets in which it falls (%)")
    ax.set_title("What falls as heads become more diverse?", loc="left", fontweight="bold")
    return drawing


def numbers(results: Results) -> dict[str, object]:
    """For the caption: shares of pairs in which the error falls, by each spectral summary."""
    effect, drawn = effects(results), parameters(results)
    names = ("hdi-monotone", *INDICES[1:])
    predictions = (effect[f"{name}-pairs"].predicted for name in names)
    shares = [float(np.nanmean(np.asarray(e)[drawn["in_range"]])) for e in predictions]
    return {"least": min(shares), "most": max(shares)}


def _curve(ax: Axes, effect: Mapping[str, Effects], drawn: pd.DataFrame) -> None:
    """Mean share of pairs of sets of a problem that fall, ± 95 % over problems."""
    groups = pd.cut(drawn["share"], BINS)
    for marker, (name, label) in zip(figures.MARKERS, LINES.items(), strict=False):
        pairs = effect[name]
        assert pairs.predicted is not None
        frame = pd.DataFrame({"group": groups, "falls": 100 * pairs.predicted})
        frame = frame[drawn["in_range"]].dropna()
        summed = frame.groupby("group", observed=True)["falls"].agg(["mean", "sem"])
        x = [100 * group.mid for group in summed.index]
        ax.errorbar(x, summed["mean"], 1.96 * summed["sem"], marker=marker, capsize=2, label=label)
    ax.axhline(50, color=figures.GREY, lw=0.8, ls=":")
    ax.set(
        xlabel="share s of variance in the error (%)",
        ylabel="pairs of sets in which it falls\nwith the index of subspaces (%)",
        ylim=(0, 103),
        title="The error falls where variance dominates",
    )
    ax.legend(loc="lower right")


def _claims(ax: Axes, answers: dict[str, Answer]) -> None:
    """Shares by theory with their intervals; brackets by simulation below."""
    for place, name in enumerate(CLAIMS):
        share = answers[name].shares()["all"]
        for road, shift, counted in (
            ("theory", 0.14, share.theory),
            ("simulation", -0.14, share.simulated),
        ):
            if counted is None:
                continue
            ink = figures.PALETTE[road == "simulation"]
            low, high = counted.interval
            ax.plot([100 * low, 100 * high], [-place + shift] * 2, color=ink, lw=1)
            first, last = (100 * end for end in counted.bracket)
            ax.plot([first, last], [-place + shift] * 2, color=ink, lw=4, solid_capstyle="butt")
            ax.plot(
                (first + last) / 2,
                -place + shift,
                "o",
                color=ink,
                ms=4,
                label=None if place else road,
            )
    ax.set_yticks([-k for k in range(len(CLAIMS))], list(CLAIMS.values()))
    figures.words(ax)
    ax.set(
        xlim=(0, 101),
        xlabel="problems in which it holds (%)",
        title="Claims on variance hold most often",
    )
    ax.legend(loc="upper left")


def _within(ax: Axes, answers: dict[str, Answer]) -> None:
    """T95 of each gap, from the smallest to the largest value that its errors allow."""
    shown = {name: label for name, label in TERMS.items() if name in answers}
    for place, name in enumerate(shown):
        gap = answers[name].result
        if isinstance(gap, Gap) and gap.within is not None:
            low, high = (max(100 * end, 1e-3) for end in gap.within)
            ax.plot(
                [low, high], [-place] * 2, color=figures.PALETTE[0], lw=4, solid_capstyle="butt"
            )
            ax.plot(high, -place, "o", color=figures.PALETTE[0], ms=4)
    ax.set_yticks([-k for k in range(len(shown))], list(shown.values()))
    ax.axvline(100 * house.TOLERANCES["roads"], color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True, plain=True)
    ax.set(xlabel="T95: gap in 95 % of problems (%)", title="Both roads agree within 5 % (dotted)")


def _table(ax: Axes, effect: Mapping[str, Effects], in_range: pd.Series) -> None:
    """Mean share of pairs that fall, by matrix of the index and outcome; given, averaged target."""

    def mean(*parts: str) -> float:
        predicted = effect[", ".join(parts)].predicted
        assert predicted is not None
        return float(100 * np.nanmean(predicted[in_range]))

    shares = np.array(
        [
            [[mean(matrix, outcome, t) for t in TARGETS] for outcome in OUTCOMES]
            for matrix in MATRICES
        ]
    )
    shown = np.array([[f"{a:.0f} | {b:.0f}" for a, b in row] for row in shares])
    sns.heatmap(
        shares[..., 1],
        ax=ax,
        annot=shown,
        fmt="",
        vmin=50,
        vmax=100,
        cmap="Blues",
        cbar=False,
        xticklabels=list(OUTCOMES),
        yticklabels=list(MATRICES),
    )
    ax.set(
        title="The index of errors orders errors best",
        ylabel="index of",
        xlabel="pairs in which it falls (%): given | averaged target",
    )
