"""The house sample: how often, and by how much, diverse heads lower the error."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import xarray as xr

from sims.study.panels import Panels
from sims.study.study import Fields, Study, from_module

from .decomposition import is_decomposed
from .problems import Problem, draw_problem


class House(Study[Problem]):
    """Sets of heads on common keys, as drawn and equally good."""

    sampler = from_module("simulate")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("tables")
    figure = from_module("figure")
    headline = from_module("figure")

    def problem(self, fields: Fields) -> Problem | None:
        return draw_problem(fields, partial(self.keep, fields))

    def alongside(self, problem: Problem) -> xr.Dataset:
        from .simulate import at_fixed_queries

        if not is_decomposed(problem, self.settings["decomposed"]):
            return xr.Dataset()
        return at_fixed_queries(problem, self.simulation.seed)

    def theory(self, problem: Problem) -> xr.Dataset:
        from .description import population
        from .predict import predicted

        terms = predicted(problem, is_decomposed(problem, self.settings["decomposed"]))
        return terms.assign(population(problem))

    def as_file(self, problem: Problem) -> dict[str, Any]:
        from .description import described

        return described(problem)

    def numbers(self, panels: Panels) -> Mapping[str, Any]:
        from .tables import tables

        return tables(panels)
