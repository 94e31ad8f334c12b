"""Heads over the keys of a sequence, one by one or merged s to a slot."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import GRID, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Merging(Study[Problem]):
    """Errors of heads over keys and over slots at many bandwidths, and theory of fixed gates."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from sims.montecarlo import HostBatches

        from .simulate import errors

        dims = dict.fromkeys(("mse", "variance"), ("over", "bandwidth"))
        coords = {"over": ["keys", "slots"], "bandwidth": GRID}
        return HostBatches(errors, constants=problem, dims=dims, coords=coords)

    def theory(self, problem: Problem) -> xr.Dataset:
        """Error and variance of merged heads, and what was drawn.

        ``alike`` is the correlation of neighbouring keys, ``in_range`` whether theory is.
        """
        from .predict import merged

        rho = problem.design.autocorrelation(problem.drawn["keys"])
        return xr.Dataset({**merged(problem, rho), "alike": rho[1], **problem.drawn})

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
