"""KQ-SVD and its rivals, calibrated on drawn tokens and tried on new ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem, make_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Compression(Study[Problem]):
    """Errors of scores, outputs and estimates where keys are kept in few numbers."""

    def problem(self, fields: Fields) -> Problem:
        return make_problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import cache_sampler

        return cache_sampler(problem)

    def theory(self, problem: Problem) -> xr.Dataset:
        """Least errors of scores, the price of calibration, and errors to first order.

        ``least`` is the error of KQ-SVD calibrated without end, ``keys_only`` that of K-SVD, and
        ``cost`` what the sample adds, a share of the least error; ``mse`` (scores) is that of the
        heads as an estimator, ``in_range`` where first-order theory covers it.
        """
        from sims.theory import predict
        from sims.theory.neighbours import spectra

        keys, queries, n = problem.key_moment, problem.query_moments, problem.calibration
        least = spectra.optimum(spectra.squares(keys, queries.sum(0)), problem.rank)
        cost = spectra.excess_risk(keys, queries, problem.rank, n, n, problem.mean) / least
        terms = [predict(*problem.regression(c, problem.noise_sd)) for c in (False, True)]
        error = [float(dataset["mse"]) for dataset in terms]
        return xr.Dataset(
            {
                **problem.drawn,
                "least": float(least),
                "keys_only": float(spectra.keys_only_error(keys, queries.sum(0), problem.rank)),
                "cost": float(cost),
                "mse": ("scores", error),
                "share": float(terms[0]["ensemble_variance"]) / error[0],
                "noise_sd": problem.noise_sd,
                "in_range": not any({*dataset.attrs} & {"cautions", "faults"} for dataset in terms),
            }
        )

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
