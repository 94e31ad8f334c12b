"""Targets of pruning, and random sources of which weights are switched off."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class LotteryTickets(Study[Problem]):
    """Errors of pruned attention, and what the laws of subset sums say of them."""

    def problem(self, fields: Fields) -> Problem:
        # problems.py counts for the seed: its draw, of a law in which nothing is left to draw.
        return Problem(fields, draw(fields, fields.seed, 0).target)

    def sampler(self, problem: Problem) -> "Sampler":
        from sims.montecarlo import HostBatches

        from .simulate import COORDINATES, DIMS, pruned

        return HostBatches(pruned, constants=problem, dims=DIMS, coords=COORDINATES)

    def theory(self, problem: Problem) -> xr.Dataset:
        from .predict import theory

        fields = problem.drawn
        assert isinstance(fields, Fields)
        rng = np.random.default_rng([fields.seed, fields.number or 0])
        return theory(problem, rng, self.experiment.settings["theory_draws"])

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        return super().parameters(results).drop(columns="target")

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
