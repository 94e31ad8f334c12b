"""Shared label noise of three heads of one rule, at two angles to the first."""

from sims.study.modular import ModularStudy

from .problems import Problem


class Angles(ModularStudy[Problem]):
    """Noise correlations by simulation and by the angle series."""

    problem = staticmethod(Problem)
