"""Error of every split, the valley of the best ones over n, d_k*(n) and H*(D)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict, optimal_set
from sims.study.results import Results

from .effects import BUDGET, Splits, growth, vertex

REGIMES = {
    "fixed": "fixed temperature",
    "transformer": "Transformer's temperature",
    "tuned": "re-tuned bandwidth",
}
"""Temperature to the regime of its claims."""


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    splits = Splits(results)
    optimum = splits.theory["optimum"].sel(family="smooth", dense_budget=BUDGET)
    grown = growth(splits)
    choices = [splits.candidates(case, name)[1:] for name in REGIMES for case in splits.cases()]
    quoted: dict[str, Any] = {
        "cases": len(choices),
        "inside": sum(
            bool(optimal_set(values, 0.95)[np.argmin(predicted)]) for values, predicted in choices
        ),
    }
    for name in REGIMES:
        simulated, predicted = grown[name, "smooth", BUDGET]
        ends = optimum.sel(temperature=name).values[[0, -1]].tolist()
        quoted[name] = (*ends, float(simulated.mean()), predicted)
    return quoted


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    splits = Splits(results)
    theory = splits.theory.sel(family="smooth").rename(dense_n="size", dense_budget="D")
    sizes, budgets = (theory[k].values.tolist() for k in ("n", "budget"))
    fixed = theory.sel(temperature="fixed", D=BUDGET)
    drawing, axes = figures.panels(
        2, 2, height=5,
        title="A budget has a best split; its width grows like log n at a fixed temperature alone",
    )  # fmt: skip
    valley, errors, widths, heads = axes.flat
    excess = (fixed["surface"] / fixed["least"] - 1).clip(1e-4).to_dataframe("excess")
    figures.grid_map(
        valley, excess.reset_index(), "dense_width", "size", value="excess",
        norm=LogNorm(1e-4, 1), missing="$n_\\mathrm{eff}$ < 10",
    )  # fmt: skip
    figures.theory(valley, fixed["size"], fixed["optimum"], "white", lw=1.8)
    figures.percent_axis(
        drawing.colorbar(valley.collections[0], ax=valley, label="excess over best (%)").ax.yaxis
    )
    valley.set(ylabel="head width $d_k$", yticks=range(5, 21, 5), title="dark: the best widths")
    rung, divides = splits.rungs("fixed")[0], [w for w in theory["width"].values if BUDGET % w == 0]
    data = splits.batches.sel(family="smooth", budget=BUDGET, width=divides)
    lines = fixed["surface"].sel(size=sizes).to_dataframe("theory").dropna().reset_index()
    claim = claims["allocation", "error by both roads"]
    figures.curve(
        errors, figures.tidy(data.isel(rung=rung)),
        lines.rename(columns={"size": "n", "dense_width": "width"}).astype({"n": int}),
        "width", "MSE", hue="n", log="xy", margin=claim.margin, verdict=claim,
        labels={"title": "$n$"},
    )  # fmt: skip
    figures.ticks(errors.yaxis, (0.05, 0.1, 0.2, 0.5))
    figures.ticks(errors.xaxis, divides)
    errors.set_xticklabels([f"{width}\n{BUDGET // width}" for width in divides])
    errors.set(xlabel="head width $d_k$\nnumber of heads $H$", title=f"splits of $D$ = {BUDGET}")
    rows = [
        (name, n, D, *mean_and_error(vertex(splits, ("smooth", n, D), name)[0]))
        for name in REGIMES for n in sizes for D in budgets
    ]  # fmt: skip
    best = pd.DataFrame(rows, columns=["temperature", "size", "D", "simulation", "mcse"])
    lines = theory["optimum"].to_dataframe("theory").reset_index()
    for ax, x, at, id_, labels in (
        (widths, "size", f"D == {BUDGET}", "dk-log", "ends"),
        (heads, "D", f"size == {sizes[-2]}", "heads-linear", {"loc": "upper left"}),
    ):
        figures.curve(
            ax, best.query(at), lines.query(at), x, "best head width $d_k^*$", hue="temperature",
            log="x", labels=labels,
            verdict={k: claims[id_, v] for k, v in REGIMES.items() if (id_, v) in claims},
        )  # fmt: skip
    widths.set(title="straight if $d_k^*$ grows like log $n$", xlim=(50, 5e9))
    for ax in (valley, widths):
        figures.log_axes(ax, x=True)
        ax.set_xlabel("number of keys $n$")
    figures.ticks(heads.xaxis, 2.0 ** np.arange(4, 10))
    heads.set(xlabel="budget $D$", title="level if $H^*$ grows like $D$", ylim=(0, 8))
    figures.letters(axes.flat)
    return drawing
