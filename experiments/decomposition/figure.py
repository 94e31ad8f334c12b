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
    drawing, axes = figures.panels(
        1, 3, height=2.6, sharey=True, title="Both theories agree with simulation, term by term"
    )
    for ax, family, regime, title in (
        (axes[0, 0], "first order, {}", "{}", "first order, fixed problems"),
        (axes[0, 1], "drawn, first order, {}", "{}, everything drawn", "first order, all drawn"),
        (axes[0, 2], "drawn, exact, {}", "exact, {}", "exact, all drawn, few keys"),
    ):
        own = {label: by_regime[regime.format(label)] for label in TERMS}
        lines = {label: families[family.format(label)] for label in TERMS}
        if ax is axes[0, 0]:
            own[LABELS], lines[LABELS] = by_regime[LABELS], families["drawn labels"]
        exact = ax is axes[0, 2]
        rows = [
            (label, effect.value, effect.error, effect.bound)
            for label, members in lines.items()
            for effect in members
            if (float(effect.at["first_order_gap"]) >= LEAST_GAP * own[label].margin if exact
                else float(effect.at.get("n_eff", np.inf)) >= LEAST_KEYS)
            and (label != MSE or float(effect.at["variance_share"]) >= LEAST_SHARE)
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=["label", "value", "error", "bound"])
        # The panels have the same lines, though only one says anything of drawn labels.
        frame["label"] = pd.Categorical(frame["label"], [*TERMS, LABELS])
        figures.forest(ax, frame, verdict=own, numbers=True, margin=own[MSE].margin)
        ax.set_title(title)
    figures.letters(axes.flat)
    return drawing
