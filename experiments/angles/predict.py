"""Noise correlations by the angle series, of each rule and of the gaussian kernel at one n_eff."""

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from sims.theory import FEW_KEYS, noise_correlation_law
from sims.theory.first_order.angle_series import angle_series

from .problems import Problem

DEGREES = {1: 200, 2: 20}
"""In the cosines at which series are cut, by width."""
ACCURATE = 5e-3
"""What is left out of a correlation, as a share of it, up to which it counts."""


def theory(problem: Problem) -> xr.Dataset:
    """What the angle series says of a problem, and what was drawn."""
    return xr.Dataset({**correlations(problem), **problem.drawn})


def correlations(problem: Problem) -> dict[str, float | bool]:
    """What the angle series says of the heads at the drawn angles.

    ``correlation`` of their noise; ``gaussian``, that of gaussian heads with as many effective
    keys, ``n_eff``, a share ``selectivity`` of all; ``product``, ρ(c_1, c_2) over
    ρ(c_1, 0)ρ(0, c_2), less 1, NaN at width 1.
    """
    cosines = problem.cosines[0]
    width = problem.drawn["width"]
    n = problem.drawn["keys"]
    reach = problem.drawn["reach"]
    series = angle_series(
        problem.rule, problem.bandwidth, reach, width=width, n=n, degree=DEGREES[width]
    )
    law, bound = map(float, series.correlation(cosines))
    accurate = bound < ACCURATE * law
    n_eff = float(n / series.aligned)

    def excess(log: float) -> float:
        like = angle_series("gaussian", float(np.exp(log)), reach, width=width, degree=2)
        return float(np.log(like.aligned / series.aligned))

    like = float(np.exp(brentq(excess, *np.log([1e-3, 1e3]))))
    alone = np.prod([series.overlap(cosines * part)[0] for part in np.eye(2)[: len(cosines)]])
    product = float(series.overlap(cosines)[0] / alone - 1)
    return {
        "correlation": law if accurate else np.nan,
        "gaussian": float(noise_correlation_law(cosines, like, reach, "gaussian")),
        "product": product if accurate and width == 2 else np.nan,
        "n_eff": n_eff,
        "selectivity": float(1 / series.aligned),
        "in_range": n_eff >= FEW_KEYS,
    }
