"""Maps of the error, d_k*(n) and H*(D) for geometries and kernels, and the map of the log law."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict, optimal_set
from sims.study.results import Results

from .curves import BUDGET, TEMPERATURES, regimes
from .effects import Splits, movements, vertex, whole

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
"""D of the curves d_k*(n) with points, by geometry."""
PANELS = {
    "views": "redundant views",
    "blocks": "blocks",
    "softmax views": "redundant views, softmax",
    "softmax blocks": "blocks, softmax",
}
"""Points to the regimes of their claims."""
SHORT = {"fixed": "fixed", "transformer": "Transformer's", "tuned": "re-tuned"}
"""Temperatures beside their lines."""


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    views, blocks, hot = (Splits(results, name) for name in (*SHOWN, "softmax views"))
    optimum = views.theory["optimum"].sel(family="smooth", dense_budget=BUDGET)
    choices = [whole(views, case, name)[1:] for name in WORDS for case in views.cases()]
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
            sum(e.value + e.bound <= MARGIN for e in cells),
            sum(e.value - e.bound > MARGIN for e in cells),
            len(cells),
        )
    curves = hot.theory["optimum"].sel(family="smooth", dense_budget=BUDGET)
    quoted["softmax"] = {
        name: tuple(curves.sel(temperature=name).values[[0, -1]].tolist()) for name in WORDS
    }
    # Where theory puts the best block below a third of the budget.
    for name, splits, least in (
        ("views", views, 0),
        ("blocks", blocks, 24),
        ("softmax_views", hot, 0),
    ):
        every = movements(splits)["growth, fixed"]
        slopes = [e.value for e in every if float(e.at["budget"]) >= least]
        quoted[f"{name}_growth"] = (float(np.min(slopes)), float(np.max(slopes)))
    return quoted


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        3,
        3,
        height=7.8,
        title="A budget has a best split; its width grows like log n at a fixed temperature alone",
    )
    for row, point in zip(axes, ("views", "blocks", "softmax views"), strict=True):
        splits = Splits(results, point)
        valley(row[0], splits, claims)
        widths(row[1], splits, claims)
    heads(axes[0, 2], results, claims)
    regime_map(axes[1, 2], results, claims)
    valley(axes[2, 2], Splits(results, "softmax blocks"), claims)
    figures.letters(axes.flat)
    return drawing


def short(splits: Splits) -> str:
    """What a panel's title calls the geometry and, beside the gaussian kernel, the weights."""
    geometry = splits.settings["geometry"]
    return geometry if geometry == splits.point else f"{geometry}, softmax"


def drawn_budget(splits: Splits) -> int:
    """The D that is drawn; the largest one where a run has not that one."""
    budget = SHOWN[splits.settings["geometry"]]
    known = splits.theory["budget"].values.tolist()
    return budget if budget in known else int(known[-1])


def valley(ax: Axes, splits: Splits, claims: dict[tuple[str, str], Verdict]) -> None:
    """Error of every split at the fixed temperature over the best at its n: dark is best."""
    budget, rung = drawn_budget(splits), splits.rungs("fixed")[0]
    name, regime = short(splits), f"{PANELS[splits.point]}, fixed temperature, simulation"
    of = {"family": "smooth", "dense_budget": budget, "temperature": "fixed"}
    surface = splits.theory["surface"].sel(of, method=None)
    excess = surface / surface.min("dense_width") - 1
    norm = LogNorm(0.003, 3, clip=True)
    image = ax.pcolormesh(
        excess["dense_n"],
        excess["dense_width"],
        excess.transpose("dense_width", "dense_n"),
        cmap="mako",
        norm=norm,
        rasterized=True,
    )
    ax.patch.set(hatch="////", edgecolor="0.55")  # which shows where there is no value
    inner = splits.widths(budget)
    data = splits.batches["mse"].sel(family="smooth", budget=budget, width=inner).isel(rung=rung)
    mean = data.mean("batch")
    seen = (mean / mean.min("width") - 1).to_dataframe("excess").reset_index()
    ax.scatter(
        seen["n"],
        seen["width"],
        c=seen["excess"].clip(lower=0.003),
        cmap=image.cmap,
        norm=norm,
        s=22,
        edgecolors="white",
        linewidths=0.7,
        zorder=3,
    )
    best = splits.theory["optimum"].sel(of, method=None)
    ax.plot(best["dense_n"], best, color="white", lw=1.2)
    bar = ax.figure.colorbar(image, ax=ax, ticks=[0.003, 0.03, 0.3, 3], aspect=30, pad=0.02)
    bar.ax.set_yticklabels(["≤ 0.3", "3", "30", "300"])
    bar.set_label("MSE over the best at that $n$ (%)")
    bar.outline.set_visible(False)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.yaxis, [w for w in (1, 2, 4, 8, 16) if w <= budget])
    ax.set(
        xlabel="number of keys $n$",
        ylabel=f"head width $d_k$ ($D$ = {budget})",
        title=figures.signed(name, {name: claims["allocation", regime]}),
    )
    figures.note(ax, "dots on maps: simulation; hatched: too few effective keys for theory")


