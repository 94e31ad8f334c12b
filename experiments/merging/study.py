"""Heads over the keys of a sequence, one by one or merged s to a slot."""

from collections.abc import Mapping
from typing import Any

from sims.study.panels import Panels
from sims.study.study import Fields, Study, from_module

from .problems import Problem


class Merging(Study[Problem]):
    """Errors of heads over keys and over slots, each tuned, and theory of fixed gates."""

    sampler = from_module("simulate")
    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem | None:
        from .tuning import draw_problem

        return draw_problem(fields)

    def numbers(self, panels: Panels) -> Mapping[str, Any]:
        drawn = panels.parameters
        redraws = float(drawn["redraws"].sum())
        attended = drawn["selectivity"].quantile([0.25, 0.75]).tolist()
        return {"redrawn": redraws / (redraws + len(drawn)), "attended": attended}
