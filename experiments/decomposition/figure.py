"""Both theories against simulation, a line a term, the worst point of the grid over the others."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import TERMS, effective_keys, effects

LABELS = "the sum against drawn labels"
LEAST_KEYS = 50
"""Effective keys (harmonic mean) from which on first-order theory is held to its claims."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    families = effects(results)
    first, exact = (
        max(abs(e.value) for term in TERMS for e in families[f"{order}, {term}"])
        for order in ("first order", "exact")
    )
    keys = [effective_keys(results, point) for point in results.points]
    gains = [
        float(
            np.var(data["raw_ensemble_variance"], ddof=1)
            / np.var(data["ensemble_variance"], ddof=1)
        )
        for data in results.estimates.values()
    ]
    return {
        "fewest_keys_at_a_query": min(
            float(results.prediction(point)["n_eff"].min()) for point in results.points
        ),
        "gain_low": min(gains),
        "gain_high": max(gains),
        "worst_gap": first,
        "worst_exact": exact,
        "fewest_keys": min(keys),
        "most_keys": max(keys),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    families = effects(results)
    drawing, axes = figures.panels(
        1, 2, height=2.6, sharey=True, title="Both theories agree with simulation, term by term"
    )
    for ax, order, prefix, title in (
        (axes[0, 0], "first order", "", rf"first-order theory, $n_\mathrm{{eff}}$ ≥ {LEAST_KEYS}"),
        (axes[0, 1], "exact", "exact, ", "exact theory, $d_k$ ≤ 2"),
    ):
        lines = {label: families[f"{order}, {label}"] for label in TERMS}
        if not prefix:
            lines[LABELS] = families["drawn labels"]
        frame = pd.DataFrame(
            [
                (label, effect.value, effect.error, effect.bound)
                for label, family in lines.items()
                for effect in family
                if float(effect.at.get("n_eff", np.inf)) >= LEAST_KEYS
            ],
            columns=["label", "value", "error", "bound"],
        )
        own = {label: by_regime[prefix + label] for label in lines}
        # Both panels have the same lines, though exact theory says nothing of drawn labels.
        frame["label"] = pd.Categorical(frame["label"], [*TERMS, LABELS])
        figures.forest(
            ax, frame, verdict=own, numbers=True,
            margin=next(iter(own.values())).margin,
        )  # fmt: skip
        ax.set_title(title)
    figures.letters(axes.flat)
    return drawing
