"""First-order theory against exact theory and simulation, and exact theory against simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sims.results import Results

from sims import figures
from sims.judgement import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMS = {
    "squared bias": "squared_bias",
    "signal variance": "signal_variance",
    "noise variance": "noise_variance",
    "signal covariance": "cross_signal_covariance",
    "noise covariance": "cross_noise_covariance",
    "mean squared error": "mse",
}
SHOWN = ("noise variance", "signal variance", "squared bias")
"""Terms whose first-order gap is drawn: the other three follow them."""
LEAST_KEYS = 50
"""Effective keys from which on first-order theory is held to its claims."""


def points(results: Results, theory: str) -> pd.DataFrame:
    """Simulated and predicted terms; ``theory`` is the prefix of the prediction."""
    rows = []
    for name, at in results.points.items():
        simulated, predicted = results.simulation[name], results.theory[name]
        # Variances average 1/n_eff over queries and heads: hence the harmonic mean.
        keys = 1 / float((1 / predicted["n_eff"]).mean())
        for label, term in TERMS.items():
            values = (float(simulated[term].mean()), float(simulated[f"{term}_mcse"]))
            rows.append((_kernel(at), label, keys, *values, float(predicted[f"{theory}{term}"])))
    columns = ["kernel", "term", "keys", "simulation", "mcse", "theory"]
    return _ordered(pd.DataFrame(rows, columns=columns))


def lines(results: Results) -> pd.DataFrame:
    """Exact and first-order terms along each kernel's dense line of sizes."""
    parts = [
        pd.DataFrame(
            {
                "kernel": _kernel(results.points[name]),
                "term": label,
                "keys": data["curve_n_eff"].values,
                "exact": data[f"curve_{term}"].values,
                "theory": data[f"curve_first_{term}"].values,
            }
        )
        for name, data in results.theory.items()
        if "curve_n" in data
        for label, term in TERMS.items()
    ]
    return _ordered(pd.concat(parts))


def _kernel(coordinates: dict) -> str:
    kernel = coordinates.get("heads.kernel", "gaussian")
    return f"{kernel}, anisotropic keys" if "design" in coordinates else kernel


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    kernels = pd.Categorical(frame["kernel"], sorted(set(frame["kernel"])))
    return frame.assign(kernel=kernels)


def figure(results: Results, verdicts: list[Verdict]) -> Figure:
    first, exact, curves = points(results, "first_"), points(results, ""), lines(results)
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    own = {kernel: by_regime[f"first order, {kernel}"] for kernel in first["kernel"].unique()}
    margin = next(iter(own.values())).margin
    drawing, axes = figures.panels(2, 2, width=figures.PAGE, height=4.8, sharex=True)
    for ax, term in zip(axes.flat, SHOWN, strict=False):
        figures.gap(
            ax, first[first["term"] == term], "keys", hue="kernel", verdict=own,
            lines=curves[curves["term"] == term], linear=0.01, over=(LEAST_KEYS, np.inf),
            # The claim is about first order / exact − 1, whose band is not quite symmetric here.
            margin=(1 / (1 + margin) - 1, 1 / (1 - margin) - 1),
            labels={"loc": "lower right"} if term == SHOWN[-1] else None,
        )  # fmt: skip
        ax.set_ylim(-1.6, 0.2)
        figures.ticks(ax.yaxis, (-1, -0.1, -0.01, 0, 0.01, 0.1), percent=True)
        ax.set_title(term)
        ax.set_ylabel("simulation / first order − 1 (%)")
    ax = axes[1, 1]
    # The six terms of a point stand side by side.
    shift = 1.08 ** (exact["term"].map(list(TERMS).index) - 2.5)
    every = by_regime["every term"]
    figures.gap(
        ax, exact.assign(keys=exact["keys"] * shift), "keys", hue="kernel", margin=every.margin,
        verdict=every, labels=None,
    )  # fmt: skip
    ax.set_title("all terms")
    ax.set_ylabel("simulation / exact − 1 (%)")
    for ax in axes.flat:
        ax.set_xlabel(r"effective keys $n_\mathrm{eff}$" if ax in axes[1] else "")
    figures.letters(axes.flat)
    return drawing
