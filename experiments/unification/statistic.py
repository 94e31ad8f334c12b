"""What less correlated agents are worth to their pool: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches, order
from sims.study.results import Results

PLAIN, DIVERSE = 0, 1
"""Places of a problem's pools."""
NAMES = ("mse", "mean_head_mse", "ensemble_variance", "variance")
SHOWN = ("kind", "mechanism", "agents", "lengthscale", "decay", "predicted")


def pools(results: Results) -> dict[str, np.ndarray]:
    """Batches of the pools, each (problem, batch, pool).

    ``error`` of the plain average of M agents; ``many``, the mean product of two agents' errors, to
    which it falls with ever more like agents: ``(M e_M − e_1)/(M − 1)``; ``variance`` of an agent
    and ``covariance`` of two, in the same way.
    """
    every = [data for _, data in sorted(results.estimates.items())]
    error, one, pooled, variance = (np.stack([d[name].values for d in every]) for name in NAMES)
    count = results.predictions["law"]["agents"].values[:, None, None]
    many, covariance = (
        (count * a - b) / (count - 1) for a, b in ((error, one), (pooled, variance))
    )
    return {"error": error, "many": many, "variance": variance, "covariance": covariance}


def correlation(terms: Mapping[str, np.ndarray]) -> np.ndarray:
    """Of two agents, as batches whose mean and spread are those of the ratio, (N, batch, pool)."""
    top, bottom = (
        terms[k] / terms["variance"].mean(1, keepdims=True) for k in ("covariance", "variance")
    )
    ratio = top.mean(1, keepdims=True)
    return np.asarray(ratio + top - ratio * bottom)


def effects(results: Results) -> Mapping[str, Effects]:
    """Falls of the error as a share of the plain pool's, falls of the correlation, and gaps."""
    terms, alike = pools(results), correlation(pools(results))
    index, size = 1 - alike.mean(1), terms["error"].mean(1)[:, None, PLAIN, None]
    law = results.predictions["law"]
    theory, known = law["error"].values[:, DIVERSE], law["predicted"].values.astype(bool)
    return {
        "fall": order(index, terms["error"] / size)[0],
        "fall of many": order(index, terms["many"] / size)[0],
        "decorrelation": of_batches(alike[..., PLAIN] - alike[..., DIVERSE]),
        "roads": gap(terms["error"][..., DIVERSE], theory, known),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What was drawn for all kinds, and the correlation of the plain pool's, a row a problem."""
    law = results.predictions["law"]
    columns = {name: law[name].values for name in SHOWN}
    return pd.DataFrame(columns | {"correlation": correlation(pools(results)).mean(1)[:, PLAIN]})
