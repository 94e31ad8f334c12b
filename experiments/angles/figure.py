"""Noise correlation and variance kept against the angle between heads' subspaces."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import Batches, mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    ANGLE,
    KERNEL,
    averaged,
    compared,
    curves,
    gap_to_exact,
    gap_to_law,
    noise_correlation,
    query_error,
    variance_kept,
)

Statistic = Callable[[Batches], np.ndarray]
KERNELS = ("gaussian", "softmax")


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    many, few = averaged(results), compared(results)
    laws = {name: float(results.prediction(name)["law"]) for name in many}
    estimates = [mean_and_error(results.pseudovalues(name, noise_correlation)) for name in many]
    gaps = {
        f"gap_{kernel}": max(
            abs(gap_to_law(results, name).value)
            for name in many
            if results.coordinates[name][KERNEL] == kernel
        )
        for kernel in KERNELS
    }
    problem = results.problems[many[0]]
    return gaps | {
        "query_error": max(query_error(results.prediction(p)) / law for p, law in laws.items()),
        "mcse": max(error / value for value, error in estimates),
        "gap_exact": max(abs(gap_to_exact(results, name).value) for name in few),
        "few": results.problems[few[0]]["queries"]["count"],
        "least_keys": min(float(results.prediction(name)["n_eff"].mean()) for name in many),
        "queries": problem["queries"]["count"],
        "n": problem["n"],
        "scale": problem["queries"]["scale"],
    }


def table(
    results: Results, points: Sequence[str], statistic: Statistic, order: str
) -> pd.DataFrame:
    """A statistic at these points by simulation, with its MCSE, and by theory of that order."""
    rows = []
    for name in points:
        theory = results.prediction(name, order)
        value, error = mean_and_error(results.pseudovalues(name, statistic))
        predicted = float(statistic({str(k): v.values for k, v in theory.items()}))
        rows.append((name, results.number(name, ANGLE), value, error, predicted))
    frame = pd.DataFrame(rows, columns=["name", "angle", "simulation", "mcse", "theory"])
    return _by_width(results, frame)


def law(results: Results, points: Sequence[str]) -> pd.DataFrame:
    """The angle law's dense curve, from each of these points."""
    curves = {name: results.prediction(name)["law_curve"] for name in points}
    parts = [
        pd.DataFrame({"name": name, "angle": curve["curve_angle"], "value": curve})
        for name, curve in curves.items()
    ]
    return _by_width(results, pd.concat(parts))


def _by_width(results: Results, frame: pd.DataFrame) -> pd.DataFrame:
    """With a column ``heads``, whose levels have their colours in every panel."""
    widths = {name: results.number(name, "heads.width") for name in results.points}
    levels = [f"$d_k$ = {width:g}" for width in sorted(set(widths.values()))]
    own = [f"$d_k$ = {widths[name]:g}" for name in frame["name"]]
    return frame.assign(heads=pd.Categorical(own, levels))


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    settings: dict[tuple[str, float], list[list[str]]] = {}
    for (kernel, bandwidth, _), points in curves(results).items():
        settings.setdefault((kernel, bandwidth), []).append(points)
    drawing, axes = figures.panels(2, 3, width=figures.PAGE, height=4.4)
    for ax, ((kernel, bandwidth), lines) in zip(axes[0], settings.items(), strict=True):
        claim = claims[f"{kernel} kernel"]
        rows = table(results, list(chain(*lines)), noise_correlation, "first")
        figures.curve(
            ax, rows.rename(columns={"simulation": "value"}),
            law(results, [line[0] for line in lines]), "angle", "value",
            error="mcse", hue="heads", margin=claim.margin, verdict=claim,
            labels={"loc": "lower left"} if ax is axes[0, 1] else None,
        )  # fmt: skip
        at = f"$b$ = {bandwidth:g}" if kernel == "gaussian" else f"$s$ = {bandwidth**2:.2f}"
        ax.set_title(f"{kernel}, {at}")
        ax.set_ylabel("noise correlation")
    for ax, kernel in zip(axes[1], KERNELS, strict=False):
        claim = claims[f"{kernel} kernel, exact"]
        few = [name for name in compared(results) if results.coordinates[name][KERNEL] == kernel]
        rows = table(results, few, noise_correlation, "exact")
        rows["angle"] += 5 * (rows["heads"].cat.codes - 0.5)  # widths stand side by side
        figures.gap(
            ax, rows, "angle", hue="heads", margin=claim.margin, verdict=claim, labels=None, log=""
        )
        ax.set_title(f"{kernel}, exact")
    kept = table(results, list(chain(*next(iter(settings.values())))), variance_kept, "first")
    last = axes[1, 2]
    figures.curve(
        last, kept.rename(columns={"simulation": "value"}),
        kept.rename(columns={"theory": "value"}), "angle", "value", error="mcse", hue="heads",
        verdict=claims["total variance, one fixed target"], labels=None,
    )  # fmt: skip
    last.set_title("signal and noise")
    last.set_ylabel("share of variance kept")
    heads = results.problems[averaged(results)[0]]["heads"]["count"]
    figures.reference(last, 1 / heads, "1/$H$: independent heads")
    for ax in axes.flat:
        ax.set(xlabel="principal angle θ (degrees)", xlim=(-5, 98))
        figures.ticks(ax.xaxis, range(0, 91, 30))
    for ax in (*axes[0], last):
        ax.set_ylim(0, 1.08)
    figures.letters(axes.flat)
    return drawing
