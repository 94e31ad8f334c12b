"""Effect of less correlated agents on their pool: one number per problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.base.estimates import ratio
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches, outcome
from sims.study.batches import stack_batches
from sims.study.results import Results

PLAIN, DIVERSE = 0, 1
"""Places of a problem's pools."""
NAMES = ("mse", "mean_head_mse", "ensemble_variance", "variance")
SHOWN = ("kind", "mechanism", "agents", "lengthscale", "decay", "predicted")


def pool_terms(results: Results) -> dict[str, np.ndarray]:
    """Batches of the pools, each (problem, batch, pool).

    ``error`` of the plain average of M agents; ``many``, the mean product of two agents' errors, to
    which it falls with ever more like agents: ``(M e_M − e_1)/(M − 1)``; ``variance`` of an agent
    and ``covariance`` of two, in the same way.
    """
    batches = {name: stack_batches(results, name) for name in NAMES}
    agents = results.predictions["law"]["agents"].values[:, None, None]

    def of_two(pooled: np.ndarray, single: np.ndarray) -> np.ndarray:
        return np.asarray((agents * pooled - single) / (agents - 1))

    return {
        "error": batches["mse"],
        "many": of_two(batches["mse"], batches["mean_head_mse"]),
        "variance": batches["variance"],
        "covariance": of_two(batches["ensemble_variance"], batches["variance"]),
    }


def effects(results: Results) -> Mapping[str, Effects]:
    """Relative falls of the error, falls of the correlation, and gaps."""
    terms = pool_terms(results)
    correlation = ratio(terms["covariance"], terms["variance"], axis=1)
    decorrelation = correlation[..., PLAIN] - correlation[..., DIVERSE]
    apart = decorrelation.mean(1, keepdims=True) >= house.INDEX_GAP

    def fall(error: np.ndarray) -> Effects:
        """Relative fall from the plain to the diverse pool, where the correlation falls."""
        change = ratio(error[..., DIVERSE], error[..., PLAIN], axis=1) - 1
        change = np.where(apart, change, np.nan)
        return outcome(-change, size=change.mean(1))

    law = results.predictions["law"]
    theory = law["error"].values[:, DIVERSE]
    return {
        "fall": fall(terms["error"]),
        "fall of many": fall(terms["many"]),
        "decorrelation": of_batches(decorrelation),
        "roads": gap(terms["error"][..., DIVERSE], theory, law["predicted"].values.astype(bool)),
    }


def selectivity(results: Results) -> np.ndarray:
    """Effective share n_eff/n of the keys of the plain pool's heads, NaN of other agents.

    ``n_eff = σ²/v`` with the noise variance v of a head, averaged over heads and queries.
    """
    law = results.predictions["law"]
    level = law["noise_sd"].values ** 2 / law["keys"].values
    share = np.full(len(results.estimates), np.nan)
    for number, (_, data) in enumerate(sorted(results.estimates.items())):
        if "integrated_noise_covariance" in data:
            covariance = data["integrated_noise_covariance"].values.mean(0)[PLAIN]
            share[number] = level[number] / np.diag(covariance).mean()
    return share


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values of all kinds, n_eff/n, and the plain pool's correlation, a row per problem."""
    law, terms = results.predictions["law"], pool_terms(results)
    columns = {name: law[name].values for name in SHOWN}
    correlation = terms["covariance"].mean(1) / terms["variance"].mean(1)
    columns |= {"selectivity": selectivity(results), "correlation": correlation[:, PLAIN]}
    return pd.DataFrame(columns)
