"""Stacks with hidden scores next to plain ones, and a head of a second layer."""

from sims.study.modular import ModularStudy

from .problems import Problem


class HiddenScores(ModularStudy[Problem]):
    """Collapse, uniformity and errors with a memory of scores and without."""

    problem = staticmethod(Problem)
