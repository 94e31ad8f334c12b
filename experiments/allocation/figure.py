"""Error of every split, d_k*(n), H*(D) for both geometries, and the map of the log law."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict, optimal_set
from sims.study.results import Results

from .curves import BUDGET, TEMPERATURES, regimes
from .effects import Splits, movements, vertex

WORDS = dict(
    zip(
        TEMPERATURES,
        ("fixed temperature", "Transformer's temperature", "re-tuned bandwidth"),
        strict=True,
    )
)
"""Temperature to the regime of its claims."""
MARGIN = 0.02
"""Of the map's claims: what its panel draws a line at."""
SHOWN = {"views": BUDGET, "blocks": 48}
"""D of the curves d_k*(n) with points."""
TICKS = {"views": (0.05, 0.1, 0.2, 0.5), "blocks": (0.6, 0.8, 1.0, 2.0)}
"""Of the axes of errors."""


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    views, blocks = (Splits(results, name) for name in SHOWN)
    optimum = views.theory["optimum"].sel(family="smooth", dense_budget=BUDGET)
    choices = [views.candidates(case, name)[1:] for name in WORDS for case in views.cases()]
    quoted: dict[str, Any] = {
        "cases": len(choices),
        "inside": sum(
            bool(optimal_set(values, 0.95)[np.argmin(predicted)]) for values, predicted in choices
        ),
    }
    for name in WORDS:
        quoted[name] = tuple(optimum.sel(temperature=name).values[[0, -1]].tolist())
        cells = regimes(views.theory, name)
        quoted[f"map_{name}"] = (
            sum(e.value <= MARGIN for e in cells), len(cells), max(e.value for e in cells)
        )  # fmt: skip
    # Where theory puts the best block below a third of the budget.
    for name, splits, least in (("views", views, 0), ("blocks", blocks, 24)):
        every = movements(splits)["growth, fixed"]
        slopes = [e.value for e in every if float(e.at["budget"]) >= least]
        quoted[f"{name}_growth"] = (float(np.min(slopes)), float(np.max(slopes)))
    return quoted


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        2, 3, height=5,
        title="A budget has a best split; its width grows like log n at a fixed temperature alone",
    )  # fmt: skip
    for row, (geometry, words) in zip(
        axes, (("views", "redundant views"), ("blocks", "blocks")), strict=True
    ):
        splits = Splits(results, geometry)
        errors(row[0], splits, words, claims)
        widths(row[1], splits, words, claims)
    heads(axes[0, 2], results, claims)
    regime_map(axes[1, 2], results)
    figures.letters(axes.flat)
    return drawing


def errors(ax: Axes, splits: Splits, words: str, claims: dict[tuple[str, str], Verdict]) -> None:
    """Error of every split at the fixed temperature, over that of the best."""
    budget, rung = SHOWN[splits.point], splits.rungs("fixed")[0]
    budget = budget if budget in splits.theory["budget"] else int(splits.theory["budget"][-1])
    inner = splits.widths(budget)
    data = splits.batches["mse"].sel(family="smooth", budget=budget, width=inner).isel(rung=rung)
    surface = splits.theory["surface"].sel(
        family="smooth", dense_budget=budget, temperature="fixed",
        dense_n=splits.theory["n"].values.astype(float), method=None,
    ).rename(dense_n="n", dense_width="width")  # fmt: skip
    lines = surface.to_dataframe("theory").dropna().reset_index().astype({"n": int})
    lines = lines[["n", "width", "theory"]]
    claim = claims["allocation", f"{words}, fixed temperature, simulation"]
    figures.curve(
        ax, figures.tidy(data), lines, "width", "MSE", hue="n", log="xy", verdict=claim,
        labels={"title": "$n$"},
    )  # fmt: skip
    figures.ticks(ax.xaxis, inner)
    figures.ticks(ax.yaxis, TICKS[splits.point])
    ax.set(xlabel=f"head width $d_k$ ($D$ = {budget})", title=words)


