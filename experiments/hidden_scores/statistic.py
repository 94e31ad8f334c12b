"""Stacks with memory against plain ones: one number per problem."""

import pandas as pd

from sims.base.estimates import falls
from sims.judgement.effects import Effects, outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

PLAIN, MEMORY = 0, 1
"""Arms of a problem."""


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name: outcomes, which hold where the claim does."""
    residual = stack_batches(results, "log_residual")
    cosine = stack_batches(results, "cosine")
    more_keys = -falls(stack_batches(results, "keys"), MEMORY, PLAIN)
    return {
        "residual": outcome(residual[..., MEMORY] - residual[..., PLAIN]),
        "cosine": outcome(cosine[..., PLAIN] - cosine[..., MEMORY]),
        "keys": outcome(more_keys, size=more_keys.mean(1)),
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, and n_eff/n of plain attention in the first layer."""
    first_keys = stack_batches(results, "first_keys").mean(1)
    return drawn_values(results).assign(selectivity=first_keys)
