"""What is known of a problem before its simulation: there is no theory of tuned merged heads."""

import xarray as xr

from sims.study.study import Fields

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """What was drawn, and what follows from it.

    ``alike`` is the correlation of neighbouring keys, ``redraws`` how many draws had no inner best
    temperature.
    """
    fields = problem.drawn
    assert isinstance(fields, Fields)
    return xr.Dataset(
        {
            "alike": problem.design.autocorrelation(fields["keys"])[1],
            "selectivity": problem.selectivity,
            "redraws": fields.attempt,
            **fields,
        }
    )
