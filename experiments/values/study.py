"""Values of their own: what is left of key diversity if heads do not share values and outputs."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import xarray as xr

from sims.study.panels import Panels
from sims.study.study import Fields, Study, from_module

from ..house.problems import Problem, draw_problem


class Values(Study[Problem]):
    """The problems of ``house``, whose heads come to have values or outputs of their own."""

    sampler = from_module("simulate")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("tables")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem | None:
        return draw_problem(fields, partial(self.keep, fields))

    def theory(self, problem: Problem) -> xr.Dataset:
        from ..house.description import population

        return xr.Dataset(population(problem))

    def numbers(self, panels: Panels) -> Mapping[str, Any]:
        from .tables import tables

        return tables(panels)
