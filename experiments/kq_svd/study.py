"""KQ-SVD and its rivals, calibrated on drawn tokens and tried on new ones."""

from sims.study.study import Fields, Study, from_module

from .problems import Problem, make_problem


class Compression(Study[Problem]):
    """Errors of scores, outputs and estimates where keys are kept in few numbers."""

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return make_problem(fields)
