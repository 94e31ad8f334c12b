"""Ensemble variance against the number of heads, at fixed angles, and with everything drawn."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import grid, populations, predicted, ratio

NAMES = {0: "aligned, 0°", 90: "orthogonal, 90°"}


def ratios(results: Results) -> pd.DataFrame:
    """The ratio at every point: simulated, with its MCSE, and by first-order theory."""
    rows = []
    for (angle, count), point in sorted(grid(results).items()):
        simulated, theory = ratio(results, point), predicted(results, point)
        name = NAMES.get(int(angle), f"{angle:g}°")
        rows.append((name, angle, count, simulated.value, simulated.error, theory))
    columns = ["heads", "angle", "count", "simulation", "mcse", "theory"]
    return pd.DataFrame(rows, columns=columns)


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    table = ratios(results)
    counts = sorted(set(table["count"]))
    drawing, axes = figures.panels(
        1, 2, height=3.1, title="More heads help only as far as they differ"
    )
    left, right = axes[0]
    figures.curve(
        left,
        table,
        None,
        "count",
        "ensemble variance / head variance",
        hue="heads",
        log="xy",
        verdict=by_regime["wider angle at fixed H"],
    )
    figures.ticks(left.yaxis, (0.1, 0.2, 0.5, 1))
    left.set_ylim(0.9 / counts[-1], 1.15)
    figures.reference(left, 1 / np.array(counts), "independent heads, 1/$H$", counts, at=0.8)
    left.set_title("wider angle, less variance")
    rows = [
        (kernel, angle, value.value, value.error, predicted(results, point))
        for kernel, at in populations(results).items()
        for (angle, count), point in sorted(at.items())
        if count == max(h for _, h in at)
        for value in (ratio(results, point),)
    ]
    drawn = pd.DataFrame(rows, columns=["kernel", "angle", "simulation", "mcse", "theory"])
    figures.curve(
        right,
        drawn,
        None,
        "angle",
        "",
        hue="kernel",
        labels={"loc": "lower left"},
        verdict={k: by_regime[f"wider angle, everything drawn, {k}"] for k in populations(results)},
    )
    right.set(title="everything drawn", xlabel="principal angle θ (degrees)", ylim=(0, 1.08))
    figures.ticks(right.xaxis, range(0, 91, 30))
    figures.ticks(left.xaxis, counts)
    left.set_xlabel("number of heads $H$")
    figures.letters(axes.flat)
    return drawing
