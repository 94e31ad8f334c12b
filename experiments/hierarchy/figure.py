"""The error by levels, how often claims hold, corrections of blocks, and mixtures of scales."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.study.results import Results

from .problems import KEPT
from .statistic import FOURTH, GAUSSIAN, LEVELS, OUTPUTS, SINGLE, simulated

TARGETS = ("geometric", "power law", "any order")
KEYS = ("normal", "uniform", "exponential")
CLAIMS = {"scale-decay": "error falls geometrically", "scale-error": "correction lowers the error"}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; shares are those of the answers, points are problems."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6,
        title="The error of few levels is geometric only if the target's weights are",
    )
    law = results.predictions["law"]
    _levels(axes["a"], law, simulated(results, "error").mean(1))
    _shares(axes["b"], {answer.id: answer for answer in answers})
    _corrections(axes["c"], law, simulated(results, "remainder").mean(1))
    _mixtures(axes["d"], law, simulated(results, "mse").mean(1))
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _levels(ax: Axes, law: xr.Dataset, sample: np.ndarray) -> None:
    """Root mean squared error over that of one level, up to half of the target's levels."""
    frames = []
    for error in (law["error"].values, sample):
        ratio = (error[:, LEVELS] / error[:, LEVELS, :1]) ** 0.5
        number, place = np.nonzero(law["levels"].values[: len(error), None] // 2 >= [*KEPT])
        kinds = law["target"].values[number]
        frames.append(
            pd.DataFrame({"kept": place + 1, "ratio": ratio[number, place], "target": kinds})
        )
    inks = dict(zip(TARGETS, figures.PALETTE, strict=False))
    spread = {"estimator": "median", "errorbar": ("pi", 50), "legend": False}
    sns.lineplot(frames[0], x="kept", y="ratio", hue="target", palette=inks, ax=ax, **spread)
    for marker, kind in zip(figures.MARKERS, TARGETS, strict=False):
        middle = frames[1][frames[1]["target"] == kind].groupby("kept")["ratio"].median()
        ax.plot(middle.index, middle, marker, ms=4, color=inks[kind], label=kind)
    figures.log_axes(ax, y=True)
    ax.legend(title="weights of the target", loc="lower left")
    ax.set(
        xlabel="levels kept, L",
        ylabel="error / error of one level",
        title="Only geometric weights give a line",
    )


def _shares(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Shares in which the two claims hold, of all problems and by stratum, with intervals."""
    place, names = 0.0, {}
    for ink, (name, label) in zip(figures.PALETTE, CLAIMS.items(), strict=False):
        for part, result in answers[name].shares().items():
            if (share := result.deciding) is None:
                continue
            middle, ends = 100 * np.mean(share.bracket), 100 * np.array(share.interval)
            bars = np.abs(ends - middle)[:, None]
            ax.errorbar(
                middle,
                place,
                xerr=bars,
                fmt="o",
                ms=4,
                color=ink,
                label=label if part == "all" else None,
            )
            names[place] = part
            place -= 1
        place -= 0.5
    ax.set_yticks(list(names), list(names.values()))
    figures.words(ax)
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.63))
    ax.set(
        xlim=(-1, 101),
        xlabel="problems in which it is true (%)",
        title="Each claim holds in a part of the law",
    )


def _corrections(ax: Axes, law: xr.Dataset, sample: np.ndarray) -> None:
    """Error with cumulants 3 and 4 over that with the Gaussian term, a point a problem."""
    keys = law["keys"].values[: len(sample)]
    for ink, marker, kind in zip(figures.PALETTE, figures.MARKERS, KEYS, strict=False):
        here = keys == kind
        ratio = sample[here, FOURTH] / sample[here, GAUSSIAN]
        ax.plot(
            law["spread"].values[: len(sample)][here], ratio, marker, ms=3, color=ink, label=kind
        )
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (0.1, 0.3, 1, 3))
    ax.legend(title="keys", loc="upper left")
    ax.set(
        xlabel="standard deviation of scores in a block",
        ylabel="error with cumulants 3, 4 / without",
        title="The correction helps where scores differ little",
    )


def _mixtures(ax: Axes, law: xr.Dataset, sample: np.ndarray) -> None:
    """Error of scales mixed in outputs over that of one bandwidth, a point a problem."""
    views = law["views"].values[: len(sample)]
    for ink, marker, width in zip(figures.PALETTE, figures.MARKERS, (1, 2, 3), strict=False):
        here = views == width
        ratio = sample[here, OUTPUTS] / sample[here, SINGLE]
        step = law["step"].values[: len(sample)][here]
        ax.plot(step, ratio, marker, ms=3, color=ink, label=f"{width}")
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (1.1, 1.5, 2, 3))
    figures.ticks(ax.yaxis, (0.5, 0.7, 1, 1.4))
    ax.legend(title="$d_k$", loc="lower left")
    ax.set(
        xlabel="ratio of neighbouring bandwidths",
        ylabel="error of mixed outputs / one bandwidth",
        title="Mixed outputs mostly beat one bandwidth",
    )
