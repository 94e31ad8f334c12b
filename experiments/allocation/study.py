"""Regimes of a budget that is split into heads: where the best split is, and how it grows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import describe_regime, regime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Allocation(Study[Fields]):
    """Errors of all splits of a budget, simulated and to first order."""

    def problem(self, fields: Fields) -> Fields:
        return regime(fields)

    def sampler(self, problem: Fields) -> "Sampler":
        from .simulate import splits_sampler

        return splits_sampler(problem)

    def theory(self, problem: Fields) -> xr.Dataset:
        from .predict import predict_regime

        return predict_regime(problem)

    def as_file(self, problem: Fields) -> dict[str, Any]:
        return describe_regime(problem, [problem.seed, problem.number or 0])

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        frame = super().parameters(results)
        drawn = frame.drop(columns=["inner", "end", "slower", "rougher", "margin"])
        return drawn.assign(
            shared=(drawn["decay"] != "even").astype(float),
            tuned=(drawn["temperature"] == "tuned").astype(float),
            known=drawn["known"].astype(float),
        )

    def numbers(self, results: Results) -> Mapping[str, Any]:
        from .statistic import numbers

        return numbers(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
