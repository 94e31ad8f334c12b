"""Which index the error falls with, in which regime, and the smallest cases where it rises."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

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
VERSIONS = {
    "geometric": "subspaces",
    "noise": "noise",
    "signal": "signals",
    "total": "correlations",
    "errors": "errors",
    "": "",
}
"""The matrices that indices are taken of, in words."""
DEFINITIONS = (
    "mean",
    "top",
    "entropy",
    "participation",
    "inverse",
    "determinant",
    "majorized",
    "equiangular heads",
)
"""Columns of the map, of each matrix; the last two are of no matrix."""
LEAST, MOST = 0.005, 5.0
"""Rises of the smallest and the largest marks of the map."""
STEP = 6.0
"""From one counterexample to the next, in half lengths of lines."""


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes, and its table of the worst pairs of all configurations."""
    own = search(results)
    none = [] if own is None else own["searched_ratio"].values[own["less"].values == ""]
    return {
        "configurations": results.estimates[SHOWN].sizes["configuration"],
        "draws": min(results.replicates_at(name) for name in results.settings["regimes"]),
        "tried": 0 if own is None else int(own["tried"].sum()),
        "most_without": float(max(none, default=np.nan)),
        "worst": worst(results),
    }


INDEX_CLAIMS = ("hdi-monotone", "hdi-further", "hdi-conditions")
"""Claims whose rows are of an index, or of what takes its place."""


NOT_SHOWN = ("equal heads", "top is tight", "no worse pair")
"""Their rows that are of no index; those of trends and of drawn frames are of all at once."""


def worst(results: Results) -> dict[str, Any]:
    """Largest rises between any two configurations, in per cent: a row an index, by regime."""
    regimes = [name for name, theory in results.predictions.items() if "worst_rise" in theory]
    cells: dict[str, dict[str, str]] = {}
    for name in regimes:
        own = results.predictions[name]
        for index, rises in zip(own["worst_index"].values, own["worst_rise"].values, strict=True):
            text = f"{100 * rises.mean():.2f} ± {400 * mcse(rises):.2f}"
            cells.setdefault(str(index), {})[name] = text
    rows = [
        (index, [own.get(name, "") for name in regimes]) for index, own in sorted(cells.items())
    ]
    return {"regimes": regimes, "rows": rows}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts if verdict.claim in INDEX_CLAIMS}
    drawing, axes = figures.mosaic(
        ("abc", "ddd", "eee"),
        height=6.2,
        heights=(2.1, 2.9, 1.3),
        title="The error falls with the diversity of heads' errors, less surely with other indices",
    )
    for ax, (key, label) in zip((axes[k] for k in "abc"), PANELS.items(), strict=True):
        points, lines = errors(results, key)
        figures.curve(
            ax,
            points,
            lines,
            label,
            "error",
            hue="heads",
            verdict=claims.get(f"{SHOWN}, {', '.join(key)}"),
            labels={"loc": "upper right"} if ax is axes["c"] else None,
        )
        ax.set(xlabel=f"index ({label})", ylabel="")
    axes["a"].set_ylabel("MSE / mean MSE of a head")
    ax, frame = axes["d"], cells(verdicts, results)
    sns.scatterplot(
        frame,
        x="index",
        y="regime",
        hue="verdict",
        palette=figures.INKS,
        style="verdict",
        markers={"supported": "o", "refuted": "X", "inconclusive": "s"},
        size="rise",
        sizes=(9, 120),
        size_norm=LogNorm(LEAST, MOST),
        ax=ax,
    )
    algebra = frame[frame["verdict"].isna()]
    ax.plot(algebra["index"], algebra["regime"], "_", color=figures.GREY)
    sns.move_legend(ax, "upper left", bbox_to_anchor=(0, 0), ncols=9, title=None)
    ax.xaxis.tick_top()
    ax.set(xlabel="", ylabel="")
    ax.set_title("largest rise of the MSE (first five rows: at equal diversity)")
    ax.tick_params(axis="x", rotation=45)
    for tick in ax.get_xticklabels():
        tick.set(ha="left", rotation_mode="anchor")
    draw_examples(axes["e"], results)
    figures.letters(axes[letter] for letter in sorted(axes))
    return drawing


