"""Both theories against simulation, a line a term, the worst point of the grid on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from sims.results import Results

from sims import figures
from sims.judgement import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMS = {
    "squared bias": "squared_bias",
    "signal variance": "signal_variance",
    "noise variance": "noise_variance",
    "signal covariance": "cross_signal_covariance",
    "noise covariance": "cross_noise_covariance",
    "mean squared error": "mse",
}
LABELS = "the sum against drawn labels"
LEAST_KEYS = 50
"""Effective keys (harmonic mean) below which first-order theory is not held to its claims."""


def effects(results: Results, exact: bool) -> pd.DataFrame:
    """Gaps simulation/theory − 1 by term and point, with MCSE and bound on theory's own error."""
    prefix = "exact_" if exact else ""
    rows = []
    for name, at in results.points.items():
        simulated, predicted = results.simulation[name], results.theory[name]
        if f"{prefix}mse" not in predicted:
            continue
        if not exact and 1 / float((1 / predicted["n_eff"]).mean()) < LEAST_KEYS:
            continue
        for label, term in TERMS.items():
            value = float(predicted[f"{prefix}{term}"])
            # Signal terms may be small shares of a head's variance, which is then the unit.
            share = exact and "signal" in term
            scale = float(predicted["exact_variance"]) if share else abs(value)
            gap, error = figures.relative_gap(
                float(simulated[term].mean()), float(simulated[f"{term}_mcse"]), value, scale
            )
            bound = float(predicted[f"{prefix}{term}_error"]) / scale if exact else 0.0
            kernel = at.get("heads.kernel", "gaussian")
            rows.append((label, kernel, float(gap), float(error), bound))
    return pd.DataFrame(rows, columns=["label", "kernel", "value", "error", "bound"])


def drawn_labels(results: Results) -> pd.DataFrame:
    """The error with drawn labels against the sum of its terms, paired over batches."""
    rows = []
    for name, data in results.simulation.items():
        kernel = results.points[name].get("heads.kernel", "gaussian")
        difference, scale = (data["raw_mse"] - data["mse"]).values, float(data["mse"].mean())
        error = difference.std(ddof=1) / len(difference) ** 0.5
        rows.append((LABELS, kernel, difference.mean() / scale, error / scale, 0.0))
    return pd.DataFrame(rows, columns=["label", "kernel", "value", "error", "bound"])


def figure(results: Results, verdicts: list[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    drawing, axes = figures.panels(1, 2, width=figures.PAGE, height=2.4, sharey=True)
    first = pd.concat([effects(results, exact=False), drawn_labels(results)])
    for ax, frame, prefix, title in (
        (axes[0, 0], first, "", rf"first-order theory, $n_\mathrm{{eff}}$ ≥ {LEAST_KEYS}"),
        (axes[0, 1], effects(results, exact=True), "exact, ", "exact theory, $d_k$ ≤ 2"),
    ):
        own = {label: by_regime[prefix + label] for label in frame["label"].unique()}
        # Both panels have the same lines, though exact theory says nothing of drawn labels.
        lines = pd.Categorical(frame["label"], [*TERMS, LABELS])
        figures.forest(
            ax, frame.assign(label=lines), bound="bound", verdict=own, numbers=True,
            margin=next(iter(own.values())).margin,
        )  # fmt: skip
        ax.set_title(title)
    figures.letters(axes.flat)
    return drawing
