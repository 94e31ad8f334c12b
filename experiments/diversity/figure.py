"""Which index the error falls with, in which regime, and the smallest cases where it rises."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from sims import figures
from sims.estimates import jackknife, mcse, mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    counterexamples,
    error_ratio,
    index_of,
    predicted,
    relative_errors,
    search,
    simulated,
)

SHOWN = "exchangeable, gaussian"
"""The regime whose errors are drawn."""
PANELS = {
    ("mean", "errors"): "mean, of errors",
    ("mean", "total"): "mean, of correlations",
    ("mean", "geometric"): "mean, of subspaces",
}


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    own = search(results)
    none = [] if own is None else own["searched_ratio"].values[own["less"].values == ""]
    return {
        "configurations": results.estimates[SHOWN].sizes["configuration"],
        "draws": min(results.replicates_at(name) for name in results.settings["regimes"]),
        "tried": 0 if own is None else int(own["tried"].sum()),
        "most_without": float(max(none, default=np.nan)),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    examples = counterexamples(results)
    drawing, axes = figures.panels(1, 1, width=figures.PAGE, height=7.6)
    axes[0, 0].remove()
    upper, middle, lower = cast(
        Sequence[SubFigure], drawing.subfigures(3, 1, height_ratios=(4.0, 2.1, 1.2))
    )
    top = upper.subplots()
    figures.grid_map(
        top, cells(results, verdicts), "index", "regime", verdict="verdict", text="text"
    )
    top.set(
        title="largest rise of the MSE from a less to a more diverse configuration",
        xlabel="",
        ylabel="",
    )
    below = middle.subplots(1, len(PANELS), sharey=True)
    for ax, (key, label) in zip(below, PANELS.items(), strict=True):
        points, lines = errors(results, key)
        figures.curve(
            ax,
            points,
            lines,
            label,
            "error",
            hue="heads",
            labels=None if ax is not below[0] else {"loc": "lower left"},
        )
        ax.set(xlabel=f"index ({label})", ylabel="")
    below[0].set_ylabel("MSE / mean MSE of a head")
    last = lower.subplots(1, max(len(examples), 1), squeeze=False)[0]
    for ax, (name, pair) in zip(last, examples.items(), strict=False):
        draw_example(ax, results, name, *pair)
    figures.letters([top, *below, last[0]])
    return drawing


def cells(results: Results, verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """A row for every claim about an index: its verdict and the effect that decided it."""
    regimes = sorted(results.settings["regimes"], key=len, reverse=True)
    rows: list[tuple[str, str, str | None, str]] = []
    for verdict in verdicts:
        if verdict.claim != "hdi-monotone":
            continue
        regime = next(name for name in regimes if verdict.regime.startswith(name))
        index = verdict.regime.removeprefix(f"{regime}, ")
        if index in ("equal heads", "top is tight"):
            continue
        text = "" if verdict.effect is None else percent(verdict.effect)
        rows.append((index, regime.replace(", ", ",\n"), verdict.verdict, text))
    # Where heads are equally good the index `mean` of errors orders them by algebra.
    shown = {(index, regime) for index, regime, *_ in rows}
    for name, regime in results.settings["regimes"].items():
        cell = ("mean, errors", name.replace(", ", ",\n"))
        if regime.get("equal_heads") and cell not in shown:
            rows.append((*cell, None, "algebra"))
    return pd.DataFrame(rows, columns=["index", "regime", "verdict", "text"])


def percent(value: float) -> str:
    """With sign; a factor where it more than doubles."""
    return f"× {1 + value:.2g}" if value > 1 else f"{100 * value:+.1f} %".replace("-", "−")


def errors(results: Results, key: tuple[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every configuration's index and error by simulation; equiangular heads' by theory."""
    theory, data = results.predictions[SHOWN], simulated(results, SHOWN)
    index = index_of(key, theory["grams"].values)
    even = [str(label).startswith("equiangular") for label in theory["label"].values]
    values = jackknife(data, relative_errors)
    columns = {
        PANELS[key]: jackknife(data, index).mean(0),
        "error": values.mean(0),
        "error_mcse": mcse(values),
        "heads": np.where(even, "equiangular", "uneven or random"),
    }
    law = predicted(theory)
    lines = {
        PANELS[key]: jackknife(law, index).mean(0)[even],
        "error": jackknife(law, relative_errors).mean(0)[even],
        "heads": "equiangular",
    }
    return pd.DataFrame(columns), pd.DataFrame(lines)


def draw_example(ax: Axes, results: Results, name: str, less: str, more: str) -> None:
    """Both sets of lines of a counterexample, and the ratio of their errors by both roads."""
    for place, point in enumerate((less, more)):
        angles = np.deg2rad(results.problems[point]["heads"]["frames"]["angles"])
        for angle in np.unique(angles):
            x, y = np.cos(angle), np.sin(angle)
            ax.plot(
                [3 * place - x, 3 * place + x], [-y, y], color=figures.PALETTE[place],
                # As many lines as lie on one another.
                lw=1.1 * np.sum(angles == angle), solid_capstyle="butt",
            )  # fmt: skip
    ax.text(1.5, 0, "→", ha="center", va="center")
    value, error = mean_and_error(error_ratio(results, less, more))
    law = float(results.prediction(more)["mse"] / results.prediction(less)["mse"])
    digits = 3 if law < 10 else 1
    words = name.replace(", ", ",\n") if ", " in name else "all sixteen,\none wave"
    ax.text(1.5, 1.4, words, ha="center", va="bottom", fontsize=6.5)
    ratios = f"× {law:.{digits}f}\n× {value:.{digits}f} ± {2 * error:.{digits}f}"
    ax.text(1.5, -1.3, ratios, ha="center", va="top", fontsize=6)
    ax.set(xlim=(-1.1, 4.1), ylim=(-2.7, 2.9), aspect="equal")
    ax.axis("off")
