"""Heads over the keys of a sequence, one by one or merged s to a slot."""

from typing import Any

from sims.study.modular import ModularStudy, from_module
from sims.study.panels import Panels

from .problems import Problem


class Merging(ModularStudy[Problem]):
    """Errors of heads over keys and over slots, each tuned."""

    problem = from_module("tuning")

    def numbers(self, panels: Panels) -> dict[str, Any]:
        drawn = panels.parameters
        redraws = float(drawn["redraws"].sum())
        attended = drawn["selectivity"].quantile([0.25, 0.75]).tolist()
        return {"redrawn": redraws / (redraws + len(drawn)), "attended": attended}
