"""Theory of the first Haar set as given, at the common temperature: first order, and angles."""

import numpy as np
import xarray as xr

from sims.inspect.geometry import overlaps
from sims.problem import Heads, Task
from sims.problem.design_laws import GaussianDesign
from sims.theory import FEW_KEYS, noise_correlation_law, predict

from .keys import GAUSSIAN
from .problems import PROBES, Problem
from .sets import COMMON, HAAR, PROBED


def predicted(problem: Problem, batches: int) -> xr.Dataset:
    """First-order terms at the queries of the first batches, where theory is in its range.

    Mean over the covered queries of the squared bias and the variance of the ensemble, and of the
    variance of a head; ``covered`` (query) says at which queries; ``by_angles`` is the noise
    correlation of two heads by the angle law. NaN where theory covers nothing.
    """
    queries = np.concatenate([problem.queries(batch)[:PROBES] for batch in range(batches)])
    covered = np.zeros(len(queries), bool)
    terms = dict.fromkeys(PROBED, np.nan)
    if problem.law.family in GAUSSIAN:
        found = first_order(problem, queries)
        covered = found["covered"]
        if covered.any():
            terms = {name: float(found[name][covered].mean()) for name in PROBED}
    return xr.Dataset(
        {f"theory_{name}": value for name, value in terms.items()}
        | {"covered": ("query", covered), "by_angles": by_angles(problem)}
    )


def first_order(problem: Problem, queries: np.ndarray) -> dict[str, np.ndarray]:
    """Terms at each query, and where theory is in its range."""
    heads = Heads(
        problem.query_frames[HAAR],
        problem.fields["kernel"],
        problem.bandwidth[HAAR, COMMON],
        problem.key_frames[HAAR],
    )
    task = Task(GaussianDesign(problem.law.covariance()), problem.target, problem.noise_sd)
    with np.errstate(all="ignore"):  # far out of its range it has no finite numbers
        terms = predict(task, heads, problem.n, queries)
        covariance = terms["signal_covariance"].values + terms["noise_covariance"].values
        keys = np.minimum(terms["n_eff"].values, terms["n_third"].values)
        return {
            "bias": terms["bias"].values.mean(-1) ** 2,
            "variance": covariance.mean((-2, -1)),
            "head_variance": np.diagonal(covariance, axis1=-2, axis2=-1).mean(-1),
            "covered": keys.min(-1) >= FEW_KEYS,
        }


def by_angles(problem: Problem) -> float:
    """Mean noise correlation of two random heads by principal angles.

    NaN but for isotropic keys, one map for queries and keys, and heads of one temperature.
    """
    fields = problem.fields
    if problem.law.family != "isotropic" or fields["apart"] or fields["uneven"]:
        return np.nan
    cosines = overlaps(problem.key_frames[HAAR])[np.triu_indices(problem.heads, 1)]
    bandwidth = problem.bandwidth[HAAR, COMMON, 0]
    correlation = float(np.mean(noise_correlation_law(cosines, bandwidth, 1.0, fields["kernel"])))
    return correlation if np.isfinite(correlation) else np.nan
