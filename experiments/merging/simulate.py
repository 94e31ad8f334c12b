"""Errors of heads over all keys, slots or some keys, at temperatures that other draws chose."""

import pandas as pd

from sims.montecarlo import Draw, HostBatches

from .heads import errors_of
from .problems import Problem

HEADS = (
    "all keys",
    "merged",
    "merged, same temperature",
    "every s-th key",
)


def sampler(problem: Problem) -> HostBatches:
    """Errors of heads over all keys, of merged ones, and over every s-th key."""
    coords = {"heads": list(HEADS)}
    return HostBatches(errors, constants=problem, dims={"mse": ("heads",)}, coords=coords)


def errors(draw: Draw, replicates: int, problem: Problem) -> dict[str, pd.Series]:
    """Mean squared error of the heads' average, (HEADS,)."""
    all_keys, merged, every = problem.tuned
    bandwidths = [all_keys], [merged, all_keys], [every]
    return {"mse": errors_of(problem, draw.key, replicates, bandwidths)["mse"]}
