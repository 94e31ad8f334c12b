"""Theory of the first Haar set as given: exact and to first order, by angles, and as n → ∞."""

from typing import Any

import numpy as np
import xarray as xr

from sims.base.terms import PAIRS
from sims.inspect.geometry import overlaps
from sims.theory import first_order_terms, noise_correlation_law, predict, unseen

from .decomposition import ACCURACY, TERMS, case
from .keys import GAUSSIAN
from .problems import PROBES, Problem
from .sets import ALIGNED, BY_QUERY, COMMON, HAAR


def predicted(problem: Problem, decomposed: bool) -> xr.Dataset:
    """Theory of a problem; NaN where there is none.

    Exact terms ``theory_NAME`` at the fixed queries with half the width of their 95 % interval,
    ``theory_NAME_error``, and the error at each of them (query), exact and to first order, with
    effective keys, of a problem that is ``decomposed``; ``by_angles``, the noise correlation of two
    heads by the angle law; ``unseen`` and ``coverage`` of the random set and of the first one.
    """
    scalars = ["attended", "unseen", "unseen_aligned", "coverage", "coverage_aligned"]
    for name in TERMS:
        scalars += [f"theory_{name}", f"theory_{name}_error"]
    terms: dict[str, Any] = dict.fromkeys(scalars, np.nan)
    for name in BY_QUERY:
        terms[name] = ("query", np.full(PROBES, np.nan))
    if decomposed:
        terms |= exact(problem)
    if problem.law.family in GAUSSIAN:
        terms |= limits(problem)
    return xr.Dataset(terms | {"by_angles": by_angles(problem)})


def exact(problem: Problem) -> dict[str, Any]:
    """Exact terms with their errors, and errors and effective keys at every query.

    First order is what its formula says, far out of its range, too; it needs Gaussian keys.
    """
    task, heads, n, queries = case(problem)
    found = predict(task, heads, n, queries, order="exact", rtol=ACCURACY)
    terms: dict[str, Any] = {"attended": problem.noise_sd**2 / float(found["noise_variance"])}
    for name, term in TERMS.items():
        terms[f"theory_{name}"] = float(found[term])
        terms[f"theory_{name}_error"] = float(found[f"{term}_error"])
    noise = np.diagonal(found["noise_covariance"].values, axis1=1, axis2=2).mean(1)
    terms["query_attended"] = ("query", problem.noise_sd**2 / noise)
    terms["query_exact"] = ("query", errors_by_query(found))
    if problem.law.family in GAUSSIAN:
        with np.errstate(all="ignore"):
            first = first_order_terms(task, heads, n, queries)
        terms["query_first"] = ("query", errors_by_query(first))
    return terms


def errors_by_query(terms: xr.Dataset) -> np.ndarray:
    """Error of the average at every query, (Q,)."""
    return np.asarray(sum(terms[name].values.mean((1, 2)) for name in PAIRS))


def limits(problem: Problem) -> dict[str, float]:
    """The least error as n → ∞, and coverage, of the random and of the nearly aligned heads."""
    terms = {}
    for place, ending in ((HAAR, ""), (ALIGNED, "_aligned")):
        task, heads, _, _ = case(problem, place)
        found = unseen(task, heads)
        terms[f"unseen{ending}"] = found.error
        terms[f"coverage{ending}"] = found.coverage
    return terms


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
