"""Rate of collapse under a mask or bias, and what is lost of the heads."""

import numpy as np
from scipy.special import softmax

from sims.theory.neighbours.collapse import late_rate, norm_rate
from sims.theory.neighbours.heads import lost_share

from .problems import Problem

ROUNDING = 1e-8
"""Of shares that are lost."""


def lost_shares(problem: Problem) -> list[float]:
    """Shares of the heads that are lost without gates and with."""
    factors, gates, output = problem.layer
    plain, gated = (
        lost_share(factors, g, output, problem.drawn["noise"]) for g in (np.ones_like(gates), gates)
    )
    # Gates that change a share by rounding alone change nothing, on any machine.
    return [plain, plain if abs(plain - gated) < ROUNDING else gated]


def rate(problem: Problem) -> float:
    """Slope of log ρ under a mask or bias; NaN without, and where a norm meets tied weights."""
    fields, bias = problem.drawn, problem.bias
    normed = fields["placed"] != "nowhere"
    if bias is None or (normed and fields["tied"]):
        return np.nan
    space = fields["dimension"] - (fields["norm"] == "layer")
    return late_rate(softmax(bias, axis=1)) + normed * norm_rate(problem.values, space)
