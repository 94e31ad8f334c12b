"""First-order theory of merged heads, where gates are fixed."""

import numpy as np
import xarray as xr

from sims.problem import Heads, Task
from sims.study.study import Fields
from sims.theory import FEW_KEYS, predict
from sims.weights import FACTORIES

from .problems import Problem

SCORES = {"softmax": "dot", "gaussian": "distance"}


def theory(problem: Problem) -> xr.Dataset:
    """Error and variance of merged heads, and what was drawn.

    ``alike`` is the correlation of neighbouring keys, ``in_range`` whether theory is, ``redraws``
    how many draws had no inner best temperature.
    """
    fields = problem.drawn
    assert isinstance(fields, Fields)
    rho = problem.design.autocorrelation(fields["keys"])
    return xr.Dataset(
        {
            **merged(problem, rho),
            "alike": rho[1],
            "selectivity": problem.selectivity,
            "redraws": fields.attempt,
            **fields,
        }
    )


def merged(problem: Problem, rho: np.ndarray) -> dict[str, float | bool]:
    """Theory of merged heads at the drawn bandwidth; NaN for gates that depend on the keys.

    In its range ``n_eff`` slots, fewer by the memory of the keys, Σ ρ_k, are enough. NaN, too,
    where so many slots are not, even of equal weights.
    """
    stride = problem["stride"]
    memory = max(1.0, float(2 * rho.sum() - 1) / stride)
    if problem.gates is None or problem["keys"] / stride / memory < FEW_KEYS:
        return {"mse": np.nan, "variance": np.nan, "in_range": False}
    rule = FACTORIES["merged"](stride, problem.gates, SCORES[problem["kernel"]])
    heads = Heads(problem.frames, rule, problem.bandwidth)
    task = Task(problem.design, problem.target, problem["noise_sd"])
    terms = predict(task, heads, problem["keys"], problem.queries)
    least = float(terms[["n_eff", "n_third"]].to_array().min())
    return {
        "mse": float(terms["mse"]),
        "variance": float(terms["ensemble_variance"]),
        "in_range": least / memory >= FEW_KEYS,
    }
