"""Fitted slopes against smoothness, the error of averaged heads over its rate, and both roads."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    COMMON,
    ENSEMBLE,
    FAR,
    HEADS,
    SATURATION,
    Widths,
    best,
    compare,
    exponent,
    slope_of,
    slopes,
    widths,
)

NAMES: dict[float, str] = {1: "$H$ = 1", **{h: f"$H$ = {h}" for h in HEADS}, np.inf: "$H$ = ∞"}
BETA, WIDTH = 1.0, 2
"""Smoothness of the targets of averaged heads, and the heads' width."""
REGIMES = {2.0: "β = 2", 3.0: "β = 3, saturation"}
"""Smoothness to its claim's regime, where that is not β < 2."""
RANGES = ((COMMON, "averaging, exponent at common sizes"), (FAR, "averaging, exponent"))


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    joint = results.prediction(ENSEMBLE)
    one, many = slope_of(joint["mse_of_heads"].values, joint["size"].values)
    return {"predicted_gain": float(one - many)}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims, data = {verdict.regime: verdict for verdict in verdicts}, widths(results)
    drawing, axes = figures.mosaic(
        ("ab", "ac"),
        height=4.6,
        title="Averaging heads improves the constant; the exponent only on the way there",
    )
    slope, level, gap = (axes[letter] for letter in "abc")
    draw_slopes(slope, data, claims)
    draw_averaged(level, data[1], results.estimates[ENSEMBLE]["mse_of_heads"], claims)
    claim = claims["theory against simulation"]
    # Gaps of simulation to theory, as in all figures: the effects' the other way.
    rows = [
        (e.points[0], e.at["n_eff"], 1 / (1 + e.value), e.error / (1 + e.value) ** 2, 1.0)
        for e in compare(results)
    ]
    figures.gap(
        gap,
        pd.DataFrame(rows, columns=["problem", "keys", "simulation", "mcse", "theory"]),
        "keys",
        hue="problem",
        margin=claim.margin,
        over=(50, np.inf),
        verdict=claim,
        labels={"loc": "lower right", "ncols": 2},
    )
    gap.set(xlabel=r"effective keys $n_\mathrm{eff}$", title="at the simulated sizes")
    figures.letters([slope, level, gap])
    return drawing


def draw_slopes(ax: Axes, data: Widths, claims: Mapping[str, Verdict]) -> None:
    """Slopes of one head's error fitted to theory, and the law."""
    fine, margin = np.linspace(0.4, 3.1, 200), claims["β = 2"].margin
    points, lines = [], []
    for width, law in data.items():
        name, fitted = f"$d_k$ = {width}", xr.DataArray(slopes(law, FAR), dims=("batch", "place"))
        points.append(figures.tidy(fitted, heads=name, β=law["beta"].values))
        rate = exponent(np.minimum(fine, SATURATION), width)
        lines.append(pd.DataFrame({"heads": name, "β": fine, "theory": rate}))
        ax.fill_between(fine, rate - margin, rate + margin, color=figures.BAND, zorder=0)
        figures.theory(ax, fine, exponent(fine, width), ls=":", lw=0.8, zorder=1)
    betas = points[0]["β"]
    own = {f"{beta:g}": claims[REGIMES.get(beta, "β < 2")] for beta in betas}
    figures.curve(
        ax,
        pd.concat(points),
        pd.concat(lines),
        "β",
        "slope of log MSE on log $n$",
        hue="heads",
        verdict=own,
    )
    ax.set_xticks(betas, [figures.signed(beta, own, "\n") for beta in own])
    ax.set(xlabel="smoothness β", title="one head: $-2β/(2β + d_k)$, β ≤ 2", ylim=(-0.9, -0.1))
    figures.note(ax, f"grey: margin ± {margin:g}")


def draw_averaged(
    ax: Axes, law: xr.Dataset, simulated: xr.DataArray, claims: Mapping[str, Verdict]
) -> None:
    """Error of averaged heads times n to the rate of one, which is 1 for one head in the end."""
    n, rate = np.geomspace(1e2, 1e16, 113), exponent(BETA, WIDTH)
    mean = law.sel(beta=[BETA]).isel(group=slice(int(law.attrs["shared_groups"]))).mean("group")
    values = np.stack([best(mean, n, heads, WIDTH - 1)[0][0] for heads in NAMES]) / n**rate
    laws = xr.DataArray(values / values[0, -1], [("heads", list(NAMES.values())), ("size", n)])
    lines = laws.to_dataframe("theory").reset_index()
    points = figures.tidy(simulated * simulated["size"] ** -rate / values[0, -1])
    figures.curve(
        ax,
        points.replace({"heads": NAMES}),
        lines[lines["theory"] > 0.2],
        "size",
        "MSE × $n^{2β/(2β+d_k)}$",
        hue="heads",
        log="xy",
        verdict={NAMES[np.inf]: claims["averaging, exponent of many heads"]},
    )
    figures.log_axes(ax, x=True)
    figures.ticks(ax.yaxis, (0.2, 0.5, 1))
    ax.set(xlabel="number of keys $n$", title="averaged heads: $d_k$ = 2, β = 1", ylim=(0.18, 1.6))
    for sizes, regime in RANGES:
        ax.axvspan(sizes[0], sizes[-1], color=figures.BAND, zorder=0, lw=0)
        ax.text(sizes[0], 1.33, figures.signed(" level?", {" level?": claims[regime]}))
