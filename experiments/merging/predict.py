"""First-order theory of merged heads, where gates are fixed."""

import numpy as np

from sims.problem import Heads, Task
from sims.theory import FEW_KEYS
from sims.theory import predict as terms_of
from sims.weights import FACTORIES

from .problems import Problem

SCORES = {"softmax": "dot", "gaussian": "distance"}


def merged(problem: Problem, rho: np.ndarray) -> dict[str, float | bool]:
    """Theory of merged heads at the drawn bandwidth; NaN for gates that depend on the keys.

    In its range ``n_eff`` slots, fewer by the memory of the keys, Σ ρ_k, are enough. NaN, too,
    where so many slots are not, even of equal weights.
    """
    fields = problem.drawn
    memory = max(1.0, float(2 * rho.sum() - 1) / fields["stride"])
    if problem.gates is None or fields["keys"] / fields["stride"] / memory < FEW_KEYS:
        return {"mse": np.nan, "variance": np.nan, "in_range": False}
    rule = FACTORIES["merged"](fields["stride"], problem.gates, SCORES[fields["kernel"]])
    heads = Heads(problem.frames, rule, problem.bandwidth)
    task = Task(problem.design, problem.target, fields["noise_sd"])
    terms = terms_of(task, heads, fields["keys"], problem.queries)
    least = min(float(terms[name].min()) for name in ("n_eff", "n_third"))
    return {
        "mse": float(terms["mse"]),
        "variance": float(terms["ensemble_variance"]),
        "in_range": least / memory >= FEW_KEYS,
    }
