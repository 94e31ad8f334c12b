"""What each rule loses as the context grows and its learned temperature stays."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error, ratio
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import MATCHED, best, effects, kept, lengths
from .learning import RULES

TITLES = {"smooth": "smooth targets, β = 2", "rough": "rough targets, β = 1"}


def numbers(results: Results) -> dict[str, object]:
    """Numbers that the caption quotes: factors at the longest context, and gaps to theory."""
    last = len(lengths(results)) - 1
    factors = {
        stream: {
            rule: float(
                ratio(
                    kept(results, f"{stream}, {rule}")[:, last], best(results, stream)[:, last]
                ).mean()
            )
            for rule in rules
        }
        for stream, rules in results.settings["best"].items()
    }
    return {
        "seeds": min(results.batches(point) for point in results.points),
        "factors": factors,
        "matched": max(own[MATCHED[stream]] for stream, own in factors.items()) - 1,
        "gap": max(abs(effect.value) for effect in effects(results)["gap to theory"]),
        "spread": max(
            float(data["log_temperature"].std(ddof=1)) for data in results.estimates.values()
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        1,
        len(results.settings["best"]),
        height=2.9,
        sharey=True,
        title="A learned temperature lasts where the rule's power is the target's smoothness",
    )
    for ax, (stream, rules) in zip(axes.flat, results.settings["best"].items(), strict=True):
        verdict = claims[f"learned temperature, {stream} targets, {MATCHED[stream]}"]
        found, theory = [], []
        for rule in rules:
            point = f"{stream}, {rule}"
            for i, length in enumerate(lengths(results)):
                values = ratio(kept(results, point)[:, i], best(results, stream)[:, i])
                found.append((rule, length, *mean_and_error(values)))
            if point in results.predictions:
                mean = results.prediction(point)["each_mse"].values.mean()
                theory.append((rule, mean / best(results, stream)[:, -1].mean()))
        points = pd.DataFrame(found, columns=["rule", "length", "simulation", "mcse"])
        points["rule"] = pd.Categorical(points["rule"], RULES)
        figures.curve(
            ax,
            points,
            points.assign(theory=points["simulation"]),
            "length",
            "error over the best there is",
            hue="rule",
            log="xy",
            labels={"loc": "upper left"} if stream == "smooth" else None,
            verdict=verdict,
        )
        for rule, value in theory:
            color = figures.PALETTE[RULES.index(rule)]
            ax.hlines(value, 70, 110, color=color, lw=1.6)
        ax.set_ylim(0.9, 15)
        figures.ticks(ax.yaxis, (1, 2, 5, 10))
        figures.band(ax, (-np.inf, 1 + verdict.margin), words=False)
        figures.note(ax, f"grey: margin, below {1 + verdict.margin:g}")
        figures.note(ax, "dashes at the right: theory")
        ax.set(xlabel="context over that of learning", title=TITLES[stream])
        figures.ticks(ax.xaxis, [int(length) for length in lengths(results)])
    figures.letters(axes.flat)
    return drawing
