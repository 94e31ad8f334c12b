"""The error at the best bandwidth by first-order theory, from 256 keys to 10^16."""

import xarray as xr

from sims.runtime import in_threads
from sims.study.experiment import Experiment
from sims.theory import FEW_KEYS

from .problems import KEYS, POOLS, draw


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """All problems in one point, ``law``: (number, pool, n).

    One head, H averaged heads, and ever more of them, each at its best bandwidth.
    """

    def prediction(number: int) -> xr.Dataset:
        problem = draw(experiment.spec.law or {}, experiment.simulation.seed, number)
        curves = [
            xr.Dataset({k: ("n", v) for k, v in problem.best(pool, KEYS).items()}, {"n": KEYS})
            for pool in POOLS
        ]
        law = xr.concat(curves, xr.Variable("pool", list(POOLS))).assign(problem.drawn)
        constants = {"width": problem.width, "exponent": problem.exponent}
        return law.assign({**constants, "in_range": law["n_eff"] >= FEW_KEYS})

    every = in_threads(prediction, range(experiment.settings["problems"]))
    return {"law": xr.concat(every, "number", combine_attrs="drop")}
