"""Errors of the splits, surfaces over n, d_k*(n) and H*(D)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse, mean_and_error
from sims.judgement import Verdict, optimal_set
from sims.study.results import Results

from .effects import BUDGET, Splits, growth, vertex

NAMES = {
    "fixed": "fixed temperature",
    "transformer": "Transformer's temperature",
    "tuned": "re-tuned bandwidth",
}
COLORS = dict(zip(NAMES, figures.PALETTE, strict=False))
SHAPES = dict(zip(NAMES, figures.MARKERS, strict=False))
SURFACES = (("fixed", "smooth", BUDGET), ("tuned", "smooth", BUDGET), ("fixed", "rough", 512))
"""Temperature, targets and budget of the surfaces drawn."""


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    splits = Splits(results)
    theory = splits.theory.sel(family="smooth")
    optimum = theory["optimum"].sel(dense_budget=BUDGET)
    fixed = theory["surface"].sel(temperature="fixed", dense_budget=BUDGET)
    early = round(float(optimum.sel(temperature="fixed").sel(dense_n=1e4, method="nearest")))
    late, n = fixed.sel(dense_n=1e8, method="nearest"), optimum["dense_n"].values
    flat = float(late.sel(dense_width=early) / late.min() - 1)
    quoted: dict[str, Any] = {"flat": flat, "sizes": splits.theory["n"].values.tolist()}
    grown = growth(splits)
    for name in NAMES:
        width = optimum.sel(temperature=name).values
        simulated, predicted = grown[name, "smooth", BUDGET]
        quoted |= {f"{name}_first": float(width[0]), f"{name}_last": float(width[-1])}
        quoted |= {f"{name}_simulated": float(simulated.mean()), f"{name}_grown": predicted}
    choices = [splits.choice(case, name)[:2] for name in NAMES for case in splits.cases()]
    inside = sum(bool(optimal_set(values, 0.95)[at]) for values, at in choices)
    efold = (quoted["fixed_last"] - quoted["fixed_first"]) / float(np.log(n[-1] / n[0]))
    return quoted | {"cases": len(choices), "inside": inside, "efold": efold}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    splits = Splits(results)
    drawing, axes = figures.panels(2, 3, height=5.2, width=figures.PAGE)
    draw_errors(axes[0, 0], splits)
    for ax, at in zip((axes[0, 1], axes[0, 2], axes[1, 0]), SURFACES, strict=True):
        image = draw_surface(ax, splits, *at)
    bar = drawing.colorbar(image, ax=axes[0, 2], ticks=[-5, -4, -3, -2, -1, 0])
    bar.ax.set_yticklabels(["0.001 %", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
    bar.set_label("excess over the best MSE (b–d)")
    draw_widths(axes[1, 1], splits)
    draw_heads(axes[1, 2], splits)
    figures.letters(axes.flat)
    return drawing


def draw_errors(ax: Axes, splits: Splits) -> None:
    """Error of every split at the fixed temperature."""
    sizes = splits.theory["n"].values.tolist()
    colors, markers = figures.PALETTE[3:], figures.MARKERS[3:]
    dense = splits.theory["surface"].sel(temperature="fixed", family="smooth", dense_budget=BUDGET)
    for n, color, marker in zip(sizes, colors, markers, strict=False):
        line = dense.sel(dense_n=n)
        figures.theory(ax, line["dense_width"], line, color)
        chosen = splits.candidates("fixed", BUDGET)
        values = splits.simulated(("smooth", n, BUDGET), chosen)
        figures.simulated(ax, [w for w, _ in chosen], values.mean(0), mcse(values), color, marker)
    figures.log_axes(ax, x=True, y=True, plain=True)
    widths = splits.theory["width"].values.tolist()
    ax.set_xticks(widths, [f"{w}\n{BUDGET // w}" for w in widths], fontsize=6)
    ax.set_xticks([], minor=True)
    ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1.0], ["0.05", "0.1", "0.2", "0.5", "1"])
    ax.set(xlabel="head width $d_k$\nnumber of heads $H = 24/d_k$", ylabel="MSE")
    figures.key(ax, [f"n = {n}" for n in sizes], colors, markers, loc="upper left")


def draw_surface(ax: Axes, splits: Splits, name: str, family: str, budget: int) -> ScalarMappable:
    """How much worse than the best every width is, over n."""
    theory = splits.theory.sel(temperature=name, family=family, dense_budget=budget)
    n, widths = theory["dense_n"].values, theory["dense_width"].values
    worse = (theory["surface"] / theory["least"] - 1).transpose("dense_width", "dense_n").values
    with np.errstate(invalid="ignore"):
        image = ax.pcolormesh(
            n, widths, np.log10(np.maximum(worse, 1e-5)), cmap="viridis_r", vmin=-5, vmax=0.5,
            shading="nearest", rasterized=True,
        )  # fmt: skip
    top = widths[-1] + 0.5
    beyond = np.where(np.isnan(worse).any(0), (~np.isnan(worse)).sum(0) + 0.5, top)
    if (beyond < top).any():
        ax.fill_between(
            n, beyond, top, step="mid", facecolor="none", edgecolor="0.7", hatch="////", lw=0
        )
        ax.text(1.7e2, widths[-1] - 1, "$n_{\\rm eff}$ < 10", va="top", fontsize=7,
                bbox={"color": "white", "pad": 1.5})  # fmt: skip
    figures.theory(ax, n, theory["optimum"], "white", lw=1.8)
    ax.set_yticks([1, 5, 10, 15, 20])
    figures.log_axes(ax, x=True)
    ax.set_xticks([1e2, 1e4, 1e6, 1e8])
    ax.set(xlabel="number of keys $n$", ylabel="head width $d_k$")
    ax.set_title(f"{NAMES[name]},\n{family} target, D = {budget}", fontsize=7)
    return image


def draw_widths(ax: Axes, splits: Splits) -> None:
    """Best width against n."""
    optimum = splits.theory["optimum"].sel(dense_budget=BUDGET)
    for name in NAMES:
        for family, dash in (("smooth", "-"), ("rough", (0, (4, 2)))):
            line = optimum.sel(temperature=name, family=family)
            figures.theory(ax, line["dense_n"], line, COLORS[name], linestyle=dash)
        for n in splits.theory["n"].values.tolist():
            value, error = mean_and_error(vertex(splits, ("smooth", n, BUDGET), name)[0])
            figures.simulated(ax, [n], [value], [error], COLORS[name], SHAPES[name])
    figures.log_axes(ax, x=True)
    ax.set_xticks([1e2, 1e4, 1e6, 1e8])
    ax.set(xlabel="number of keys $n$", ylabel="best head width $d_k^*$", ylim=(0, 19),
           yticks=[0, 5, 10, 15])  # fmt: skip
    draw_key(ax, *NAMES)


def draw_heads(ax: Axes, splits: Splits) -> None:
    """Best number of heads against D."""
    optimum = splits.theory["optimum"].sel(family="smooth")
    n = splits.theory["n"].values.tolist()[-2]
    for name in ("fixed", "tuned"):
        for size, dash in ((n, "-"), (1e6, (0, (1, 1)))):
            line = optimum.sel(temperature=name).sel(dense_n=size, method="nearest")
            figures.theory(ax, line["dense_budget"], line["dense_budget"] / line, COLORS[name],
                           linestyle=dash)  # fmt: skip
        for budget in splits.theory["budget"].values.tolist():
            width, error = mean_and_error(vertex(splits, ("smooth", n, budget), name)[0])
            figures.simulated(ax, [budget], [budget / width], [budget * error / width**2],
                              COLORS[name], SHAPES[name])  # fmt: skip
    D = optimum["dense_budget"].values
    figures.theory(ax, D, D, figures.GREY, lw=0.7)
    ax.annotate("$H = D$", (48, 48), xytext=(-4, 3), textcoords="offset points", ha="right",
                fontsize=7, color=figures.GREY)  # fmt: skip
    figures.log_axes(ax, x=True, y=True, plain=True)
    ax.set_xticks(D, ["" if d in (12, 24) else str(d) for d in D])
    ax.set_xticks([], minor=True)
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.set(xlabel="budget $D$", ylabel="best number of heads $H^*$", ylim=(1, 3000))
    draw_key(ax, "fixed", "tuned")


def draw_key(ax: Axes, *names: str) -> None:
    """The temperatures' names."""
    figures.key(
        ax, [NAMES[k] for k in names], [COLORS[k] for k in names], [SHAPES[k] for k in names],
        loc="upper left",
    )  # fmt: skip
