"""Splits of a budget: three regimes, margins by both methods, outcomes, and growth of d_k*."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import OUTCOME_INKS, outcome_bars
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.judgement.effects import Effects
from sims.judgement.outcomes import HOLDS, UNDECIDED
from sims.judgement.summaries import Share
from sims.judgement.wording import percent
from sims.study.panels import Panels

from .grids import WIDTHS, splits
from .statistic import CENSORED, FORMS

DECAYS = ("exponential", "polynomial", "even")
RULES = ("fixed", "Transformer's", "tuned")
GROWTHS = dict(zip(FORMS, (*figures.PALETTE[:3], "0.72", "0.9"), strict=True))
OUTCOMES = ("inner split wins", "within 1 %", "not known", "an end wins")
"""Outcomes of regimes as the legend names them."""
WINS, NEAR, UNKNOWN, LOSES = OUTCOMES
INKS = dict(zip(OUTCOMES, OUTCOME_INKS.values(), strict=True))


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes and margins are those that the answers count."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"), height=4.9, heights=(1, 1.6), title=title_of(answers)
    )
    law = panels.parameters
    draw_regimes(axes["a"], panels)
    draw_margins(axes["b"], panels.effects)
    called = pd.Series(outcomes(panels.effects["allocation"]))
    draw_shares(axes["c"], law, called, INKS)
    in_view = called[law["decay"] != "even"]
    inner, end = (percent(float((in_view == name).mean())) for name in (WINS, LOSES))
    axes["c"].set_title(f"Shared views: inner split {inner}, an end {end}")
    form = pd.Series(panels["form"])
    draw_shares(axes["d"], law, form, GROWTHS)
    decided = form[(form != CENSORED) & (law["decay"] != "even")]
    most = decided.groupby(law["temperature"][decided.index]).agg(lambda f: f.mode()[0])
    common = ", ".join(f"{form} ({rule})" for rule, form in most.items())
    axes["d"].set_title(f"$d_k^*$ mostly grows by: {common}")
    return drawing


def outcomes(margins: Effects) -> np.ndarray:
    """One of :data:`OUTCOMES` for every regime, by margins less the tolerance."""
    level = margins.value >= -2 * conventions.TOLERANCES["order"]
    calls = [margins.call == HOLDS, margins.call == UNDECIDED, level]
    return np.select(calls, [WINS, UNKNOWN, NEAR], LOSES)


def title_of(answers: Answers) -> str:
    """What an inner split changes in the median regime of the first question."""
    result = answers["allocation"].result
    if not isinstance(result, Share) or result.size is None:
        return "The best inner split of a budget against the better end"
    change = result.size[1]
    verb = "lowers" if change < 0 else "raises"
    size = percent(abs(change))
    return f"Exponential relevance: an inner split {verb} the error by {size} in the median regime"


def draw_regimes(ax: Axes, panels: Panels) -> None:
    """Errors over that of theory's best inner split, in the first regime of each decay."""
    decays = panels.parameters["decay"][: panels.arrays.sizes["regime"]].tolist()
    inner_wins = []
    for place, decay in enumerate(DECAYS):
        if decay not in decays:
            continue
        number = decays.index(decay)
        regime = panels.arrays.isel(regime=number)
        widths = splits(int(panels.parameters["budget"][number]))
        theory = regime["theory"]
        ink = figures.PALETTE[place]
        ax.plot(WIDTHS, theory, color=ink, ls=":", lw=0.7)
        ax.plot(WIDTHS, theory.where(regime["covered"]), color=ink, lw=0.7)
        mean = regime["simulated"].values[: len(widths)]
        error = regime["simulated_error"].values[: len(widths)]
        marker = figures.MARKERS[place]
        ax.errorbar(widths, mean, 2 * error, fmt=marker, color=ink, label=decay)
        if min(mean[0], mean[-1]) > 1:
            inner_wins.append(decay)
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (1, 4, 16, 64))
    ax.plot([], [], color=figures.GREY, lw=0.7, label="theory")
    ax.plot([], [], color=figures.GREY, lw=0.7, ls=":", label="out of its range")
    ax.legend(title="relevance", loc="upper right")
    ax.set(
        ylim=(0.94, 1.5),
        xlabel="head dimension $d_k$",
        ylabel="error / that of the inner split",
        title=f"Inner split best: {', '.join(inner_wins) or 'none'}",
    )


def draw_margins(ax: Axes, both: Mapping[str, Effects]) -> None:
    """Simulated margins over theory's, a point a regime."""
    simulated, theory = both["simulated"], both["allocation"]
    count = len(simulated.value)
    known = np.isfinite(theory.error[:count])
    x, y = (
        100 * (both.value[:count][known] + conventions.TOLERANCES["order"])
        for both in (theory, simulated)
    )
    figures.simulated(ax, x, y, 100 * simulated.error[known], figures.PALETTE[0], label="regime")
    figures.diagonal(ax, *ax.get_xlim(), "equal")
    ax.legend(loc="upper left")
    ax.set(
        xlabel="margin by theory (%)",
        ylabel="margin by simulation (%)",
        title=f"Simulation follows theory in {known.sum()} regimes",
    )


def draw_shares(ax: Axes, law: pd.DataFrame, value: pd.Series, inks: Mapping[str, str]) -> None:
    """Shares of categories in the regimes of each decay and rule for the temperature."""
    rows = {}
    for decay, rule in product(DECAYS, RULES):
        chosen = value[(law["decay"] == decay) & (law["temperature"] == rule)]
        shares = chosen.value_counts(normalize=True).reindex([*inks], fill_value=0.0)
        rows[f"{decay}, {rule} ({len(chosen)})"] = dict(zip(inks, shares.tolist(), strict=True))
    outcome_bars(ax, rows, inks, "regimes")
