"""Pools by theory: heads to first order, ants whose trails last by Pólya's urn; trees have none."""

import numpy as np
import xarray as xr

from sims.theory import in_range, predict

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """``error`` (pool) of a problem, and what was drawn.

    ``predicted``: where theory says something in its range.
    """
    if problem["kind"] == "heads":
        terms = [predict(*case) for case in problem.heads]
        error = [float(dataset["mse"]) for dataset in terms]
        known = all(map(in_range, terms))
    else:
        error = ants(problem)
        known = True
    return xr.Dataset(
        {
            "error": ("pool", error),
            **problem.drawn,
            "mechanism": problem.mechanism,
            "noise_sd": problem.noise_sd,
            "predicted": known and np.isfinite(error[0]),
        }
    )


def ants(problem: Problem) -> list[float]:
    """Errors of the first two pools of ants: ``c + (v − c)/M`` for readings of unit variance.

    Two ants are on one of K patches with probability ``c = (1 + τ)/(1 + Kτ)`` if patches begin with
    pheromone τ and nothing evaporates: choices are exchangeable (de Finetti). NaN for others.
    """
    if problem["kind"] != "ants" or problem["evaporates"]:
        return [np.nan, np.nan]
    errors = []
    for start, _ in problem.colonies:
        shared = (1 + start) / (1 + problem["patches"] * start)
        errors.append(shared + (1 + problem["reading_sd"] ** 2 - shared) / problem["agents"])
    return errors
