"""Stacks with memory against plain ones, and heads of a second layer: one number a problem."""

from collections.abc import Mapping

import pandas as pd

from sims.base.estimates import ratio
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, outcome
from sims.study.batches import stack_batches
from sims.study.results import Results

PLAIN, MEMORY = 0, 1
"""Arms of a problem."""
SEEDS = ("phases", "queries")


def effects(results: Results) -> Mapping[str, Effects]:
    """Effects by name: outcomes, which hold where the claim does, and the gap of theory."""
    law = results.predictions["law"]
    names = ("log_residual", "cosine", "keys", "mse")
    residual, cosine, keys, mse = (stack_batches(results, name) for name in names)
    more_keys = ratio(keys[..., MEMORY], keys[..., PLAIN], axis=1) - 1
    more_error = ratio(mse[..., MEMORY], mse[..., PLAIN], axis=1) - 1
    return {
        "residual": outcome(residual[..., MEMORY] - residual[..., PLAIN]),
        "cosine": outcome(cosine[..., PLAIN] - cosine[..., MEMORY]),
        "keys": outcome(more_keys, size=more_keys.mean(1)),
        "error": outcome(-more_error, size=more_error.mean(1)),
        "roads": gap(
            mse[..., MEMORY], law["mse"].values[:, MEMORY], law["in_range"].values.astype(bool)
        ),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, and n_eff/n of plain attention in the first layer and of the plain head.

    A row a problem.
    """
    law = results.predictions["law"].drop_vars([*SEEDS, "in_range"])
    columns = {str(k): v.values for k, v in law.data_vars.items() if v.dims == ("number",)}
    columns["selectivity"] = stack_batches(results, "first_keys").mean(1)
    columns["head_selectivity"] = stack_batches(results, "head_keys")[..., PLAIN].mean(1)
    return pd.DataFrame(columns)
