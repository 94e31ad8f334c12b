"""Both theories against simulation, a line a term, the worst point of the grid over the others."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import TERMS, effective_keys, effects, fixed_points, populations

LABELS = "the sum against drawn labels"
MSE = "mean squared error"
LEAST_KEYS, LEAST_SHARE = 50, 0.5
"""Effective keys from which on first-order theory is held to its claims, and the share of variance
from which on the mean squared error is."""
FIXED = "first order, {}"
GROUPS = {
    "first order, fixed problems": (FIXED, "{}"),
    "first order, all drawn": ("drawn, first order, {}", "{}, everything drawn"),
    "exact theory, all drawn, few keys": ("drawn, exact, {}", "exact, {}"),
}
"""Groups of lines to what their families and the regimes of their claims are called."""
LEAST_GAP = 5
"""Margins by which first order has to be off where exact theory is held to its claims."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    fixed, drawn = fixed_points(results), populations(results)
    keys = [effective_keys(results, point) for point in fixed]
    data = [results.estimates[point] for point in fixed]
    gains = [
        float(np.var(d["raw_ensemble_variance"], ddof=1) / np.var(d["ensemble_variance"], ddof=1))
        for d in data
    ]
    few = [effective_keys(results, point) for point in drawn if "exact" in results.orders(point)]
    return {
        "fixed": len(fixed),
        "populations": len(drawn),
        "problems": min(results.batches(point) for point in drawn),
        "fewest_keys_at_a_query": min(
            float(results.prediction(point)["n_eff"].min()) for point in fixed
        ),
        "gain_low": min(gains),
        "gain_high": max(gains),
        "fewest_keys": min(keys),
        "most_keys": max(keys),
        "least_few": min(few),
        "most_few": max(few),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    families = effects(results)
    rows: list[tuple[str, str, float, float, float]] = []
    own: dict[tuple[str, str], Verdict] = {}
    for group, (family, regime) in GROUPS.items():
        lines = {label: (families[family.format(label)], regime.format(label)) for label in TERMS}
        if family == FIXED:
            lines[LABELS] = families["drawn labels"], LABELS
        for label, (members, claim) in lines.items():
            own[group, label] = by_regime[claim]
            least_gap = LEAST_GAP * by_regime[claim].margin
            rows += [
                (group, label, effect.value, effect.error, effect.bound)
                for effect in members
                if (
                    float(effect.at["first_order_gap"]) >= least_gap
                    if "exact" in family
                    else float(effect.at.get("n_eff", np.inf)) >= LEAST_KEYS
                )
                and (label != MSE or float(effect.at["variance_share"]) >= LEAST_SHARE)
            ]
    drawing, axes = figures.panels(
        height=4.7, title="Both theories agree with simulation, term by term"
    )
    figures.forest(
        axes[0, 0],
        pd.DataFrame(rows, columns=["group", "label", "value", "error", "bound"]),
        verdict=own,
        numbers=True,
        margin={line: claim.margin for line, claim in own.items()},
    )
    return drawing