def cells(verdicts: Sequence[Verdict], results: Results) -> pd.DataFrame:
    """A row for every claim about an index: its verdict and the effect that decided it.

    Where heads are equally good the effect is a difference at equal diversity, of either sign, else
    a rise; along equiangular heads it is a fall, and a rise where it is negative. The worst pairs
    of all configurations are in the caption's table.
    """
    regimes = sorted(results.settings["regimes"], key=len, reverse=True)
    rows: list[tuple[str, str, str | None, float]] = []
    for verdict in verdicts:
        if verdict.claim not in INDEX_CLAIMS:
            continue
        regime = next((name for name in regimes if verdict.regime.startswith(name)), None)
        if regime is None:  # of counterexamples, or of all regimes at once
            continue
        index = verdict.regime.removeprefix(f"{regime}, ")
        if index in NOT_SHOWN or index.startswith("trend") or "random frames drawn" in index:
            continue
        # Where targets are judged one after another, that stands for the file's own, too.
        each = results.settings["regimes"][regime].get("each")
        if each and index == "equiangular heads":
            continue
        index = index.removesuffix(", target by target")
        # True by algebra: a dash.
        algebra = verdict.kind == "program" and verdict.verdict == "supported"
        change = verdict.effect or 0.0
        rise = max(-change, 0.0) if index == "equiangular heads" else abs(change)
        rise = float(np.clip(rise, LEAST, MOST))
        rows.append((index, regime, None if algebra else verdict.verdict, rise))
    frame = pd.DataFrame(rows, columns=["index", "regime", "verdict", "rise"])
    keys = [(v, d) for d, _, v in (index.partition(", ") for index in frame["index"])]
    words = {(v, d): f"{d} of {VERSIONS[v]}" if v else d for v, d in keys}
    order = sorted(words, key=lambda key: [list(VERSIONS).index(key[0]), DEFINITIONS.index(key[1])])
    return frame.assign(
        index=pd.Categorical([words[key] for key in keys], [words[key] for key in order]),
        regime=pd.Categorical(frame["regime"], list(results.settings["regimes"])),
    )


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


def draw_examples(ax: Axes, results: Results) -> None:
    """Both sets of lines of each counterexample, and the ratio of their errors by both roads."""
    examples = counterexamples(results)
    for place, (name, (less, more)) in enumerate(examples.items()):
        middle = STEP * place
        for side, point in zip((-1, 1), (less, more), strict=True):
            angles = np.deg2rad(results.problems[point]["heads"]["frames"]["angles"])
            for angle in np.unique(angles):
                x, y = np.cos(angle), np.sin(angle)
                ax.plot(
                    [middle + 1.5 * side - x, middle + 1.5 * side + x],
                    [-y, y],
                    color=figures.PALETTE[0 if side < 0 else 1],
                    # As many lines as lie on one another.
                    lw=1.1 * np.sum(angles == angle),
                    solid_capstyle="butt",
                )
        ax.text(middle, 0, "→", ha="center", va="center")
        value, error = mean_and_error(error_ratio(results, less, more))
        law = float(results.prediction(more)["mse"] / results.prediction(less)["mse"])
        digits = 3 if law < 10 else 1
        definition, _, version = name.partition(", ")
        words = f"{definition}\nof {VERSIONS[version]}" if version else "all sixteen,\none wave"
        ax.text(middle, 1.3, words, ha="center", va="bottom", fontsize=figures.SMALL)
        ratios = f"{law:.{digits}f}\n{value:.{digits}f}\n± {2 * error:.{digits}f}"
        ax.text(middle, -1.3, ratios, ha="center", va="top", fontsize=figures.SMALL)
    right = STEP * (len(examples) - 0.5)
    ax.set(xlim=(-STEP / 2, right), ylim=(-3.9, 3.2), aspect="equal")
    ax.set_title("counterexamples: ratio of errors by theory, simulation")
    ax.axis("off")
