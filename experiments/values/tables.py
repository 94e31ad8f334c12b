"""Table of the caption: the change from aligned to random heads at every point."""

from itertools import product

import numpy as np
import xarray as xr

from sims.judgement.wording import markdown_table, percent_range
from sims.study.panels import Panels
from sims.study.results import Results

from ..house.tables import median_in_words
from .points import NAMES, TEMPERATURES
from .statistic import falls


def panels(results: Results) -> xr.Dataset:
    """Relative changes of the error from aligned to random heads, by problem."""
    changes = -falls(results).mean(1)
    known = np.isfinite(changes).all((1, 2))
    return xr.Dataset({"change": (("problem", "stage", "temperature"), changes[known])})


def tables(panels: Panels) -> dict[str, str]:
    """The table, as Markdown."""
    changes = panels["change"]
    rows = []
    for (place, name), (at, label) in product(enumerate(NAMES), enumerate(TEMPERATURES)):
        values = changes[:, place, at]
        row = {
            "apart, κ": name,
            "temperature": label,
            "problems": str(len(changes)),
            "median change of the error (95 % interval)": median_in_words(values),
            "quartiles": percent_range(*np.quantile(values, (0.25, 0.75))),
        }
        rows.append(row)
    return {"changes": markdown_table(rows)}
