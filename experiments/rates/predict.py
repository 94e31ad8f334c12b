"""Errors at best bandwidths by theory, from 256 to 10^16 keys."""

import xarray as xr

from sims.theory import FEW_KEYS

from .pools import POOLS
from .problems import KEYS, Problem


def theory(problem: Problem) -> xr.Dataset:
    """One head, H averaged ones, and ever more, each at its best bandwidth: (pool, n)."""
    curves = []
    for pool in POOLS:
        columns = {name: ("n", values) for name, values in problem.best(pool, KEYS).items()}
        curves.append(xr.Dataset(columns, {"n": KEYS}))
    law = xr.concat(curves, xr.Variable("pool", list(POOLS))).assign(problem.drawn)
    return law.assign(
        width=problem.width,
        exponent=problem.exponent,
        in_range=law["n_eff"] >= FEW_KEYS,
    )
