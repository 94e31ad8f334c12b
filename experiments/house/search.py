"""Any problem of the law by theory, for a search: the given target alone, no angles, not exact."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory import predict

from .predict import labelled
from .problems import built, described

TERMS = {"bias": "bias_product", "signal": "signal_covariance", "noise": "noise_covariance"}


def theory(experiment: Experiment, fields: Mapping[str, Any]) -> xr.Dataset | None:
    """A problem of these fields as ``predict`` has them, None if the law rejects it."""
    problem = built(dict(fields))
    if problem is None:
        return None
    predictions = [
        predict(problem.task, heads, problem.n, problem.queries) for heads in problem.sets
    ]
    matrices = {
        k: np.stack([terms[f"integrated_{v}"] for terms in predictions]) for k, v in TERMS.items()
    }
    matrices |= {
        k: np.array([terms[k].min() for terms in predictions]) for k in ("n_eff", "n_third")
    }
    matrices |= {"mean_bias": matrices["bias"], "mean_signal": matrices["signal"]}
    return labelled(problem, matrices).assign(rejected=0, by_angles=np.nan, exact=np.nan)


def problem(experiment: Experiment, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same as a file that ``sims sweep`` reads."""
    instance = built(dict(fields))
    assert instance is not None
    return described(instance)
