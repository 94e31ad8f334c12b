"""Stacks of a Transformer's layers, and heads that are recovered from their mixed output."""

from sims.study.study import Fields, Study, from_module

from .problems import Problem


class Collapse(Study[Problem]):
    """Effects of depth on tokens, and recovery of heads from a layer's output."""

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def replicates(self, problem: Problem) -> int:
        kind = "alone" if problem.alone else problem.drawn["branches"]
        times = self.settings["times"][kind]
        return self.simulation.replicates_per_batch * times
