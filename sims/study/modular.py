"""A study whose methods stand in modules next to its ``study.py``."""

from sims.study.study import Fields as Fields  # studies take both from here
from sims.study.study import Problem, Study
from sims.study.study import from_module as from_module


class ModularStudy(Study[Problem]):
    """Study whose methods are functions of their names in modules next to its ``study.py``.

    ``simulate`` has ``sampler``; ``predict`` has ``theory``; ``statistic`` has ``effects`` and
    ``parameters``; ``figure`` has ``figure``. A method of the class replaces such a function.
    """

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    figure = from_module("figure")
