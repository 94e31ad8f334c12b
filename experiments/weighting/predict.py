"""Exact terms of every regime, and the cost of a regression of H − 1 coefficients (first order)."""

from typing import Any

import numpy as np
import xarray as xr

from sims.problem import gaussian_queries
from sims.theory import predict as terms_of
from sims.weighting import WEIGHTINGS, risk


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's prediction, under the names that ``simulate`` gives them."""
    points = experiment.points(fidelity)
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    exact: dict[str, Any] = {"order": "exact", "rtol": settings["exact_rtol"]}
    found = {point.name: terms_of(*point.spec.build(), **exact) for point in points}
    asked = settings["cost"]
    spec = points[settings["regimes"].index(asked["regime"])].spec
    task, heads, n, _ = spec.build()
    # Queries of their own: those of the simulation are drawn anew for every training set.
    queries = gaussian_queries(task.dimension, 256, asked["scale"], seed=99)
    data = terms_of(task, heads, n, queries)
    parts = ("bias_product", "signal_covariance", "noise_covariance")
    matrix = np.sum([data[f"integrated_{part}"].values for part in parts], axis=0)
    risks = {name: float(risk(rule(matrix), matrix)) for name, rule in WEIGHTINGS.items()}
    excess = [
        estimation_cost(m, heads.count, risks["optimal"], float(task.noise_sd))
        for m in asked["pairs"]
    ]
    found["cost"] = xr.Dataset(
        {"excess": ("pairs", excess), "oracle": ("rule", list(risks.values()))},
        coords={"pairs": asked["pairs"], "rule": list(risks)},
        attrs={"heads": heads.count},
    )
    return found


def estimation_cost(pairs: float, heads: int, least: float, noise_sd: float) -> float:
    """``(σ² + R*)(H − 1)/(m − H)``, expected excess error of weights estimated from m pairs.

    Stacking is the regression of ``Y − f̂_1`` on the H − 1 differences ``f̂_h − f̂_1`` without an
    intercept; for jointly normal residuals its out-of-sample risk is
    ``(σ² + R*)(1 + (H − 1)/(m − H))`` (inverse Wishart mean). Infinite for m ≤ H.
    """
    return (noise_sd**2 + least) * (heads - 1) / (pairs - heads) if pairs > heads else np.inf
