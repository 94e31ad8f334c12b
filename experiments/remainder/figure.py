"""The relative gap times n, which stays level if the gap falls like 1/n."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import TERMS, controlled, gaps


def numbers(results: Results) -> dict[str, float]:
    """How many times fewer replicates the controls need: the least and the most over all points."""
    name, count = TERMS["noise variance"]
    gains = [
        (mcse(d[name].sel(control=0).values) / mcse(controlled(d, f"{name}_remainder", count))) ** 2
        for d in results.estimates.values()
    ]
    return {"gain_low": float(np.min(gains)), "gain_high": float(np.max(gains))}


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        1, 2, height=2.7, sharey=True, title="What first-order theory leaves out falls like 1/n"
    )
    for ax, kernel in zip(axes[0], results.points, strict=True):
        points, lines = [], []
        for index, term in enumerate(TERMS):
            # Gaps of simulation to first order, as in all figures: the effects' sign the other way.
            rows = [(e.x, -e.value, e.error) for e in gaps(results, kernel, term)]
            n, value, error = np.transpose(np.array(rows, float))
            value, error = n * value, n * error
            level = np.average(value, weights=error**-2)
            aside = 1.05 ** (2 * index - 1)
            points.append(pd.DataFrame({"term": term, "n": n * aside, "gap": value, "mcse": error}))
            lines.append(pd.DataFrame({"term": term, "n": n, "gap": level}))
        own = {term: claims[f"{kernel}, {term}"] for term in TERMS}
        margin = own["noise variance"].margin
        figures.curve(
            ax,
            pd.concat(points),
            pd.concat(lines),
            "n",
            "gap",
            hue="term",
            log="x",
            verdict=own,
            labels={"loc": "upper left"},
        )
        middle = np.exp(np.log(n).mean())
        fan = [lines[0]["gap"] * (n / middle) ** side for side in (margin, -margin)]
        ax.fill_between(n, *fan, color=figures.BAND, zorder=0)
        figures.ticks(ax.xaxis, n)
        ax.set(xlabel="number of keys $n$", ylabel="", title=f"{kernel} kernel")
    axes[0, 0].set_ylabel("$n$ (simulation / first order − 1)")
    axes[0, 0].set_ylim(top=0)
    figures.note(axes[0, 0], f"grey: exponents within the margin, −1 ± {margin:g}")
    figures.letters(axes.flat)
    return drawing
