"""Scores on scales by theory: errors of levels and ranks, definite forms, and mixtures."""

import numpy as np
import xarray as xr

from sims.base.arrays import fill_up
from sims.base.terms import PAIRS
from sims.problem import DESIGNS, Heads, Task
from sims.theory import in_range, predict
from sims.theory.neighbours import hierarchy

from .problems import Problem

WIDEST, MOST = 3, 4
"""Width and number of scales that every mixture is filled up to: one compiled shape."""


def theory(problem: Problem) -> xr.Dataset:
    """Theory of a problem, with what was drawn for it.

    ``error`` (part, kept) is that of scores; ``definite`` the probability of a positive
    semidefinite form; ``mse`` (arm) that of mixtures, ``in_range`` where first order reaches.
    """
    moments = hierarchy.token_moments(problem.taps, problem["tokens"], problem.levels)
    forms = problem.singular_values, problem["head_width"], moments
    spectrum = problem.spectrum
    errors = [hierarchy.level_errors(spectrum, model, *forms) for model in problem.models]
    mse, known = mixtures(problem)
    return xr.Dataset(
        {
            "error": (("part", "kept"), np.transpose(errors)),
            "levels": problem.levels,
            "definite": hierarchy.psd_probability(problem["width"], problem["head_width"]),
            "mse": ("arm", mse),
            "in_range": known,
            **problem.drawn,
        }
    )


def mixtures(problem: Problem) -> tuple[np.ndarray, bool]:
    """Errors of the arms to first order in 1/n, and whether it is in its range."""
    bandwidths, mix = problem.arms
    count = len(bandwidths)
    views = problem["views"]
    frame = fill_up(np.eye(views), WIDEST, WIDEST)
    filled = np.resize(bandwidths, 2 + MOST)
    heads = Heads(np.stack([frame] * len(filled)), "gaussian", filled)
    target = problem.target.padded(WIDEST - views)
    task = Task(DESIGNS["isotropic"](WIDEST), target, problem["noise_sd"])
    terms = predict(task, heads, problem["n"], fill_up(problem.queries, WIDEST))
    error = sum(terms[f"integrated_{name}"].values[:count, :count] for name in PAIRS)
    return np.einsum("ai,ij,aj->a", mix, error, mix), in_range(terms)
