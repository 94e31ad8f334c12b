"""Stacks with memory against plain ones, and heads of a second layer: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

PLAIN, MEMORY = 0, 1
"""Arms of a problem."""
EARLY, LATE = 8, 20
"""Layers between whose steps the second difference of log ρ is taken."""
SPAN = 8
"""Last layers over which the growth of the log-odds is taken."""


def simulated(results: Results, name: str) -> np.ndarray:
    """Batches (problem, batch, …, arm) of a variable."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def second_differences(residual: np.ndarray) -> np.ndarray:
    """Of log ρ (…, layer): its mean between the steps into layers EARLY and LATE."""
    steps = np.diff(residual, axis=-1)
    return np.asarray((steps[..., LATE] - steps[..., EARLY]) / (LATE - EARLY))


def effects(results: Results) -> Mapping[str, Effects]:
    """Effects by name, positive where the claim holds."""
    law = results.predictions["law"]
    residual, odds, keys, mse = (
        simulated(results, name) for name in ("log_residual", "log_odds", "keys", "mse")
    )
    row = np.arange(len(mse))

    def after(values: np.ndarray, depth: str) -> np.ndarray:
        """Batches (problem, batch, arm) after as many layers as drawn."""
        return values[row, :, law[depth].values[row] - 1]

    def saved(values: np.ndarray) -> np.ndarray:
        """Pseudo-values (problem, batch) of the share by which memory lowers a mean."""
        return np.stack(
            [
                jackknife({"": v}, lambda m: 1 - m[""][..., MEMORY] / m[""][..., PLAIN])
                for v in values
            ]
        )

    rho, omega = after(residual, "depth"), after(odds, "deep")
    theory, known = law["mse"].values, law["in_range"].values.astype(bool)
    growth = (odds[:, :, -1, MEMORY] - odds[:, :, -1 - SPAN, MEMORY]) / SPAN
    return {
        "residual": of_batches(rho[..., MEMORY] - rho[..., PLAIN]),
        "spread": of_batches(omega[..., PLAIN] - omega[..., MEMORY]),
        "keys": of_batches(-saved(after(keys, "depth"))),
        "second difference": gap(
            second_differences(residual[..., MEMORY]), law["second_difference"].values
        ),
        "growth": gap(growth, law["rate"].values),
        "error": of_batches(
            saved(mse), predicted=1 - theory[:, MEMORY] / theory[:, PLAIN], valid=known
        ),
        "roads": gap(mse[..., MEMORY], theory[:, MEMORY], known),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem."""
    law = results.predictions["law"].drop_vars(["phases", "queries", "second_difference", "rate"])
    columns = {k: v.values for k, v in law.data_vars.items() if v.dims == ("number",)}
    return pd.DataFrame(columns).drop(columns="in_range")