def widths(ax: Axes, splits: Splits, claims: dict[tuple[str, str], Verdict]) -> None:
    """Best widths against n, by temperature; where they are inside."""
    budget, words = drawn_budget(splits), PANELS[splits.point]
    views = splits.settings["geometry"] == "views"
    shown = {k: v for k, v in WORDS.items() if views or k == "fixed"}
    theory_budget = budget if views else int(splits.theory["dense_budget"][-1])
    theory = splits.theory["optimum"].sel(family="smooth", dense_budget=theory_budget)
    lines = theory.to_dataframe("theory").reset_index().rename(columns={"dense_n": "size"})
    rows = [
        (name, n, *mean_and_error(vertex(splits, ("smooth", n, budget), name)[0]))
        for name in shown
        for n in splits.theory["n"].values.tolist()
    ]
    best = pd.DataFrame(rows, columns=["temperature", "size", "simulation", "mcse"])
    own = {SHORT[k]: claims["dk-log", f"{words}, {v}"] for k, v in shown.items()}
    lines = lines[lines["temperature"].isin(shown)]
    best, lines = (frame.replace({"temperature": SHORT}) for frame in (best, lines))
    figures.curve(
        ax,
        best,
        lines,
        "size",
        "best head width $d_k^*$",
        hue="temperature",
        log="x",
        verdict=own,
    )
    figures.log_axes(ax, x=True)
    ax.set(xlabel="number of keys $n$", xlim=(50, 2e8))
    ax.set(title=f"{short(splits)}: straight if like log $n$")


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
        ax,
        pd.DataFrame(points, columns=["heads", "D", "simulation", "mcse"]),
        pd.DataFrame(lines, columns=["heads", "D", "theory"]).dropna(),
        "D",
        "best number of heads $H^*$",
        hue="heads",
        log="xy",
        labels="key",
        verdict={
            "views": claims["heads-linear", "redundant views, fixed temperature, simulation"],
            "blocks": claims["heads-linear", "blocks, fixed temperature, simulation"],
        },
    )
    figures.ticks(ax.xaxis, 2.0 ** np.arange(4, 10))
    ax.set(xlabel="budget $D$", title="slope 1 if like $D$")


def regime_map(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Every cell of the map: growth of d_k* and its deviation from a + p log n."""
    views = Splits(results, "views").theory
    for color, (name, words) in zip(figures.PALETTE, WORDS.items(), strict=False):
        for nu, marker in ((np.inf, "o"), (1.5, "s"), (0.5, "^")):
            cells = [e for e in regimes(views, name) if e.at["nu"] == nu]
            ax.plot(
                [float(e.at["rate"]) for e in cells],
                [e.value for e in cells],
                marker,
                color=color,
                ms=3,
                markerfacecolor="white",
                markeredgewidth=0.7,
            )
            # Downwards they would end at 0, which a logarithmic axis has not.
            ax.vlines(
                [float(e.at["rate"]) for e in cells],
                [e.value for e in cells],
                [e.value + e.bound for e in cells],
                color=color,
                lw=0.7,
                alpha=0.5,
                zorder=1,
            )
        start = f"map, {words}"
        own = {
            regime.removeprefix(start)
            .removeprefix(", ")
            .replace(STEEP, "steep")
            .removesuffix(" targets"): claim
            for (_, regime), claim in claims.items()
            if regime.startswith(start)
        }
        said = "\n".join(figures.signed(part, own) for part in own)
        said = f":\n{said}" if len(own) > 1 else said
        ax.annotate(
            SHORT[name] + said,
            PLACES[name],
            xycoords="axes fraction",
            color=color,
            fontsize=figures.SMALL,
        )
    figures.log_axes(ax, y=True)
    figures.ticks(ax.yaxis, (0.002, 0.01, 0.05, 0.2), percent=True)
    figures.band(ax, (-np.inf, MARGIN), words=False)
    figures.note(
        ax, f"f, grey: margin, below {MARGIN:.0%}; bars: errors of widths".replace("%", " %")
    )
    ax.set(
        xlabel="growth of $d_k^*$ per unit of log $n$",
        ylabel="off the nearest log law (% of rise)",
        title="map of regimes",
    )


STEEP = "smooth targets, steepest decay"
"""What the panel calls steep."""
PLACES = {"fixed": (0.03, 0.02), "transformer": (0.5, 0.9), "tuned": (0.5, 0.7)}
"""Where the names of the map's temperatures stand, as shares of the axes."""
