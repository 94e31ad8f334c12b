"""Noise correlation against the angle, all rules on one axis, and the difference below."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import angles, correlations, differences, effects, group, rule, width


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    families = effects(results)

    def largest(name: str, **where: float | str) -> float:
        chosen = [
            abs(e.value) for e in families[name] if all(e.at[k] == v for k, v in where.items())
        ]
        return max(chosen)

    theory = [results.prediction(name) for name in results.predictions]
    return {
        "gap": largest("gap to the series", group="many"),
        "apart": largest("difference from the gaussian curve", group="many"),
        "product": largest("gap of the product, theory", compact=1.0, angle=20.0),
        "error": max(float(data["law_error"].isel(angle=slice(1, None)).max()) for data in theory),
    }


def curves(results: Results, names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulated correlations and the series' lines of these points, by rule."""
    points, lines = [], []
    for name in names:
        values, own = correlations(results, name), rule(results, name)
        points += [
            (own, a, *mean_and_error(values[:, i])) for i, a in enumerate(angles(results, name))
        ]
        data = results.prediction(name)
        lines += [
            (own, a, y) for a, y in zip(data["line_angle"].values, data["line"].values, strict=True)
        ]
    return (
        pd.DataFrame(points, columns=["rule", "angle", "simulation", "mcse"]),
        pd.DataFrame(lines, columns=["rule", "angle", "theory"]),
    )


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    columns = [("many", 1), ("many", 2), ("flat", 1)]
    regimes = ("compact kernels, d_k = 1", "compact kernels, d_k = 2", "softmax")
    drawing, axes = figures.panels(
        2,
        3,
        height=4.4,
        title="At one effective number of keys sparse attention has the gaussian angle law, nearly",
    )
    for (kind, size), regime, (top, below) in zip(columns, regimes, axes.T, strict=True):
        names = [
            name
            for name in results.points
            if group(results, name) == kind and width(results, name) == size
        ]
        points, lines = curves(results, names)
        figures.curve(
            top,
            points,
            lines,
            "angle",
            "noise correlation",
            hue="rule",
            labels={} if size == 1 else None,
        )
        share = 1 / float(results.prediction(names[0])["aligned"])
        top.set(ylim=(0, 1.08), title=f"$d_k$ = {size}, $n_\\mathrm{{eff}}/n$ = {share:.1f}")
        figures.reference(top, share, r"$n_\mathrm{eff}/n$")
        apart = [
            (rule(results, name), e.at["angle"], e.value, e.error)
            for name in names
            if rule(results, name) != "gaussian"
            for e in differences(results, name)
        ]
        base = lines[lines["rule"] == "gaussian"].set_index("angle")["theory"]
        less = lines.assign(theory=lines["theory"] - base.loc[lines["angle"]].to_numpy())
        order = list(dict.fromkeys(lines["rule"]))
        frame = pd.DataFrame(apart, columns=["rule", "angle", "simulation", "mcse"])
        frame, less = (
            f.assign(rule=pd.Categorical(f["rule"], order)) for f in (frame, less)
        )  # so that a rule keeps its colour
        verdict = claims["angle-one-curve", regime]
        figures.curve(
            below,
            frame,
            less,
            "angle",
            "less the gaussian curve",
            hue="rule",
            labels=None,
            verdict=verdict,
        )
        limit = 1.1 * max(0.02, *np.abs(frame["simulation"]) + 2 * frame["mcse"])
        below.set_ylim(-limit, limit)
        figures.band(below, verdict.margin, percent=False)
        for ax in (top, below):
            ax.set(xlabel="angle between heads (degrees)", xlim=(-3, 93))
            figures.ticks(ax.xaxis, range(0, 91, 30))
    figures.letters(axes.flat)
    return drawing
