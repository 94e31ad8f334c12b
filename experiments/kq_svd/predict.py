"""Least errors of scores, and the price of calibration."""

import xarray as xr

from sims.theory.neighbours import spectra

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """What theory says of a problem, and what was drawn.

    ``least`` is the error of KQ-SVD calibrated without end, ``keys_only`` that of K-SVD, and
    ``cost`` what the sample adds, a share of the least error.
    """
    keys = problem.key_moment
    by_head = problem.query_moments
    queries = by_head.sum(0)
    rank = problem.rank
    n = problem.calibration
    least = spectra.optimum(spectra.squares(keys, queries), rank)
    cost = spectra.excess_risk(keys, by_head, rank, n, n, problem.mean) / least
    return xr.Dataset(
        {
            **problem.drawn,
            "least": float(least),
            "keys_only": float(spectra.keys_only_error(keys, queries, rank)),
            "cost": float(cost),
        }
    )
