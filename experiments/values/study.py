"""Values of their own: what is left of key diversity if heads do not share values and outputs."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study, from_module

from ..house.problems import Problem, draw_problem


class Values(Study[Problem]):
    """The problems of ``house``, whose heads come to have values or outputs of their own."""

    sampler = from_module("simulate")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem | None:
        return draw_problem(fields)

    def theory(self, problem: Problem) -> xr.Dataset:
        from ..house.description import population

        return xr.Dataset(population(problem))

    def numbers(self, results: Results) -> Mapping[str, Any]:
        from .tables import tables

        return tables(results)
