"""Scores on scales: their error by levels and ranks, blocks of keys, and mixtures of scales."""

from sims.study.study import Fields, Study, from_module

from .problems import Problem


class Hierarchy(Study[Problem]):
    """Errors of scores, of blocks and of mixtures, by simulation and by theory."""

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)
