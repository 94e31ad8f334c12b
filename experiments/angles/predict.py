"""Noise correlations by the angle series and, of heads of any width, by exact theory."""

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from sims.base.estimates import Batches, jackknife, mcse
from sims.problem import TARGETS, GaussianDesign, Heads, Task
from sims.theory import FEW_KEYS, first_order_terms, noise_correlation_law, predict
from sims.theory.first_order.angle_series import angle_series

from .problems import Problem

DEGREES = {1: 200, 2: 20}
"""In the cosines at which series are cut, by width."""
ACCURATE = 5e-3
"""What is left out of a correlation, as a share of it, up to which it counts."""

PRECISE = 0.02
"""Accuracy that is asked of exact theory, as a share of the noise variance."""
QUERIES = 8
"""Queries N(0, I) at which exact theory and the angle law are compared."""
COLDEST = 1.05 * 2**0.5
"""Least temperature of softmax heads: at √2 the angle law becomes infinite."""
NARROWEST = 0.15
"""Least bandwidth of Gaussian heads over √d_k."""


def theory(problem: Problem) -> xr.Dataset:
    """What the angle series and exact theory say of a problem, and what was drawn."""
    return xr.Dataset({**correlations(problem), **reach_of_law(problem), **problem.drawn})


def pair(problem: Problem) -> tuple[Task, Heads, int, np.ndarray]:
    """Two heads of any width without signal, at angles of 20° to 90°, and queries N(0, I).

    The angle law is finite at all of their temperatures.
    """
    width = problem["pair_width"]
    rng = problem.rng("pair_draws")
    angles = np.deg2rad(rng.uniform(20, 90, size=width))
    frames = np.zeros((2, 2 * width, width))
    frames[0, :width] = np.eye(width)
    frames[1] = np.concatenate([np.diag(np.cos(angles)), np.diag(np.sin(angles))])
    bandwidth = NARROWEST * problem["pair_scale"] * width**0.5
    if problem["pair_kernel"] == "softmax":
        bandwidth = (COLDEST * problem["pair_scale"]) ** 0.5
    heads = Heads(frames, problem["pair_kernel"], bandwidth)
    task = Task(GaussianDesign(np.eye(2 * width)), TARGETS["constant"](2 * width), 1.0)
    return task, heads, problem["pair_keys"], rng.normal(size=(QUERIES, 2 * width))


def reach_of_law(problem: Problem) -> dict[str, float]:
    """How far the angle law is from exact theory for the heads of :func:`pair`.

    ``pair_gap`` is ``(1 − ρ)`` of exact theory over that of the law, less 1, both averaged over the
    same queries; ``pair_error`` its standard error, by the spread over queries and theory's own;
    ``pair_attended``, the harmonic mean of effective keys.
    """
    case = pair(problem)
    exact = predict(*case, order="exact", rtol=PRECISE)
    covariance = exact["noise_covariance"].values
    law = first_order_terms(*case)["noise_covariance"].values
    ratio = {"exact": covariance, "law": law}
    gap = _gap({name: values.mean(0) for name, values in ratio.items()})
    own = np.trace(covariance.mean(0)) / 2
    # Half of a 95 % interval is two standard errors.
    stated = exact["integrated_noise_covariance_error"].values[0, 1] / 2
    stated /= own * _apart(covariance.mean(0))
    return {
        "pair_gap": float(gap),
        "pair_error": float(np.hypot(mcse(jackknife(ratio, _gap)), stated)),
        "pair_attended": float(1 / own),
    }


def _gap(covariances: Batches) -> np.ndarray:
    """Gap of one less the noise correlation between ``exact`` theory and ``law``."""
    return _apart(covariances["exact"]) / _apart(covariances["law"]) - 1


def _apart(covariance: np.ndarray) -> np.ndarray:
    """One less the noise correlation of two heads, of mean covariances (…, 2, 2)."""
    return 1 - 2 * covariance[..., 0, 1] / np.trace(covariance, axis1=-2, axis2=-1)


def correlations(problem: Problem) -> dict[str, float | bool]:
    """What the angle series says of the heads at the drawn angles.

    ``correlation`` of their noise; ``gaussian``, that of gaussian heads with as many effective
    keys, ``n_eff``, a share ``selectivity`` of all; ``product``, ρ(c_1, c_2) over
    ρ(c_1, 0)ρ(0, c_2), less 1, NaN at width 1.
    """
    cosines = problem.cosines[0]
    width = problem["width"]
    n = problem["keys"]
    reach = problem["reach"]
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
