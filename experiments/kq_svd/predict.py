"""Least errors of scores, the price of calibration, and errors of the heads as an estimator."""

import xarray as xr

from sims.theory import in_range, predict
from sims.theory.neighbours import spectra

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """What theory says of a problem, and what was drawn.

    ``least`` is the error of KQ-SVD calibrated without end, ``keys_only`` that of K-SVD, and
    ``cost`` what the sample adds, a share of the least error; ``mse`` (scores) is that of the heads
    as an estimator, ``in_range`` where first-order theory covers it.
    """
    keys = problem.key_moment
    by_head = problem.query_moments
    queries = by_head.sum(0)
    rank = problem.rank
    n = problem.calibration
    least = spectra.optimum(spectra.squares(keys, queries), rank)
    cost = spectra.excess_risk(keys, by_head, rank, n, n, problem.mean) / least
    terms = [predict(*problem.regression(c, problem.noise_sd)) for c in (False, True)]
    error = [float(dataset["mse"]) for dataset in terms]
    return xr.Dataset(
        {
            **problem.drawn,
            "least": float(least),
            "keys_only": float(spectra.keys_only_error(keys, queries, rank)),
            "cost": float(cost),
            "mse": ("scores", error),
            "share": float(terms[0]["ensemble_variance"]) / error[0],
            "noise_sd": problem.noise_sd,
            "in_range": all(map(in_range, terms)),
        }
    )
