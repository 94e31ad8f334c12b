"""Errors of heads over all keys, slots or some keys, at temperatures that other draws chose."""

import pandas as pd

from sims.montecarlo import Draw, HostBatches

from .heads import errors_of
from .problems import Problem

HEADS = (
    "all keys",
    "merged",
    "merged, same temperature",
    "merged, drawn temperature",
    "every s-th key",
)


def sampler(problem: Problem) -> HostBatches:
    """Errors and variances of heads over all keys, of merged ones, and over every s-th key."""
    dims = {"mse": ("heads",), "variance": ("heads",)}
    return HostBatches(errors, constants=problem, dims=dims, coords={"heads": list(HEADS)})


def errors(draw: Draw, replicates: int, problem: Problem) -> dict[str, pd.Series]:
    """Mean squared error and variance of the heads' average, (HEADS,)."""
    all_keys, merged, every = problem.tuned
    slots = [merged, all_keys, problem.bandwidth]
    terms = errors_of(problem, draw.key, replicates, ([all_keys], slots, [every]))
    return {"mse": terms["mse"], "variance": terms["variance"]}
