"""Stacks of a Transformer's layers, and heads that are recovered from their mixed output."""

from sims.study.modular import ModularStudy, from_module

from .problems import Problem


class Collapse(ModularStudy[Problem]):
    """Effects of depth on tokens, and recovery of heads from a layer's output."""

    panels = from_module("statistic")
    problem = staticmethod(Problem)

    def replicates(self, problem: Problem) -> int:
        kind = "alone" if problem.alone else problem["branches"]
        times = self.settings["times"][kind]
        return self.simulation.replicates_per_batch * times
