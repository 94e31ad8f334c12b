"""Least errors of scores, the price of calibration, and errors of the heads to first order."""

import xarray as xr

from sims.runtime import in_threads
from sims.study.experiment import Experiment
from sims.theory import predict as terms_of
from sims.theory.neighbours import spectra

from .problems import draw


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """All problems in one point, ``law``, with what was drawn.

    ``least`` is the error of KQ-SVD calibrated without end, ``keys_only`` that of K-SVD, and
    ``cost`` what the sample adds, a share of the least error; ``mse`` (scores) is that of the heads
    as an estimator, ``in_range`` where first-order theory covers it.
    """

    def prediction(number: int) -> xr.Dataset:
        problem = draw(experiment.spec.law or {}, experiment.simulation.seed, number)
        keys, queries, n = problem.key_moment, problem.query_moments, problem.calibration
        least = spectra.optimum(spectra.squares(keys, queries.sum(0)), problem.rank)
        cost = spectra.excess_risk(keys, queries, problem.rank, n, n, problem.mean) / least
        terms = [terms_of(*problem.regression(c, problem.noise_sd)) for c in (False, True)]
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

    every = in_threads(prediction, range(experiment.settings["problems"]))
    return {"law": xr.concat(every, "number", combine_attrs="drop")}
