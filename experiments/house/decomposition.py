"""The problem that both methods take apart: the ladder's Haar set as drawn, at one temperature.

They look at the same fixed queries, so that the spread over queries is no error of either.
"""

import numpy as np

from sims.base.arrays import fill_up
from sims.problem import DESIGNS, EmpiricalDesign, Heads, Task
from sims.problem.design_laws import Design

from .moments import DIMENSION, WIDTH
from .problems import PROBES, Problem
from .sets import COMMON, HAAR

TERMS = {
    "mse": "mse",
    "bias": "squared_bias",
    "variance": "ensemble_variance",
    "head_variance": "variance",
}
"""Name of a term here to that of :mod:`sims.base.terms`; the last is the mean over heads."""
AXES = {"covariance": 2, "scale_matrix": 2, "means": 1, "covariances": 2}
"""Option of a design to how many of its last axes are the keys' coordinates."""
MOST_HEADS = 8
"""Heads of a problem up to which exact theory takes seconds."""
ACCURACY = 0.02
"""Of exact theory: half the width of a 95 % interval of the error, as a share of it."""


def is_decomposed(problem: Problem, count: int) -> bool:
    """True of the first ``count`` problems, but for more heads than exact theory is cheap for."""
    return problem.number is not None and problem.number < count and problem.heads <= MOST_HEADS


def case(
    problem: Problem, place: int = HAAR, filled: bool = False
) -> tuple[Task, Heads, int, np.ndarray]:
    """Task, heads of a set at the common temperature, number of keys, and the fixed queries.

    The queries are the first ones of the problem's first batch.

    Args:
        problem: the problem.
        place: of the set.
        filled: whether zeros fill up vectors (but on a sphere) and heads are repeated, which
            changes no term, so that few programs are compiled.
    """
    queries = problem.queries(0)[:PROBES]
    dimension, width, repeats = problem.law.dimension, problem.key_frames.shape[-1], 1
    if filled:
        width, repeats = WIDTH, MOST_HEADS // problem.heads
    if filled and problem.law.family != "sphere":
        dimension = DIMENSION
    frames = []
    for array in (problem.query_frames, problem.key_frames):
        frames.append(np.tile(fill_up(array[place], dimension, width), (repeats, 1, 1)))
    bandwidth = np.tile(problem.bandwidth[place, COMMON], repeats)
    heads = Heads(frames[0], problem.fields["kernel"], bandwidth, frames[1])
    target = problem.target.padded(dimension - problem.law.dimension)
    task = Task(design(problem, dimension), target, problem.noise_sd)
    return task, heads, problem.n, fill_up(queries, dimension)


def design(problem: Problem, dimension: int) -> Design:
    """The law of the keys from its form in files, filled up with zeros to this dimension."""
    options = problem.law.as_design()
    kind = options.pop("kind")
    if kind == "table":
        assert problem.law.rows is not None
        return EmpiricalDesign(fill_up(problem.law.rows, dimension))
    for name in AXES.keys() & options.keys():
        options[name] = fill_up(np.asarray(options[name]), *[dimension] * AXES[name])
    if kind in ("sphere", "student"):
        options["dimension"] = dimension
    return DESIGNS[kind](**options)
