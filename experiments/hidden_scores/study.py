"""Stacks with hidden scores next to plain ones, and a head of a second layer."""

from sims.study.study import Fields, Study

from .problems import Problem


class HiddenScores(Study[Problem]):
    """Collapse, uniformity and errors with a memory of scores and without."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)
