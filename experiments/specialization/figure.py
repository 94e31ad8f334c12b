"""What learning does to heads and their error, and what joint training does, a line a stream."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .courses import NOISY
from .effects import (
    CONTRASTS,
    CONTROLS,
    READINGS,
    TRAINED,
    Road,
    fall,
    predicted,
    rise,
    share,
    simulated,
    starts,
    streams,
    variance_share,
)

GROUPS = {
    "rise of the diversity index": "diversity rises",
    "share of the gain: covariance of outputs": "decorrelation explains the gain",
    "share of the gain: ambiguity": "ambiguity explains the gain",
    "random start, share of the gain: ambiguity": "ambiguity explains the gain, random start",
    "much noise, share of the gain: covariance": "decorrelation explains the gain, much noise",
    "much noise, share of the gain: ambiguity": "ambiguity explains the gain, much noise",
    "fall of the error by a penalty": "a penalty helps",
}
"""Groups of lines to the regime of their claims, of one for each stream or of one for all."""
SHARES = {
    f"{regime}{mark}": reading
    for regime, reading in (
        ("decorrelation explains the gain", "covariance"),
        ("ambiguity explains the gain", "ambiguity"),
    )
    for mark in TRAINED
}
"""Regime of the claims of a reading of decorrelation to the reading."""
AGAINST_SEPARATE = {
    "joint training parts heads further": "diversity index",
    "joint training decorrelates errors further": "fall of the errors' correlation",
    "joint training lowers the error further": "relative fall of the error",
}
"""Families of joint less separate training to the name of what it changes."""
START = {"aligned": "10° apart", "random": "at random"}
STREAMS = {
    "noise": "nothing but noise",
    "single": "single direction",
    "additive": "additive",
    "isotropic": "isotropic",
}
"""Streams of tasks by what their targets hold."""


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
        "noisy_shares": {
            stream: float(share(results, f"{stream}, {NOISY}", "cross", simulated).mean())
            for stream in streams(results, NOISY)
        },
        "variance": [
            variance_share(results, f"{stream}, {NOISY}", "before")
            for stream in streams(results, NOISY)
        ],
        "alone": ends["additive, plain"],
        "free": ends["additive, weights"],
        "free_gain": 1 - error("additive, weights") / error("additive, plain"),
        "harm": [error("single, penalty", r) / error("single, plain", r) - 1 for r in roads],
        "separate": {
            start: {
                stream: float(results.estimates[f"{stream}, {pair[1]}"]["hdi_after"].mean())
                for stream in streams(results)
            }
            for start, pair in CONTROLS.items()
            if start in starts(results)
        },
        "n_eff": min(
            float(results.prediction(name)[f"n_eff_{state}"].mean())
            for name in results.points
            for state in ("before", "after")
        ),
    }


def values(results: Results, regime: str, stream: str) -> np.ndarray:
    """What the claims of a regime are about, one a seed of the stream."""
    if regime == "a penalty helps":
        return fall(results, stream)
    point = f"{stream}, {trained(regime)}"
    if regime in SHARES:
        return share(results, point, READINGS[SHARES[regime]], simulated)
    return rise(results, point)


def trained(regime: str) -> str:
    """The variant whose heads the claims of a regime are about."""
    marked = [variant for mark, variant in TRAINED.items() if mark and regime.endswith(mark)]
    return marked[0] if marked else "plain"


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.mosaic(
        ("a", "b"),
        height=12.5,
        heights=(6.5, 6.0),
        title="Heads part where they are trained together, and it is their errors that decorrelate",
    )
    of_learning(axes["a"], results, verdicts)
    of_joint_training(axes["b"], results, verdicts)
    figures.letters(axes[letter] for letter in "ab")
    return drawing


def of_joint_training(ax: Axes, results: Results, verdicts: Sequence[Verdict]) -> None:
    """Joint less separate training: index, correlation of errors and error, by start."""
    claims = {verdict.regime: verdict for verdict in verdicts}
    rows: list[tuple[str, str, float, float]] = []
    own: dict[tuple[str, str], Verdict] = {}
    for family, contrast in CONTRASTS.items():
        for start in starts(results):
            for stream in streams(results):
                line = (f"{AGAINST_SEPARATE[family]}, start {START[start]}", STREAMS[stream])
                rows.append((*line, *mean_and_error(contrast(results, stream, start))))
                if claim := claims.get(f"{family}, {stream}, {start} start"):
                    own[line] = claim
    figures.forest(
        ax,
        pd.DataFrame(rows, columns=["group", "label", "value", "error"]),
        percent=False,
        numbers=True,
        margin={line: (claim.margin, np.inf) for line, claim in own.items()},
        verdict=own,
    )
    ax.set_xlabel("joint training against separate training")


def of_learning(ax: Axes, results: Results, verdicts: Sequence[Verdict]) -> None:
    """Rise of the index, shares of the gain and what a penalty does, by joint training."""
    claims = {verdict.regime: verdict for verdict in verdicts}
    rows: list[tuple[str, str, float, float]] = []
    own: dict[object, Verdict] = {}
    margins: dict[tuple[str, str], tuple[float, float]] = {}
    for group, regime in GROUPS.items():
        if regime in claims:
            own[group] = claims[regime]
        for stream in streams(results, trained(regime)):
            line, whole = (group, STREAMS[stream]), f"{regime}, {stream}"
            rows.append((*line, *mean_and_error(values(results, regime, stream))))
            if whole in claims:
                own[line] = claims[whole]
            if claim := claims.get(whole, claims.get(regime)):
                margins[line] = (claim.margin, np.inf)
    figures.forest(
        ax,
        pd.DataFrame(rows, columns=["group", "label", "value", "error"]),
        percent=False,
        numbers=True,
        margin=margins,
        verdict=own,
    )
    ax.set_xlabel("rise of the index, share of the gain, relative fall of the error")
