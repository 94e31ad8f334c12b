"""Stacks with memory against plain ones, and heads of a second layer: one number per problem."""

import numpy as np
import pandas as pd

from sims.base.estimates import falls
from sims.judgement.effects import Effects, gap, outcome, sized_outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

from .problems import DRAWN

PLAIN, MEMORY = 0, 1
"""Arms of a problem."""


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name: outcomes, which hold where the claim does, and the gap of theory.

    Tuned heads have the best bandwidth of every second batch, and are judged on the others.
    """
    law = results.law
    residual = stack_batches(results, "log_residual")
    cosine = stack_batches(results, "cosine")
    mse = stack_batches(results, "mse")
    drawn = mse[..., DRAWN]
    best = mse[:, ::2].mean(1).argmin(-1)[:, None, :, None]
    tuned = np.take_along_axis(mse[:, 1::2], best, -1)[..., 0]
    more_keys = -falls(stack_batches(results, "keys"), MEMORY, PLAIN)
    return {
        "residual": outcome(residual[..., MEMORY] - residual[..., PLAIN]),
        "cosine": outcome(cosine[..., PLAIN] - cosine[..., MEMORY]),
        "keys": outcome(more_keys, size=more_keys.mean(1)),
        "error": sized_outcome(falls(drawn, MEMORY, PLAIN)),
        "error, tuned": sized_outcome(falls(tuned, MEMORY, PLAIN)),
        "roads": gap(drawn[..., MEMORY], law["mse"][:, MEMORY], law["in_range"]),
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, and n_eff/n of plain attention in the first layer and of the plain head."""
    table = drawn_values(results, "phases", "queries", "in_range")
    return table.assign(
        selectivity=stack_batches(results, "first_keys").mean(1),
        head_selectivity=stack_batches(results, "head_keys")[..., PLAIN].mean(1),
    )
