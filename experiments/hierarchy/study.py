"""Scores on scales: their error by levels and ranks, blocks of keys, and mixtures of scales."""

from sims.study.study import Fields, Study

from .problems import Problem


class Hierarchy(Study[Problem]):
    """Errors of scores, of blocks and of mixtures, by simulation and by theory."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)
