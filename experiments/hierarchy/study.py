"""Scores on scales: their error by levels and ranks, blocks of keys, and mixtures of scales."""

from sims.study.modular import ModularStudy, from_module

from .problems import Problem


class Hierarchy(ModularStudy[Problem]):
    """Errors of scores, of blocks and of mixtures, by simulation and by theory."""

    panels = from_module("statistic")
    problem = staticmethod(Problem)
