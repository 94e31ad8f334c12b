"""Splits of a budget in four panels: regimes by both roads, best splits by n, growth, exponents."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.base.estimates import mcse
from sims.judgement.answers import Answer
from sims.study.results import Results

from .grids import GIVEN, SIZES, WIDTHS, splits
from .statistic import FORMS, exponents, growth, split_errors

DECAYS, RULES = ("exponential", "polynomial", "even"), ("fixed", "Transformer's", "tuned")
INKS = (*figures.PALETTE[:3], "0.65", "0.9")


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure: of the simulated regimes both roads, of all others theory."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6.2,
        title="Budgets have a best split; d_k* ~ log n mostly where relevance decays exponentially",
    )
    law = results.predictions["law"]
    _regimes(axes["a"], results, law)
    _inside(axes["b"], law)
    _growth(axes["c"], law)
    _exponents(axes["d"], law)
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _regimes(ax: Axes, results: Results, law: xr.Dataset) -> None:
    """Errors over that of theory's best inner split; points: simulation ± 2 standard errors."""
    for number, name in enumerate(sorted(results.estimates)):
        regime = law.isel(number=number)
        ink = INKS[DECAYS.index(str(regime["decay"].values))]
        budget, inner = int(regime["budget"]), int(regime["inner"])
        error = regime["error"].values / regime["error"].values[splits(budget)[inner] - 1]
        ax.plot(WIDTHS, error, color=ink, ls=":", lw=0.8)
        ax.plot(WIDTHS, np.where(regime["covered"], error, np.nan), color=ink)
        simulated = split_errors(results.estimates[name], budget)
        over = 1 + (simulated - simulated[inner]) / simulated[inner].mean()
        ax.errorbar(splits(budget), over.mean(1), 2 * mcse(over.T), color=ink, fmt="o", ms=3, lw=1)
    for ink, decay in zip(INKS, DECAYS, strict=False):
        ax.plot([], [], color=ink, label=f"{decay} relevance")
    ax.plot([], [], "o", color=figures.GREY, ms=3, label="simulation")
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (1, 2, 4, 8, 16, 32, 64))
    figures.ticks(ax.yaxis, (0.8, 1, 1.2, 1.5, 2, 3))
    ax.set(
        ylim=(0.8, 3),
        xlabel="head dimension d_k",
        ylabel="error over that of the best inner split",
        title="Simulation follows theory",
    )
    ax.legend()


def _inside(ax: Axes, law: xr.Dataset) -> None:
    """Of shared views the share with a best split inside, by n, and what is not known of it."""
    for ink, rule in zip(INKS, RULES, strict=False):
        rows = (law["decay"].values != "even") & (law["temperature"].values == rule)
        if not rows.any():
            continue
        known, inside = law["known"].values[rows], law["excess"].values[rows] > 0
        low, sure = (known & inside).mean(0), known.mean(0)
        share = np.divide(low, sure, out=np.full(len(low), np.nan), where=sure > 0)
        ax.fill_between(SIZES, 100 * low, 100 * (low + 1 - sure), color=ink, alpha=0.15, lw=0)
        ax.plot(SIZES, 100 * share, color=ink, label=rule)
    figures.log_axes(ax, x=True)
    ax.set(
        ylim=(0, 103),
        xlabel="number of keys n",
        ylabel="regimes with the best split inside (%)",
        title="The best split is inside until one head wins",
    )
    ax.legend(title="temperature", loc="lower left")


def _growth(ax: Axes, law: xr.Dataset) -> None:
    """What d_k* grows like, in shares of the regimes of a decay and a rule."""
    frame = growth(law["by_keys"].values).assign(
        decay=law["decay"].values, rule=law["temperature"].values
    )
    groups = list(product(DECAYS[:2], RULES))
    shares = frame.groupby(["decay", "rule"])["form"].value_counts(normalize=True)
    table = 100 * shares.unstack(fill_value=0).reindex(groups, columns=FORMS, fill_value=0)
    table.index = [", ".join(group) for group in groups]
    table.plot.barh(stacked=True, ax=ax, color=list(INKS), width=0.8)
    ax.invert_yaxis()
    ax.set(
        xlim=(0, 100),
        xlabel="regimes (%)",
        ylabel="",
        title="Exponential relevance: log n fits best",
    )
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.18), ncols=3)


def _exponents(ax: Axes, law: xr.Dataset) -> None:
    """Exponents of H* in D: shared views by decay, even relevance by what stays as D grows."""
    groups = [(decay, decay, 0) for decay in DECAYS[:2]]
    groups += [(f"even, {condition}", "even", place) for place, condition in enumerate(GIVEN)]
    rows = []
    for label, decay, place in groups:
        slopes = exponents(law["by_budget"].values[law["decay"].values == decay, place])
        known = slopes[np.isfinite(slopes)]
        rows += [(f"{label} ({len(known)})", slope) for slope in known]
    frame = pd.DataFrame(rows, columns=["group", "slope"])
    ax.axvspan(0.9, 1.1, color=figures.BAND)
    sns.stripplot(frame, x="slope", y="group", ax=ax, color=INKS[0], size=2.5, alpha=0.5)
    ax.set(xlim=(-1, 3), xlabel="exponent of H* in D", ylabel="", title="H* grows like D, mostly")
