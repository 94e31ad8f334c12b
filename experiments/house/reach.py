"""Simulation beside exact theory, how far first order reaches, and what heads cover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from sims import figures
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap
from sims.judgement.summaries import quartiles_in_words
from sims.judgement.wording import significant

from .sets import BY_QUERY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAPS = ("mse", "bias", "variance", "head_variance")
"""Terms whose simulation is compared with exact theory; squared bias as a share of the error."""
BLOCKS = 16
"""Batches of simulation at fixed queries: rounds, of which there are several times as many."""
FAMILIES = ("isotropic", "decaying")
KERNELS = ("gaussian", "softmax")
BINS = [2.0**power for power in range(13)]
"""Ends of the bins of effective keys."""
SHOWN = (0.03, 3000.0)
"""Percent that the panel shows; what is beyond lies at its edge."""
LARGEST = 1e6
"""Gap at which one of first order is cut, since it has no bound."""
FEWEST = 5
"""Problems or queries from which on a median is drawn, or a correlation computed."""
QUARTILES = (0.25, 0.5, 0.75)


def gaps(estimates: Mapping[str, xr.Dataset], law: xr.Dataset) -> dict[str, Effects]:
    """Gaps of simulation from exact theory at the same queries, and of first order from it.

    NaN of problems that were not taken apart, and where first order has no number.
    """
    made = {}
    for name in GAPS:
        blocks = np.full((len(estimates), BLOCKS), np.nan)
        for row, (_, terms) in zip(blocks, sorted(estimates.items()), strict=True):
            if f"fixed_{name}" in terms:
                row[:] = terms[f"fixed_{name}"].values.reshape(BLOCKS, -1).mean(1)
        made[name] = gap(
            blocks,
            law[f"theory_{name}"].values,
            scale=law["theory_mse"].values if name == "bias" else None,
            stated=law[f"theory_{name}_error"].values / 2,  # half of a 95 % interval
        )
    exact = law["theory_mse"].values
    first = law["query_first"].mean("query", skipna=False).values
    error = law["theory_mse_error"].values / (2 * exact)
    return made | {"first order": Effects(np.minimum(first / exact - 1, LARGEST), error, "gap")}


def first_order_panel(ax: Axes, shown: xr.Dataset, drawn: pd.DataFrame) -> None:
    """Distance of first order from exact theory in the error, over effective keys.

    A point is a query of a problem; lines are medians of bins of n_eff.
    """
    frame = shown[[*BY_QUERY]].to_dataframe().reset_index().dropna()
    for name in ("family", "kernel"):
        frame[name] = drawn[name].to_numpy()[frame["problem"]]
    frame["off"] = 100 * np.abs(frame["query_first"] / frame["query_exact"] - 1)
    margin = 100 * conventions.TOLERANCES["methods"]
    figures.dotted(ax, y=margin)
    groups = [(family, kernel) for family in FAMILIES for kernel in KERNELS]
    for place, (family, kernel) in enumerate(groups):
        rows = frame[(frame["family"] == family) & (frame["kernel"] == kernel)]
        x, off = rows["query_attended"], rows["off"].clip(*SHOWN)
        figures.dots(ax, x, off, place, "", ms=1.2, alpha=0.5)
        by_bin = pd.DataFrame({"x": x, "off": off}).groupby(pd.cut(x, BINS), observed=True)
        medians = by_bin.median()[by_bin.size() >= FEWEST]
        look: dict[str, Any] = {
            "color": figures.PALETTE[place],
            "marker": figures.MARKERS[place],
        }
        label = f"{family} keys, {kernel}: {crossing(medians, margin)}"
        ax.plot(medians["x"], medians["off"], label=label, **look)
    figures.log_axes(ax, x=True, y=True)
    ax.set(
        ylim=SHOWN,
        xlabel=r"effective keys at a query, $n_\mathrm{eff}$",
        ylabel="first order from exact theory (%)",
        title=f"First order is within {margin:.0f} % only where heads attend to many keys",
    )
    title = rf"median at {margin:.0f} % where $n_\mathrm{{eff}}$ ="
    ax.legend(loc="upper right", title=title)


def crossing(medians: pd.DataFrame, margin: float) -> str:
    """Effective keys from which on medians over bins are within a margin, in words."""
    outside = np.flatnonzero(medians["off"] > margin)
    if not len(outside) or outside[-1] == len(medians) - 1:
        return "–"
    ends = np.log(medians.iloc[outside[-1] : outside[-1] + 2])
    place = np.interp(-np.log(margin), -ends["off"], ends["x"])
    return significant(float(np.exp(place)), 2)


def coverage_table(drawn: pd.DataFrame, errors: np.ndarray) -> list[dict[str, str]]:
    """What nearly aligned and random heads cover, by kernel and number of maps, Gaussian keys.

    Args:
        drawn: what the problems are.
        errors: of both as drawn at their own best temperatures, (problem, end).
    """
    first, last = errors.T
    names = ("kernel", "apart", "shifted", "coverage", "coverage_aligned", "unseen")
    frame = drawn[[*names, "unseen_aligned"]].copy()
    frame["share"] = frame["unseen"] / last
    frame["change"] = last / first - 1
    frame["unseen_change"] = (frame["unseen"] - frame["unseen_aligned"]) / first
    frame = frame[frame["shifted"] == 0].dropna()
    lines = []
    for (kernel, apart), rows in frame.groupby(["kernel", "apart"]):
        line = {"heads": f"{kernel}, {'two maps' if apart else 'one map'}"}
        line["problems"] = str(len(rows))
        titles = {
            "coverage, nearly aligned": "coverage_aligned",
            "coverage, random": "coverage",
            "unseen / error, random": "share",
            "change of the error": "change",
            "change of the unseen part": "unseen_change",
        }
        for title, name in titles.items():
            line[title] = quartiles_in_words(tuple(np.quantile(rows[name], QUARTILES)))
        enough = len(rows) >= FEWEST
        line["r of the two changes"] = (
            significant(float(rows["change"].corr(rows["unseen_change"]))) if enough else "–"
        )
        lines.append(line)
    return lines
