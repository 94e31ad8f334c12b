"""Regimes of a budget that is split into heads: where the best split is, and how it grows."""

from typing import Any

from sims.study.study import Fields, Study, from_module

from .comparison import describe_regime
from .problems import regime


class Allocation(Study[Fields]):
    """Errors of all splits of a budget, simulated and by theory."""

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("statistic")
    numbers = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Fields:
        return regime(fields)

    def as_file(self, problem: Fields) -> dict[str, Any]:
        return describe_regime(problem, [problem.seed, problem.number or 0])
