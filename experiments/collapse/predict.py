"""Rate of collapse, and what is lost of the heads."""

import numpy as np
import xarray as xr
from scipy.special import softmax

from sims.theory.neighbours.collapse import late_rate, norm_rate
from sims.theory.neighbours.heads import lost_share

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """What is known of a problem, n_eff/n of its heads, and what was drawn.

    ``rate``: step of log ρ of attention alone under a mask or bias; ``lost``: shares of the heads
    without gates and with.
    """
    layer = problem.layer
    noise = problem["noise"]
    lost = [lost_share(layer.factors, gates, layer.output, noise) for gates in layer.gates]
    return xr.Dataset(
        {
            "rate": rate(problem),
            "lost": ("gates", lost),
            "width": problem.width,
            "selectivity": layer.selectivity,
            **problem.drawn,
        }
    )


def rate(problem: Problem) -> float:
    """Slope of log ρ under a mask or bias; NaN without."""
    bias = problem.bias
    if bias is None:
        return np.nan
    space = problem["dimension"] - (problem["norm"] == "layer")
    normed = problem["placed"] != "nowhere"
    return late_rate(softmax(bias, axis=1)) + normed * norm_rate(problem.values, space)