def widths(ax: Axes, splits: Splits, words: str, claims: dict[tuple[str, str], Verdict]) -> None:
    """Best widths against n, by temperature; where they are inside."""
    budget = SHOWN[splits.point]
    budget = budget if budget in splits.theory["budget"] else int(splits.theory["budget"][-1])
    shown = {k: v for k, v in WORDS.items() if splits.point == "views" or k == "fixed"}
    theory_budget = budget if splits.point == "views" else int(splits.theory["dense_budget"][-1])
    theory = splits.theory["optimum"].sel(family="smooth", dense_budget=theory_budget)
    lines = theory.to_dataframe("theory").reset_index().rename(columns={"dense_n": "size"})
    rows = [
        (name, n, *mean_and_error(vertex(splits, ("smooth", n, budget), name)[0]))
        for name in shown for n in splits.theory["n"].values.tolist()
    ]  # fmt: skip
    best = pd.DataFrame(rows, columns=["temperature", "size", "simulation", "mcse"])
    own = {k: claims["dk-log", f"{words}, {v}"] for k, v in shown.items()}
    figures.curve(
        ax, best, lines[lines["temperature"].isin(shown)], "size", "best head width $d_k^*$",
        hue="temperature", log="x", labels="ends", verdict=own,
    )  # fmt: skip
    figures.log_axes(ax, x=True)
    ax.set(xlabel="number of keys $n$", xlim=(50, 5e9))
    ax.set(title=f"{splits.point}: straight if like log $n$")


def heads(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Best numbers of heads against D at the fixed temperature, both geometries."""
    points, lines = [], []
    for geometry in SHOWN:
        splits = Splits(results, geometry)
        n = splits.theory["n"].values.tolist()[1 if splits.theory.sizes["n"] > 2 else 0]
        for budget in splits.theory["budget"].values.tolist():
            values = budget / vertex(splits, ("smooth", n, budget), "fixed")[0]
            points.append((geometry, budget, *mean_and_error(values)))
        best = splits.theory["optimum"].sel(family="smooth", temperature="fixed")
        best = best.sel(dense_n=n, method="nearest")
        lines += [
            (geometry, budget, budget / float(best.sel(dense_budget=budget)))
            for budget in best["dense_budget"].values.tolist()
        ]
    figures.curve(
        ax, pd.DataFrame(points, columns=["heads", "D", "simulation", "mcse"]),
        pd.DataFrame(lines, columns=["heads", "D", "theory"]).dropna(), "D",
        "best number of heads $H^*$", hue="heads", log="xy", labels="key",
        verdict={
            "views": claims["heads-linear", "redundant views, fixed temperature, simulation"],
            "blocks": claims["heads-linear", "blocks, fixed temperature, simulation"],
        },
    )  # fmt: skip
    figures.ticks(ax.xaxis, 2.0 ** np.arange(4, 10))
    ax.set(xlabel="budget $D$", title="slope 1 if $H^*$ grows like $D$")


def regime_map(ax: Axes, results: Results) -> None:
    """Every cell of the map: growth of d_k* and its deviation from a + p log n."""
    views = Splits(results, "views").theory
    for color, (name, words) in zip(figures.PALETTE, WORDS.items(), strict=False):
        for nu, marker in ((np.inf, "o"), (1.5, "s"), (0.5, "^")):
            cells = [e for e in regimes(views, name) if e.at["nu"] == nu]
            ax.plot(
                [float(e.at["rate"]) for e in cells], [100 * e.value for e in cells], marker,
                color=color, ms=3, alpha=0.7, label=words if nu == np.inf else None,
            )  # fmt: skip
    ax.axhline(100 * MARGIN, color="0.3", lw=0.8, ls="--")
    ax.set(yscale="log", xlabel="growth of $d_k^*$ per unit of log $n$",
           ylabel="off the nearest log law (% of rise)", title="map of regimes")  # fmt: skip
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.88), fontsize="x-small", frameon=False)
