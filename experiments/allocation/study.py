"""Regimes of a budget that is split into heads: where the best split is, and how it grows."""

from typing import Any

from sims.study.modular import ModularStudy, from_module
from sims.study.study import Fields

from .comparison import describe_regime
from .problems import regime


class Allocation(ModularStudy[Fields]):
    """Errors of all splits of a budget, simulated and by theory."""

    panels = from_module("statistic")
    numbers = from_module("statistic")
    problem = staticmethod(regime)

    def as_file(self, problem: Fields) -> dict[str, Any]:
        return describe_regime(problem, [problem.seed, problem.number or 0])
