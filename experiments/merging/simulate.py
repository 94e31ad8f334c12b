"""Errors of heads over all keys and over slots, at temperatures that other draws have chosen."""

from collections.abc import Mapping

import numpy as np

from sims.montecarlo import Draw

from .heads import errors_of
from .problems import Problem

HEADS = ("all keys", "merged", "merged, same temperature", "merged, drawn temperature")
TERMS = ("mse", "variance")


def errors(draw: Draw, replicates: int, problem: Problem) -> Mapping[str, np.ndarray]:
    """Mean squared error and variance of the heads' average, (HEADS,)."""
    all_keys, merged = problem.tuned
    slots = [merged, all_keys, problem.bandwidth]
    terms = errors_of(problem, draw.key, replicates, [all_keys], slots)
    return {name: terms[name] for name in TERMS}
