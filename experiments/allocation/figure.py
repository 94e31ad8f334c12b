"""Outcomes of regimes, and growth of d_k*, by decay of relevance and rule for the temperature."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import OUTCOME_INKS, outcome_bars
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.judgement.effects import Effects
from sims.judgement.outcomes import HOLDS, UNDECIDED
from sims.study.panels import Panels

from .statistic import FORMS

OUTCOMES = ("inner split wins", "within 1 %", "not known", "an end wins")
"""Outcomes of regimes as the legend names them."""
WINS, NEAR, UNKNOWN, LOSES = OUTCOMES
INKS = dict(zip(OUTCOMES, OUTCOME_INKS.values(), strict=True))
GROWTHS = dict(zip(FORMS, (*figures.PALETTE[:3], "0.72", "0.9"), strict=True))


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those that the answers count."""
    errs = "errs less than both ends, if relevance is exponential"
    title = answers["allocation"].sentence("An inner split of a budget", errs)
    drawing, (left, right) = figures.pairs(2, title=title, height=3.6)
    law = panels.parameters
    rows = shares(law, outcomes(panels.effects["allocation"]))
    outcome_bars(left, rows, INKS, "With a shared view, an end seldom wins")
    rows = shares(law, panels["form"])
    finding = "At the Transformer's temperature, $d_k^*$ hardly grows"
    outcome_bars(right, rows, GROWTHS, finding)
    return drawing


def outcomes(margins: Effects) -> np.ndarray:
    """One of :data:`OUTCOMES` for every regime, by margins less the tolerance."""
    level = margins.value >= -2 * conventions.TOLERANCES["order"]
    calls = [margins.call == HOLDS, margins.call == UNDECIDED, level]
    return np.select(calls, [WINS, UNKNOWN, NEAR], LOSES)


def shares(law: pd.DataFrame, value: np.ndarray) -> dict[str, Any]:
    """Shares of categories in the regimes of each decay and rule for the temperature."""
    kind = law["decay"] + ", " + law["temperature"]
    kind += kind.map(kind.value_counts()).map(" ({})".format)
    table = pd.crosstab(kind, value, normalize="index")
    return dict(zip(table.index, table.to_dict("records"), strict=True))
