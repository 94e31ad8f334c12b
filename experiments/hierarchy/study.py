"""Scores on scales: their error by levels and ranks, and blocks of keys."""

from sims.study.modular import ModularStudy, from_module

from .problems import Problem


class Hierarchy(ModularStudy[Problem]):
    """Errors of scores and of blocks."""

    panels = from_module("statistic")
    problem = staticmethod(Problem)
