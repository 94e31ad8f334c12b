"""The error of one head and of averaged ones at their best bandwidths, by the number of keys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .pools import POOLS
from .problems import KEYS, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.study.units import SampledUnit


class Rates(Study[Problem]):
    """Slopes of the error in the number of keys, from 256 to 10^16 by first-order theory."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def units(self) -> "dict[str, SampledUnit]":
        """All simulated problems at each n; of two places of ``problem`` the first is one head."""
        from sims.simulation.engine import sampler_of
        from sims.simulation.many import ProblemsSampler
        from sims.study.units import SampledUnit

        precision = self.experiment.simulation.precision
        units = {}
        for n in self.experiment.settings["sizes"]:
            members, streams = [], []
            for number in range(self.simulated):
                problem = self.draw(number)
                for pool in POOLS[:2]:
                    sampler, _ = sampler_of(
                        *problem.simulated(pool, n),
                        precision=precision,
                        raw_labels=False,
                        keep_queries=False,
                    )
                    members.append(sampler)
                    streams.append((n, number))
            units[f"n = {n}"] = SampledUnit(ProblemsSampler(members, streams), {"n": n})
        return units

    def theory(self, problem: Problem) -> xr.Dataset:
        """One head, H averaged ones, and ever more, each at its best bandwidth: (pool, n)."""
        from sims.theory import FEW_KEYS

        curves = [
            xr.Dataset({k: ("n", v) for k, v in problem.best(pool, KEYS).items()}, {"n": KEYS})
            for pool in POOLS
        ]
        law = xr.concat(curves, xr.Variable("pool", list(POOLS))).assign(problem.drawn)
        constants = {"width": problem.width, "exponent": problem.exponent}
        return law.assign({**constants, "in_range": law["n_eff"] >= FEW_KEYS})

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        return super().parameters(results).drop(columns="exponent")

    def numbers(self, results: Results) -> Mapping[str, Any]:
        from .figure import numbers

        return numbers(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
