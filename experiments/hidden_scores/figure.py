"""How often memory does what is said of it, and how much by its weight, start and views."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import MEMORY, effects, parameters, second_differences, simulated

CLAIMS = {
    "hidden-collapse": "collapse is slower",
    "hidden-uniformity": "tokens are less alike",
    "hidden-temperature": "attention is smoother",
}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; shares are those of the answers, points are problems."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6.2,
        title="Memory slows rank collapse; whether it keeps tokens apart hangs on its start",
    )
    effect, drawn = effects(results), parameters(results)
    drawn = drawn.iloc[: len(results.estimates)].assign(
        spread=effect["spread"].value, error=100 * effect["error"].value
    )
    second = second_differences(simulated(results, "log_residual")[..., MEMORY]).mean(1)
    _shares(axes["a"], {answer.id: answer for answer in answers})
    _rates(axes["b"], drawn.assign(second=second))
    _points(axes["c"], drawn, "memory", "spread", "start", ("zero", "copy"))
    axes["c"].set_yscale("symlog")
    axes["c"].set(
        xlabel="memory α′",
        ylabel="log-odds ω, plain less hidden scores",
        title="From a copy tokens stay further apart",
    )
    _points(axes["d"], drawn, "relevance", "error", "kernel", ("gaussian", "softmax"))
    axes["d"].set_yscale("symlog")
    axes["d"].set(
        ylim=(-1e3, 2e3),
        xlabel="amplitude of the wave seen by the first layer alone",
        ylabel="error that memory saves (%)",
        title="Memory helps where the first layer matters",
    )
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _shares(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Shares of problems in which each claim holds, of all and by stratum, with intervals."""
    names = ["all", *answers["hidden-collapse"].strata]
    for claim, (name, label) in enumerate(CLAIMS.items()):
        parts = answers[name].shares()
        shown = {part: result.simulated for part, result in parts.items() if result.simulated}
        middle = np.array([100 * np.mean(share.bracket) for share in shown.values()])
        low, high = 100 * np.transpose([share.interval for share in shown.values()])
        places = [0.22 * (1 - claim) - names.index(part) for part in shown]
        bars = np.stack([middle - low, high - middle])
        ink, marker = figures.PALETTE[claim], figures.MARKERS[claim]
        ax.errorbar(middle, places, xerr=bars, fmt=marker, ms=4, color=ink, label=label)
    ax.set_yticks([-k for k in range(len(names))], names)
    figures.words(ax)
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=2)
    ax.set(
        xlim=(-1, 101),
        xlabel="problems in which it is true (%)",
        title="Collapse slows more often than not",
    )


def _rates(ax: Axes, drawn: pd.DataFrame) -> None:
    """Second differences of log ρ against their limit, a point a problem."""
    limit = np.log(drawn["memory"])
    drawn = drawn.assign(limit=limit)
    _points(ax, drawn, "limit", "second", "matrix", ("gaussian", "semidefinite"))
    figures.theory(ax, [limit.min(), 0], [limit.min(), 0], label="limit, log α′")
    ax.legend(title="forms of scores", loc="lower right")
    ax.set(
        xlabel="log α′",
        ylabel="second difference of log ρ",
        title="Without skip, log ρ falls like ½l² log α′",
    )


def _points(ax: Axes, drawn: pd.DataFrame, x: str, y: str, hue: str, kinds: Sequence[str]) -> None:
    """A point a problem, by kind."""
    for ink, marker, kind in zip(figures.PALETTE, figures.MARKERS, kinds, strict=False):
        rows = drawn[drawn[hue] == kind]
        ax.plot(rows[x], rows[y], marker, ms=3, color=ink, label=kind)
    ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
    ax.legend(title=hue, loc="upper left", ncols=2)
