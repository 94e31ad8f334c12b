"""KQ-SVD and its rivals, calibrated on drawn tokens and tried on new ones."""

from sims.study.modular import ModularStudy, from_module

from .problems import Problem, make_problem


class Compression(ModularStudy[Problem]):
    """Errors of scores and outputs where keys are kept in few numbers."""

    panels = from_module("statistic")
    problem = staticmethod(make_problem)
