"""Exact terms of every regime, and the cost of a regression of H − 1 coefficients (first order)."""

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.study.roads import predict_terms


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every regime's terms by the grid's names, and ``cost``."""
    points, cost = experiment.points, experiment.settings["cost"]
    terms = {point.name: predict_terms(point.spec.build(), experiment.theory) for point in points}
    task, heads, _, _ = points[experiment.settings["regimes"].index(cost["regime"])].spec.build()
    law = xr.Dataset(
        {"inflation": ("pairs", [estimation_cost(m, heads.count) for m in cost["pairs"]])},
        coords={"pairs": cost["pairs"]},
        attrs={"heads": heads.count, "noise_variance": float(task.noise_sd) ** 2},
    )
    return terms | {"cost": law}


def estimation_cost(pairs: float, heads: int) -> float:
    """``(H − 1)/(m − H)``, relative excess of the risk of weights estimated from m pairs.

    Stacking is the regression of ``Y − f̂_1`` on the H − 1 differences ``f̂_h − f̂_1`` without an
    intercept; for jointly normal residuals its out-of-sample risk is
    ``(σ² + R*)(1 + (H − 1)/(m − H))`` (inverse Wishart mean), where R* is the least error of the
    same heads, fitted to the same training set: the held-out pairs see no other. Infinite for
    m ≤ H.
    """
    return (heads - 1) / (pairs - heads) if pairs > heads else np.inf
