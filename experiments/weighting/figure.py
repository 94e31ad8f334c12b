"""Gains by regime, and the error under estimated weights against the number of held-out pairs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import COST, EQUAL, gains, predicted_gain, regimes

RULES = {"ordered": "ordered", "non_negative": "non-negative", "optimal": "optimal (any sign)"}
LABELS = {
    "cluster": "4 of 6\nsimilar",
    "bandwidths": "unequal\nbandwidths",
    "widths": "unequal\nwidths",
    "softmax": "unequal,\nsoftmax",
}
"""Regime to its name on the axis, where that is not its own."""


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    cost, law = results.estimates[COST], results.prediction(COST)
    even = cost["error"].sel(rule="uniform").mean().item()
    best = cost["oracle"].sel(rule="optimal").mean().item()
    worse, insured = (
        cost["error"].sel(rule=rule, pairs=2 * law.attrs["heads"]).mean().item() / even
        for rule in ("optimal", "non_negative")
    )
    return {
        "possible": 1 - best / even,
        # Where the law's cost is what the best weights gain on these training sets.
        "break_even": round(law.attrs["heads"] + scale(results) / (even - best)),
        "worse": worse,
        "insured": insured,
    }


def scale(results: Results) -> float:
    """(σ² + R*)(H − 1), with R* the mean of the training sets' own."""
    law = results.prediction(COST)
    least = float(results.estimates[COST]["oracle"].sel(rule="optimal").mean())
    return float((law.attrs["noise_variance"] + least) * (law.attrs["heads"] - 1))


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    equal, unequal = claims["equal row sums"], claims["unequal heads"]
    places = {LABELS.get(regime, regime): name for regime, name in regimes(results).items()}
    alike = sum(regime in EQUAL for regime in regimes(results))
    rows = [
        (
            label,
            text,
            *mean_and_error(gains(results.estimates[name], rule)),
            predicted_gain(results.prediction(name, "exact"), rule),
        )
        for label, name in places.items()
        for rule, text in RULES.items()
    ]
    drawing, axes = figures.panels(
        1, 2, height=3, title="Weighing heads pays where they differ, and costs a regression"
    )
    left, right = axes[0]
    figures.curve(
        left,
        pd.DataFrame(rows, columns=["regime", "weights", "simulation", "mcse", "theory"]),
        None,
        "regime",
        "gain over uniform weights (%)",
        hue="weights",
        labels={"loc": "upper left", "title": "weights (dashes: theory)"},
        verdict={label: equal if k < alike else unequal for k, label in enumerate(places)},
    )
    left.set(title="the best weights", ylim=(-0.05, 0.68))
    figures.percent_axis(left.yaxis)
    figures.band(left, (-np.inf, equal.margin), over=(-0.5, alike - 0.5))
    figures.band(left, (unequal.margin, np.inf), over=(alike - 0.5, len(places) - 0.5))
    cost, law = results.estimates[COST], results.prediction(COST)
    even = cost["error"].sel(rule="uniform").mean().item()
    beyond = (cost["error"] - cost["oracle"].sel(rule="optimal", drop=True)) / even
    # Ordered weights are not drawn: they are nearly the non-negative ones.
    rule = pd.CategoricalDtype(list(RULES))
    m = np.geomspace(2 * law.attrs["heads"], law["pairs"][-1])
    theory = scale(results) / (m - law.attrs["heads"]) / even
    claim = claims["cost of estimation"]
    figures.curve(
        right,
        figures.tidy(beyond.sel(rule=["non_negative", "optimal"])).astype({"rule": rule}),
        pd.DataFrame({"rule": "optimal", "pairs": m, "theory": theory}),
        "pairs",
        "MSE beyond the best weights'\n(% of uniform weights')",
        hue="rule",
        log="xy",
        margin=claim.margin,
        verdict=claim,
        labels=None,
    )
    figures.reference(right, float(beyond.sel(rule="uniform").mean()), "uniform weights", at=1)
    figures.ticks(right.yaxis, (0.01, 0.1, 1), percent=True)
    right.set(xlabel="held-out pairs $m$ behind the weights", title="estimated weights")
    figures.letters(axes.flat)
    return drawing
