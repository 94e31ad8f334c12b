"""The problem that both methods take apart: the first Haar set as given at the common temperature.

They look at the same fixed queries, so that the spread over queries is no error of either.
"""

import numpy as np

from sims.problem import DESIGNS, Heads, Task
from sims.problem.design_laws import Design

from .problems import PROBES, Problem
from .sets import COMMON, HAAR

TERMS = {
    "mse": "mse",
    "bias": "squared_bias",
    "variance": "ensemble_variance",
    "head_variance": "variance",
}
"""Name of a term here to that of :mod:`sims.base.terms`; the last is the mean over heads."""
MOST_HEADS = 8
"""Heads of a problem up to which exact theory takes seconds."""
ACCURACY = 0.02
"""Of exact theory: half the width of a 95 % interval of the error, as a share of it."""


def is_decomposed(problem: Problem, count: int) -> bool:
    """True of the first ``count`` problems, but for more heads than exact theory is cheap for."""
    return problem.number is not None and problem.number < count and problem.heads <= MOST_HEADS


def case(problem: Problem, place: int = HAAR) -> tuple[Task, Heads, int, np.ndarray]:
    """Task, heads of a set at the common temperature, number of keys, and the fixed queries.

    The queries are the first ones of the problem's first batch.
    """
    heads = Heads(
        problem.query_frames[place],
        problem.fields["kernel"],
        problem.bandwidth[place, COMMON],
        problem.key_frames[place],
    )
    task = Task(design(problem), problem.target, problem.noise_sd)
    return task, heads, problem.n, problem.queries(0)[:PROBES]


def design(problem: Problem) -> Design:
    """The law of the keys as both methods have it, from its form in files."""
    options = problem.law.as_design()
    kind = options.pop("kind")
    sized = {} if kind in ("gaussian", "mixture") else {"dimension": problem.law.dimension}
    return DESIGNS[kind](**sized, **options)
