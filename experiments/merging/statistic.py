"""Effect of merging on the error of heads: one number per problem."""

from dataclasses import replace

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife
from sims.judgement import conventions
from sims.judgement.effects import Effects, outcome, share, sized_outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

SHOWN = ("stride", "alike", "selectivity", "kernel", "gates", "keys", "width", "lengthscale")
CONDITIONS = ("noise_sd", "correlated", "redraws")
ALL, TUNED, SAME, THINNED = range(4)
"""Places of heads over all keys, of merged heads at their best temperature and at that of all keys,
and of heads over every s-th key, which need the same cache."""


def falls(results: Results, later: int, earlier: int) -> np.ndarray:
    """By what share one kind of heads errs less than another, batches (N, B)."""
    mse = np.moveaxis(stack_batches(results, "mse"), 1, 0)
    return 1 - jackknife({"": mse}, lambda means: means[""][..., later] / means[""][..., earlier]).T


def effects(results: Results) -> dict[str, Effects]:
    """Errors within the tolerance, and the order of errors."""
    room = conventions.TOLERANCES["methods"]
    tuned = falls(results, TUNED, ALL)
    size = -tuned.mean(1)
    kept = {}
    for limit in conventions.SWEPT:
        kept[f"competitive, {limit:.0%}"] = share(limit + tuned)
    return {
        **kept,
        "competitive": share(room + tuned, size=size),
        "at equal cache": sized_outcome(falls(results, TUNED, THINNED)),
        "competitive at the same temperature": share(room + falls(results, SAME, ALL)),
        "dearer": replace(outcome(falls(results, ALL, TUNED)), size=size),
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, one row per problem."""
    return drawn_values(results)[[*SHOWN, *CONDITIONS]]
