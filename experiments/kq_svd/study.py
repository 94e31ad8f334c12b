"""KQ-SVD and its rivals, calibrated on drawn tokens and tried on new ones."""

from sims.study.study import Fields, Study

from .problems import Problem, make_problem


class Compression(Study[Problem]):
    """Errors of scores, outputs and estimates where keys are kept in few numbers."""

    def problem(self, fields: Fields) -> Problem:
        return make_problem(fields)
