"""What statistics and figures read of a run: batches and drawn values of its problems. No JAX."""

import numpy as np
import pandas as pd

from sims.study.results import Results

LAW = "law"
"""Name of the point with theory's rows for all problems, along ``number``."""


def stack_batches(results: Results, name: str) -> np.ndarray:
    """Batches of a simulated variable, (problem, batch, …), in the order of the problems."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def drawn_values(results: Results, *without: str) -> pd.DataFrame:
    """Scalars of each problem: drawn fields and numbers by theory, a row per problem.

    Args:
        results: of an experiment whose theory has all problems in the point ``law``.
        without: names of the columns that are left out.
    """
    columns = results.predictions[LAW].drop_vars(without).data_vars.items()
    return pd.DataFrame({str(k): v.values for k, v in columns if v.dims == ("number",)})
