"""Batches of all problems of a run, as statistics and figures read them. No JAX."""

import numpy as np

from sims.study.results import Results


def stack_batches(results: Results, name: str) -> np.ndarray:
    """Batches of a simulated variable, (problem, batch, …), in the order of the problems."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])
