"""Kept and best errors to first order, and three theories of the pair of sparse heads."""

import numpy as np
import xarray as xr

from sims.theory import in_range
from sims.theory import predict as theory
from sims.theory.first_order.adaptive import adaptive_terms

from .problems import Problem

SIZES = np.array([256, 1024])
"""Numbers of keys along which first-order theory is held against exact theory."""
ACCURATE = 1e-5
"""Relative accuracy of exact theory there."""


def terms(problem: Problem) -> xr.Dataset:
    """The averaged heads' variances to first order, and the gap to exact theory of the first head.

    ``signal`` and ``noise``, each (theory), of adaptive radii and of held ones, and whether they
    are ``in_range``; ``gap`` (size) is that of one head's signal variance at a fixed radius, and
    ``accurate`` whether exact theory's own error is a tenth of it at most.
    """
    case = problem.heads(problem["keys"])
    first = theory(*case)
    held = adaptive_terms(*case, hold=True)
    gaps = []
    accurate = True
    for size in SIZES.tolist():
        one_head = problem.heads(size, count=1)
        leading = float(theory(*one_head)["signal_variance"])
        exact = theory(*one_head, order="exact", rtol=ACCURATE)
        value = float(exact["signal_variance"])
        gaps.append(abs(leading / value - 1))
        accurate &= 10 * float(exact["signal_variance_error"]) < gaps[-1] * value
    parts = {}
    for part in ("signal", "noise"):
        name = f"integrated_{part}_covariance"
        parts[part] = ("theory", [float(terms[name].mean()) for terms in (first, held)])
    return xr.Dataset(
        {**parts, "in_range": in_range(first), "gap": ("size", gaps), "accurate": accurate},
        {"size": SIZES, "theory": ["adaptive", "held"]},
    )
