"""Stacks with hidden scores next to plain ones, and a head of a second layer."""

from sims.study.study import Fields, Study, from_module

from .problems import Problem


class HiddenScores(Study[Problem]):
    """Collapse, uniformity and errors with a memory of scores and without."""

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)
