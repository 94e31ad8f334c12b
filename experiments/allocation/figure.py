"""Splits of a budget: three regimes, margins by both methods, outcomes, and growth of d_k*."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.base.estimates import mcse, ratio
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.judgement.effects import Effects, calls
from sims.judgement.outcomes import FAILS, HOLDS, LEVEL, UNDECIDED
from sims.judgement.summaries import Share
from sims.judgement.wording import percent
from sims.study.results import Results

from .grids import WIDTHS, splits
from .statistic import CENSORED, FORMS, effects, growth, simulated_errors

DECAYS = ("exponential", "polynomial", "even")
RULES = ("fixed", "Transformer's", "tuned")
INKS = (*figures.PALETTE[:3], "0.65", "0.9")
OUTCOMES = {
    HOLDS: "inner split wins",
    LEVEL: "within 1 %",
    FAILS: "an end wins",
    UNDECIDED: "not known",
}
OUTCOME_INKS = (figures.PALETTE[0], "0.65", figures.PALETTE[1], "0.9")


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; outcomes and margins are those that the answers count."""
    drawing, axes = figures.mosaic(
        ("xyz", "bc", "dd"), height=7.4, heights=(0.8, 1.1, 0.9), title=title_of(answers)
    )
    law, both = results.predictions["law"], effects(results)
    draw_regimes([axes[letter] for letter in "xyz"], results, law)
    draw_margins(axes["b"], both)
    called = pd.Categorical(calls(both["allocation"], house.TOLERANCES["order"]), [*OUTCOMES])
    outcome = pd.Series(called.rename_categories(OUTCOMES))
    draw_shares(axes["c"], law, outcome, OUTCOME_INKS, DECAYS)
    in_view = outcome[law["decay"].values != "even"].value_counts(normalize=True)
    inner, end = (percent(in_view[OUTCOMES[call]]) for call in (HOLDS, FAILS))
    axes["c"].set_title(f"Shared views: inner split {inner}, an end {end}")
    form = pd.Series(pd.Categorical(growth(law["by_keys"].values)["form"], FORMS))
    draw_shares(axes["d"], law, form, INKS, DECAYS[:2])
    decided = form[(form != CENSORED) & (law["decay"].values != "even")]
    most = decided.groupby(law["temperature"].values[decided.index]).agg(lambda f: f.mode()[0])
    common = ", ".join(f"{form} ({rule})" for rule, form in most.items())
    axes["d"].set_title(f"Most common growth of $d_k^*$: {common}")
    figures.letters(axes[letter] for letter in "xbcd")
    return drawing


def title_of(answers: Sequence[Answer]) -> str:
    """What an inner split changes in the median regime with a shared view."""
    result = next(answer.result for answer in answers if answer.id == "allocation")
    if not isinstance(result, Share) or result.size is None:
        return "The best inner split of a budget against the better end"
    change = result.size[1]
    verb = "lowers" if change < 0 else "raises"
    size = percent(abs(change))
    return f"With a shared view, an inner split {verb} the error by {size} in the median regime"


def draw_regimes(axes: Sequence[Axes], results: Results, law: xr.Dataset) -> None:
    """Errors over that of theory's best inner split, in the first regime of each decay."""
    every = simulated_errors(results)
    decays = law["decay"].values[: len(every)].tolist()
    for ax, decay in zip(axes, DECAYS, strict=True):
        ax.set(xlabel="head dimension $d_k$", title=f"{decay} relevance")
        figures.log_axes(ax, x=True)
        figures.ticks(ax.xaxis, (1, 4, 16, 64))
        if decay not in decays:
            continue
        number = decays.index(decay)
        regime, errors = law.isel(number=number), every[number]
        widths, inner = splits(int(regime["budget"])), int(regime["inner"])
        theory = regime["error"] / regime["error"][widths[inner] - 1]
        ax.plot(WIDTHS, theory, color=figures.GREY, ls=":", lw=0.8)
        ax.plot(WIDTHS, theory.where(regime["covered"]), color=figures.GREY)
        ratios = ratio(errors, errors[:, [inner]])
        mean = ratios.mean(0)
        ax.errorbar(widths, mean, 2 * mcse(ratios), fmt="o", ms=3, lw=1, color=INKS[0])
        ax.set_ylim(0.95 * mean.min(), min(1.05 * mean.max(), 2))
    axes[0].set(ylabel="error / that of the inner split")


def draw_margins(ax: Axes, both: dict[str, Effects]) -> None:
    """Simulated margins over theory's, a point a regime."""
    simulated, theory = both["simulated"], both["allocation"]
    count = len(simulated.value)
    known = np.isfinite(theory.error[:count, 0])
    x, y = 100 * theory.value[:count][known, 0], 100 * simulated.value[known, 0]
    bars = 200 * simulated.error[known, 0]
    ax.axline((0, 0), slope=1, color=figures.GREY, lw=0.8)
    ax.errorbar(x, y, bars, fmt="o", ms=3, lw=0.8, color=INKS[0])
    ax.set(
        xlabel="margin of the inner split by theory (%)",
        ylabel="by simulation (%)",
        title=f"Simulation follows theory ({known.sum()} regimes)",
    )


def draw_shares(
    ax: Axes, law: xr.Dataset, value: pd.Series, inks: Sequence[str], decays: Sequence[str]
) -> None:
    """Shares of the categories in the regimes of each decay and rule for the temperature."""
    groups = list(product(decays, RULES))
    keys = [pd.Series(law[name].values) for name in ("decay", "temperature")]
    names = value.cat.categories
    counts = pd.crosstab(keys, value).reindex(groups, columns=names, fill_value=0)
    totals = counts.sum(axis=1)
    shares = 100 * counts.div(totals.clip(1), axis=0)
    shares.index = [f"{', '.join(group)} ({n})" for group, n in zip(groups, totals, strict=True)]
    shares.plot.barh(stacked=True, ax=ax, color=list(inks), width=0.8)
    ax.invert_yaxis()
    ax.set(xlim=(0, 100), xlabel="regimes (%)", ylabel="")
    ax.legend(loc="upper center", bbox_to_anchor=(0.3, -0.2), ncols=len(names))
