"""Targets of pruning, and random sources of which weights are switched off."""

import numpy as np
import xarray as xr

from sims.study.study import Fields, Study, from_module

from .problems import Problem, make_problem


class LotteryTickets(Study[Problem]):
    """Errors of pruned attention, and what the laws of subset sums say of them."""

    sampler = from_module("simulate")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return make_problem(fields)

    def theory(self, problem: Problem) -> xr.Dataset:
        from .predict import theory

        fields = problem.drawn
        assert isinstance(fields, Fields)
        rng = np.random.default_rng([fields.seed, fields.number or 0])
        return theory(problem, rng, self.settings["theory_draws"])
