"""Order and rate of collapse of attention alone, and what is open and lost of the heads."""

import numpy as np
import xarray as xr
from scipy.special import softmax

from sims.runtime import in_threads
from sims.study.experiment import Experiment
from sims.theory.neighbours.collapse import late_rate, norm_rate
from sims.theory.neighbours.heads import lost_share, open_directions

from .problems import NONE, Problem, draw

ROUNDING = 1e-8
"""Of shares that are lost."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """All problems in one point, ``law``.

    ``order``: ratio of neighbouring steps of log ρ of attention alone; ``rate``: the step itself
    under a mask or bias; ``claimed`` and ``open`` directions; ``lost`` shares without gates and
    with.
    """

    def prediction(number: int) -> xr.Dataset:
        problem = draw(experiment.spec.law or {}, experiment.simulation.seed, number)
        fields, (factors, gates, output) = problem.drawn, problem.layer
        n, heads, rank = len(gates), fields["heads"], min(problem.values, fields["dimension"])
        plain, gated = (
            lost_share(factors, g, output, fields["noise"]) for g in (np.ones_like(gates), gates)
        )
        # Gates that change a share by rounding alone change nothing, on any machine.
        lost = [plain, plain if abs(plain - gated) < ROUNDING else gated]
        return xr.Dataset(
            {
                "order": 3.0 if fields["positions"] == NONE else 1.0,
                "rate": rate(problem),
                "claimed": n * (heads - 1) * problem.width,
                "open": open_directions(n, heads * problem.width, rank),
                "lost": ("gates", lost),
                "width": problem.width,
                **fields,
            }
        )

    every = in_threads(prediction, range(experiment.settings["simulated"]))
    return {"law": xr.concat(every, "number", combine_attrs="drop")}


def rate(problem: Problem) -> float:
    """Slope of log ρ under a mask or bias; NaN without, and where a norm meets tied weights."""
    fields, bias = problem.drawn, problem.bias
    normed = fields["placed"] != "nowhere"
    if bias is None or (normed and fields["tied"]):
        return np.nan
    space = fields["dimension"] - (fields["norm"] == "layer")
    return late_rate(softmax(bias, axis=1)) + normed * norm_rate(problem.values, space)
