"""Targets of pruning, and random sources of which weights are switched off."""

import numpy as np
import xarray as xr

from sims.study.modular import Fields, ModularStudy, from_module

from .problems import Problem, make_problem


class LotteryTickets(ModularStudy[Problem]):
    """Errors of pruned attention, and what the laws of subset sums say of them."""

    panels = from_module("statistic")
    problem = staticmethod(make_problem)

    def theory(self, problem: Problem) -> xr.Dataset:
        from .predict import theory

        fields = problem.drawn
        assert isinstance(fields, Fields)
        rng = np.random.default_rng([fields.seed, fields.number or 0])
        return theory(problem, rng, self.settings["theory_draws"])
