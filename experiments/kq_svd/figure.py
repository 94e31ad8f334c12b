"""Errors by angle of axes, price of calibration, outputs against scores, terms by rank."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error, ratio
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import disagree, effects, part

RANK = 2
NOISY = "noisy"
PARTS = {"squared_bias": "squared bias", "variance": "variance of a head", "mse": "MSE"}


def numbers(results: Results) -> dict[str, float | dict[str, float]]:
    """Numbers that the caption quotes."""
    families = effects(results)
    gained = families["gain of centring"]
    spectral = {
        int(results.number(p, "length")): float(results.estimates[p]["ratio"].mean())
        for p in part(results, "spectral")
    }
    rises = {
        str(e.at["regime"]): e.value
        for e in families["rise of the error of the ensemble"]
        if e.at["rank"] == 1
    }
    return {
        "rise": rises,
        "disagree_least": min(float(disagree(results, p).mean()) for p in part(results, "head")),
        "disagree_most": max(float(disagree(results, p).mean()) for p in part(results, "head")),
        "centring": float(1 - np.exp(-gained[-1].value)),
        "broken_at": min(t for t, value in spectral.items() if value > 1),
        "broken_by": min(value for value in spectral.values() if value > 1) - 1,
        "worse": max(
            e.value
            for e in families["worse than K-SVD"]
            if results.number(e.points[0], "ratio") == 1
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        2,
        2,
        height=5.4,
        title="The best factors for scores need not be the best for outputs or for the estimate",
    )
    turned(axes[0, 0], results, claims["kq-gap", "turned or rotated queries"])
    calibrated(axes[0, 1], results, claims["kq-calibration", "excess risk"])
    followed(axes[1, 0], results, claims["kq-output", "every head"])
    by_rank(axes[1, 1], results, claims["kq-mse", "the ensemble, few keys, much noise"])
    figures.letters(axes.flat)
    return drawing


def turned(ax: Axes, results: Results, claim: Verdict) -> None:
    """Errors over the optimum against the angle between axes, at the middle decay."""
    rows, lines = [], []
    decays = results.settings["caches"]["decays"]
    middle = decays[len(decays) // 2]
    for point in part(results, "cache"):
        own = results.coordinates[point]
        if own["decay"] != middle or not str(own["angle"]).isdigit():
            continue
        data, theory = (
            d.sel(rank=RANK) for d in (results.estimates[point], results.prediction(point))
        )
        angle, least = float(str(own["angle"])), float(theory["optimum"])
        names = {"KQ-SVD": 0, "K-SVD": 1, "Eigen": 2}
        for name, place in names.items():
            values = data["error"].values[:, place] / least
            rows.append((angle, name, *mean_and_error(values)))
        rows.append((angle, "least squares", *mean_and_error(data["solver"].values / least)))
        lines += [(angle, "KQ-SVD", 1.0), (angle, "K-SVD", float(theory["keys_only"]) / least)]
    figures.curve(
        ax,
        pd.DataFrame(rows, columns=["angle", "method", "simulation", "mcse"]),
        pd.DataFrame(lines, columns=["angle", "method", "theory"]),
        "angle",
        "score error / least error",
        hue="method",
        verdict=claim,
        labels={"loc": "upper left"},
    )
    ax.set(xlabel="angle between axes of keys and queries (degrees)", title=f"rank {RANK} of 8")
    figures.ticks(ax.xaxis, (0, 30, 60, 90))


def calibrated(ax: Axes, results: Results, claim: Verdict) -> None:
    """Excess risk on new tokens against the size of the calibration sample, with its law."""
    rows = []
    for point in part(results, "calibration"):
        if results.number(point, "ratio") != 1:
            continue
        theory = results.prediction(point)
        least = float(theory["least"])
        angle = str(results.coordinates[point]["angle"])
        name = f"{angle}°" if angle.isdigit() else angle
        value = mean_and_error(results.estimates[point]["risk"].values / least - 1)
        rows.append((results.number(point, "n"), name, *value, float(theory["excess"]) / least))
    figures.curve(
        ax,
        pd.DataFrame(rows, columns=["n", "queries", "simulation", "mcse", "theory"]),
        None,
        "n",
        "risk / least error − 1",
        hue="queries",
        log="xy",
        verdict=claim,
    )
    ax.set(xlabel="calibration keys, and as many queries", title="new tokens")


def followed(ax: Axes, results: Results, claim: Verdict) -> None:
    """K-SVD's error over KQ-SVD's, of outputs against scores: a dot a head."""
    for place, point in enumerate(part(results, "head")):
        data = results.estimates[point]
        x, y = (
            np.ravel(data[f"{of}_k"].values / data[f"{of}_kq"].values) for of in ("score", "output")
        )
        ax.scatter(
            x,
            y,
            s=3,
            lw=0,
            marker="os^"[place],
            color=figures.PALETTE[place],
            label=f"key mean {results.number(point, 'mean'):g}",
        )
    figures.log_axes(ax, x=True, y=True)
    low, high = ax.get_xlim()
    bottom, top = ax.get_ylim()
    for side, heights in (((low, 1), (1, top)), ((1, high), (bottom, 1))):
        ax.fill_between(side, *heights, color=figures.BAND, lw=0, zorder=0)
    ends = np.array([max(low, bottom), min(high, top)])
    ax.plot(ends, ends, color=figures.GREY, lw=0.8)
    ax.set(
        xlim=(low, high),
        ylim=(bottom, top),
        xlabel="score error, K-SVD / KQ-SVD",
        ylabel="output error, K-SVD / KQ-SVD",
        title="heads, new tokens",
    )
    ax.legend(loc="lower right", markerscale=2)
    figures.badge(ax, claim)
    figures.note(ax, "grey: ordered differently")


def by_rank(ax: Axes, results: Results, claim: Verdict) -> None:
    """Terms of the averaged heads by rank over the MSE of whole heads, few keys and much noise."""
    points = {
        int(results.number(p, "rank")): p
        for p in part(results, "heads")
        if results.coordinates[p]["regime"] == NOISY
    }
    whole = points[max(points)]
    base, law = results.estimates[whole]["mse"].values, float(results.prediction(whole)["mse"])
    rows = [
        (
            rank,
            words,
            *mean_and_error(ratio(results.estimates[point][term].values, base)),
            float(results.prediction(point)[term]) / law,
        )
        for rank, point in points.items()
        for term, words in PARTS.items()
    ]
    figures.curve(
        ax,
        pd.DataFrame(rows, columns=["rank", "term", "simulation", "mcse", "theory"]),
        None,
        "rank",
        "share of the MSE of whole heads",
        hue="term",
        log="x",
        verdict=claim,
    )
    figures.ticks(ax.xaxis, sorted(points))
    ax.set(xlabel="rank kept r", ylim=(0, None), title="few keys, much noise")
