"""Table of the caption: the change from aligned to random heads at every point."""

from itertools import product

import numpy as np
import xarray as xr

from sims.judgement.wording import markdown_table, percent
from sims.study.panels import Panels
from sims.study.results import Results

from .points import NAMES, TEMPERATURES
from .statistic import falls

RESAMPLES = 1000
"""Bootstrap samples of problems."""


def panels(results: Results) -> xr.Dataset:
    """Relative changes of the error from aligned to random heads, by problem."""
    changes = -falls(results).mean(1)
    known = np.isfinite(changes).all((1, 2))
    return xr.Dataset({"change": (("problem", "stage", "temperature"), changes[known])})


def tables(panels: Panels) -> dict[str, str]:
    """The table, as Markdown."""
    changes = panels["change"]
    draws = np.random.default_rng(0).integers(len(changes), size=(RESAMPLES, len(changes)))
    medians = np.median(changes[draws], axis=1)
    rows = []
    for (place, name), (at, label) in product(enumerate(NAMES), enumerate(TEMPERATURES)):
        low, middle, high = np.quantile(changes[:, place, at], (0.25, 0.5, 0.75))
        ends = np.quantile(medians[:, place, at], (0.025, 0.975))
        row = {
            "apart, κ": name,
            "temperature": label,
            "problems": str(len(changes)),
            "median change of the error": percent(middle),
            "95 % interval": f"{percent(ends[0])} to {percent(ends[1])}",
            "quartiles": f"{percent(low)} to {percent(high)}",
        }
        rows.append(row)
    return {"changes": markdown_table(rows)}
