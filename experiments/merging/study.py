"""Heads over the keys of a sequence, one by one or merged s to a slot."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Merging(Study[Problem]):
    """Errors of heads over keys and over slots, each tuned, and theory of fixed gates."""

    def problem(self, fields: Fields) -> Problem | None:
        from .tuning import draw_problem

        return draw_problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from sims.montecarlo import HostBatches

        from .simulate import HEADS, TERMS, errors

        dims = dict.fromkeys(TERMS, ("heads",))
        return HostBatches(errors, constants=problem, dims=dims, coords={"heads": list(HEADS)})

    def theory(self, problem: Problem) -> xr.Dataset:
        """Error and variance of merged heads, and what was drawn.

        ``alike`` is the correlation of neighbouring keys, ``in_range`` whether theory is,
        ``redraws`` how many draws had no inner best temperature.
        """
        from .predict import merged

        fields = problem.drawn
        assert isinstance(fields, Fields)
        rho = problem.design.autocorrelation(fields["keys"])
        facts = {"alike": rho[1], "selectivity": problem.selectivity, "redraws": fields.attempt}
        return xr.Dataset({**merged(problem, rho), **facts, **fields})

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def numbers(self, results: Results) -> Mapping[str, Any]:
        drawn = self.parameters(results)
        redraws = float(drawn["redraws"].sum())
        attended = drawn["selectivity"].quantile([0.25, 0.75]).tolist()
        return {"redrawn": redraws / (redraws + len(drawn)), "attended": attended}

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
