"""Rise of diversity, its share of the gain and what a penalty does, a line a stream."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import READINGS, Road, fall, predicted, rise, share, simulated, streams

PANELS: tuple[tuple[str, str, Callable[[Results, str], np.ndarray]], ...] = (
    ("diversity rises", "rise of the\ndiversity index", lambda r, s: rise(r, f"{s}, plain")),
    *(
        (regime, f"share of the gain:\n{reading}",
         lambda r, s, part=READINGS[reading]: share(r, f"{s}, plain", part, simulated))
        for regime, reading in (
            ("decorrelation explains the gain", "covariance"),
            ("decorrelation of errors explains the gain", "error covariance"),
            ("ambiguity explains the gain", "ambiguity"),
        )
    ),
    ("a penalty helps", "fall of the error\nby a penalty", fall),
)  # fmt: skip
"""Regime of the claims (of one for each stream, or for all), axis, and values of a stream."""


def numbers(results: Results) -> dict[str, object]:
    """Numbers that the caption quotes."""

    def error(point: str, road: Road = simulated) -> float:
        return float(road(results, point, "mse", "after").mean())

    ends = {name: float(results.estimates[name]["hdi_after"].mean()) for name in results.points}
    roads = (predicted, simulated)
    return {
        "seeds": min(results.batches(name) for name in results.points),
        "shares": {
            stream: [float(share(results, f"{stream}, plain", "cross", r).mean()) for r in roads]
            for stream in streams(results)
        },
        "alone": ends["additive, plain"],
        "free": ends["additive, weights"],
        "free_gain": 1 - error("additive, weights") / error("additive, plain"),
        "harm": [error("single, penalty", r) / error("single, plain", r) - 1 for r in roads],
        "n_eff": min(
            float(results.prediction(name)[f"n_eff_{state}"].mean())
            for name in results.points
            for state in ("before", "after")
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        2, 3, width=figures.PAGE, height=4.2, sharey=True,
        title="Heads become diverse by themselves, and it is their errors that decorrelate",
    )  # fmt: skip
    for ax, (regime, axis, values) in zip(axes.flat, PANELS, strict=False):
        rows = [(name, *mean_and_error(values(results, name))) for name in streams(results)]
        own = {
            stream: claims.get(f"{regime}, {stream}", claims.get(regime))
            for stream in streams(results)
        }
        known = {stream: claim for stream, claim in own.items() if claim is not None}
        figures.forest(
            ax, pd.DataFrame(rows, columns=["label", "value", "error"]), percent=False,
            margin={stream: (claim.margin, np.inf) for stream, claim in known.items()},
            verdict=claims.get(regime, known),
        )  # fmt: skip
        ax.set_xlabel(axis)
    axes[1, 2].remove()
    figures.letters(axes.flat[: len(PANELS)])
    return drawing
