"""What KQ-SVD gains on its rivals, what calibration costs, and what an estimator loses."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

KQ, K, EIGEN, CENTRED = range(4)
"""Places of the methods."""


def simulated(results: Results, name: str) -> np.ndarray:
    """Batches of a variable, (problem, batch, …)."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def effects(results: Results) -> Mapping[str, Effects]:
    """Gains are shares of the rival's error; of outputs the rival is the better of the two."""
    law = results.predictions["law"]
    score, output, mse = (simulated(results, name) for name in ("score", "output", "mse"))
    theory = law["mse"].values
    saved = 1 - law["least"].values / law["keys_only"].values
    return {
        "scores": of_batches(_gain(score[..., KQ], score[..., K])),
        "outputs": of_batches(_gain(output[..., KQ], rival(output))),
        "centring": of_batches(_gain(output[..., CENTRED], output[..., KQ])),
        "bound": of_batches(1 - simulated(results, "bound")),
        "saved": Effects(np.empty(0), np.empty(0), "estimate", saved),
        "calibration": gap(score[..., KQ], law["least"].values * (1 + law["cost"].values)),
        "estimator": of_batches(
            -_gain(mse[..., 1], mse[..., 0]),
            predicted=theory[:, 1] / theory[:, 0] - 1,
            valid=law["in_range"].values.astype(bool),
        ),
    }


def rival(output: np.ndarray) -> np.ndarray:
    """Errors of the better of K-SVD and Eigen, (problem, batch)."""
    best = K + output[..., K : EIGEN + 1].mean(1).argmin(1)
    return np.asarray(output[np.arange(len(output)), :, best])


def _gain(error: np.ndarray, rival: np.ndarray) -> np.ndarray:
    """By what share of the rival's error the other one is lower, (problem, batch)."""
    return np.asarray((rival - error) / rival.mean(1, keepdims=True))


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, the price of calibration and the share of variance, a row a problem."""
    law = results.predictions["law"].drop_vars(["axes", "target", "least", "keys_only"])
    columns = {name: v.values for name, v in law.items() if v.dims == ("number",)}
    return pd.DataFrame(columns)
