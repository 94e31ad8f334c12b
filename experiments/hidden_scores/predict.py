"""Heads of a second layer by theory, without memory and with it."""

import numpy as np
import xarray as xr

from sims.base.terms import PAIRS
from sims.problem import DESIGNS, Heads, Task
from sims.theory import in_range, predict
from sims.theory.neighbours import hidden

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """``mse`` (arm) of the heads, ``in_range`` where first order reaches, and what was drawn.

    With memory a head's frame is that of both layers, scaled by the roots of their shares.
    """
    frames = []
    for memory in (0.0, problem["memory"]):
        shares = hidden.shares(1, memory, problem["start"])
        frames.append((np.sqrt(shares)[:, None] * problem.views).T)
    task = Task(DESIGNS["isotropic"](2), problem.target, problem["noise_sd"])
    pair = Heads(np.stack(frames), problem["kernel"], problem.bandwidth)
    terms = predict(task, pair, problem["keys"], problem.queries)
    mse = sum(np.diag(terms[f"integrated_{name}"]) for name in PAIRS)
    return xr.Dataset({"mse": ("arm", mse), "in_range": in_range(terms), **problem.drawn})
