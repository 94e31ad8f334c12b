"""Variance of pooled agents against their number beside the law, and its gap to the law."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import gaps, measured, squares, systems

REGIMES = {"heads": "Nadaraya–Watson heads", "trees": "random-forest trees"}
"""Kind of agents to its claim's regime, where that has another name."""


def numbers(results: Results) -> dict[str, float | list[float]]:
    """Numbers that the caption quotes."""
    every = {name: results.estimates[measured(name)] for name in systems(results)}
    rho = {
        k: float(data["covariance"].mean() / data["variance"].mean()) for k, data in every.items()
    }
    fading = next(name for name, kind in systems(results).items() if "evaporating" in kind)
    pairs = [*results.settings["mechanisms"], results.settings["evaporation"]]
    alike = {pair["name"]: [rho[pair["plain"]], rho[pair["changed"]]] for pair in pairs}
    trees = [results.estimates[name] for name, kind in systems(results).items() if kind == "trees"]
    return {
        "bagging": alike["trees, bagging"],
        "features": alike["trees, one random feature"],
        "three": alike["trees, three random features"],
        "evaporation": alike["evaporation"],
        "alone": [float(data["error"].sel(agents=1).mean()) for data in trees],
        "least": min(rho.values()),
        "most": max(rho.values()),
        "agents": int(results.estimates[fading]["agents"][-1]),
        "evaporated": gaps(results, fading)[-1].value,
    }


OMITTED = ("softmax heads at 30°", "bagged trees, three features", "ants, strong trails")
"""Systems that are judged and not drawn: there are as many colours as other systems."""


def pooled(results: Results, name: str) -> pd.DataFrame:
    """A system's pooled variances over the variance of one, and their gaps to the law."""
    data, moments = results.estimates[name], results.estimates[measured(name)]
    values = data["pooled"].values / float(moments["variance"].mean())
    found = [(e.value, e.error) for e in gaps(results, name)]
    gap, error = np.transpose([(0.0, 0.0), *found])
    return pd.DataFrame(
        {
            "system": name,
            "M": data["agents"],
            "kept": values.mean(0),
            "kept_mcse": mcse(values),
            "simulation": 1 + gap,
            "mcse": error,
            "theory": 1.0,
        }
    )


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    kinds = {name: kind for name, kind in systems(results).items() if name not in OMITTED}
    own = {name: claims[REGIMES.get(kind, kind)] for name, kind in kinds.items()}
    fading = next(name for name, kind in kinds.items() if "evaporating" in kind)
    points = pd.concat([pooled(results, name) for name in kinds])
    most = np.log2(points["M"].max())
    fine, laws = np.logspace(0, most, 60, base=2), []
    for name in kinds:
        moments = results.estimates[measured(name)].mean("batch")
        rho = float(moments["covariance"] / moments["variance"])
        kept = rho + (1 - rho) * squares(results, name, fine)
        laws.append(pd.DataFrame({"system": name, "M": fine, "kept": kept}))
    drawing, axes = figures.panels(
        1,
        2,
        height=3.2,
        title="One law for heads, trees and ants, as long as they are exchangeable",
    )
    left, right = axes[0]
    figures.curve(
        left,
        points,
        pd.concat(laws),
        "M",
        "kept",
        hue="system",
        log="xy",
        verdict=own,
    )
    left.set(title="the law $ρ + (1 − ρ)\\,Σα^2$", ylabel="variance of the pool / variance of one")
    figures.ticks(left.yaxis, (0.1, 0.2, 0.5, 1))
    # Side by side, or seven systems would lie on one another; for M = 1 there is nothing to show.
    aside = 1.06 ** (points["system"].map(list(kinds).index) - (len(kinds) - 1) / 2)
    right.set_yscale("symlog", linthresh=0.1, linscale=0.6)
    figures.gap(
        right,
        points.assign(M=points["M"] * aside)[points["M"] > 1],
        "M",
        hue="system",
        margin=own[fading].margin,
        labels=None,
        verdict=own,
    )
    right.set(ylim=(-0.2, 8), title="against the law", ylabel="simulation / law − 1 (%)")
    figures.ticks(right.yaxis, (-0.1, -0.05, 0, 0.05, 0.1, 1, 5), percent=True)
    for ax, first in ((left, 0), (right, 1)):
        figures.ticks(ax.xaxis, 2.0 ** np.arange(first, most + 1))
        ax.set_xlabel("number of agents $M$")
    figures.letters(axes.flat)
    return drawing
