"""Exact terms of every regime, and the cost of a regression of H − 1 coefficients (first order)."""

import numpy as np
import xarray as xr

from sims.problem import gaussian_queries
from sims.study.experiment import Experiment
from sims.study.roads import predict_terms
from sims.terms import risk_matrix
from sims.theory import predict as terms_of
from sims.weighting import WEIGHTINGS, risk


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every regime's terms by the grid's names, and ``cost``."""
    points, cost = experiment.points, experiment.settings["cost"]
    terms = {point.name: predict_terms(point.spec.build(), experiment.theory) for point in points}
    spec = points[experiment.settings["regimes"].index(cost["regime"])].spec
    task, heads, n, _ = spec.build()
    # Queries of their own: those of the simulation are drawn anew for every training set.
    queries = gaussian_queries(task.dimension, 256, cost["scale"], seed=99)
    matrix = risk_matrix(terms_of(task, heads, n, queries))
    risks = {name: float(risk(rule(matrix), matrix)) for name, rule in WEIGHTINGS.items()}
    excess = [
        estimation_cost(m, heads.count, risks["optimal"], float(task.noise_sd))
        for m in cost["pairs"]
    ]
    law = xr.Dataset(
        {"excess": ("pairs", excess), "oracle": ("rule", list(risks.values()))},
        coords={"pairs": cost["pairs"], "rule": list(risks)},
        attrs={"heads": heads.count},
    )
    return terms | {"cost": law}


def estimation_cost(pairs: float, heads: int, least: float, noise_sd: float) -> float:
    """``(σ² + R*)(H − 1)/(m − H)``, expected excess error of weights estimated from m pairs.

    Stacking is the regression of ``Y − f̂_1`` on the H − 1 differences ``f̂_h − f̂_1`` without an
    intercept; for jointly normal residuals its out-of-sample risk is
    ``(σ² + R*)(1 + (H − 1)/(m − H))`` (inverse Wishart mean). Infinite for m ≤ H.
    """
    return (noise_sd**2 + least) * (heads - 1) / (pairs - heads) if pairs > heads else np.inf
