"""Heads of a second layer by theory, without memory and with it."""

import numpy as np
import xarray as xr

from sims.base.terms import PAIRS
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.theory import in_range, predict
from sims.theory.neighbours import hidden

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """``mse`` (arm) of the heads, ``in_range`` where first order reaches, and what was drawn."""
    mse, known = heads(problem)
    return xr.Dataset({"mse": ("arm", mse), "in_range": known, **problem.drawn})


def heads(problem: Problem) -> tuple[np.ndarray, bool]:
    """Errors of one head without memory and with it, and whether first order is in its range.

    With memory its frame is that of both layers, scaled by the roots of their shares.
    """
    fields = problem.drawn
    shares = [hidden.shares(1, memory, fields["start"]) for memory in (0.0, fields["memory"])]
    frames = np.stack([np.sqrt(w)[:, None] * problem.views for w in shares]).swapaxes(1, 2)
    task = Task(DESIGNS["isotropic"](2), TrigonometricSeries(*problem.waves), fields["noise_sd"])
    pair = Heads(frames, fields["kernel"], problem.bandwidth)
    terms = predict(task, pair, fields["keys"], problem.queries)
    error = sum(np.diag(terms[f"integrated_{name}"]) for name in PAIRS)
    return np.asarray(error), in_range(terms)
