"""Stacks of a Transformer's layers, and heads that are recovered from their mixed output."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import NONE, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Collapse(Study[Problem]):
    """What depth leaves of tokens, and what a layer's output leaves of its heads."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from sims.montecarlo import HostBatches

        from .simulate import batch

        dims = {"path": ("layer",), "ends": ("end",), "lost": ("gates",)}
        return HostBatches(batch, constants=problem, dims=dims)

    def theory(self, problem: Problem) -> xr.Dataset:
        """What is known of a problem, and what was drawn.

        ``order``: ratio of neighbouring steps of log ρ of attention alone; ``rate``: the step
        itself under a mask or bias; ``claimed`` and ``open`` directions; ``lost`` shares without
        gates and with.
        """
        from sims.theory.neighbours.heads import open_directions

        from .predict import lost_shares, rate

        fields, n = problem.drawn, len(problem.layer.gates)
        heads, rank = fields["heads"], min(problem.values, fields["dimension"])
        return xr.Dataset(
            {
                "order": 3.0 if fields["positions"] == NONE else 1.0,
                "rate": rate(problem),
                "claimed": n * (heads - 1) * problem.width,
                "open": open_directions(n, heads * problem.width, rank),
                "lost": ("gates", lost_shares(problem)),
                "width": problem.width,
                **fields,
            }
        )

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
