"""Effect of less correlated agents on their pool: one number per problem."""

import numpy as np
import pandas as pd

from sims.base.estimates import falls, ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, share, sized_outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

PLAIN, DIVERSE = 0, 1
"""Places of a problem's pools."""
SHOWN = ("kind", "mechanism", "agents", "lengthscale", "decay")


def pool_terms(results: Results) -> dict[str, np.ndarray]:
    """Batches of the pools, each (problem, batch, pool).

    ``error`` of the plain average of M agents; ``many``, the mean product of two agents' errors, to
    which it falls with ever more like agents: ``(M e_M − e_1)/(M − 1)``; ``variance`` of an agent
    and ``covariance`` of two, in the same way.
    """
    agents = results.law["agents"][:, None, None]
    error = stack_batches(results, "mse")
    variance = stack_batches(results, "variance")

    def of_two(pooled: np.ndarray, single: np.ndarray) -> np.ndarray:
        return (agents * pooled - single) / (agents - 1)

    return {
        "error": error,
        "many": of_two(error, stack_batches(results, "mean_head_mse")),
        "variance": variance,
        "covariance": of_two(stack_batches(results, "ensemble_variance"), variance),
    }


def effects(results: Results) -> dict[str, Effects]:
    """Relative falls of the error, and falls of the correlation."""
    terms = pool_terms(results)
    correlation = ratio(terms["covariance"], terms["variance"], axis=1)
    decorrelation = correlation[..., PLAIN] - correlation[..., DIVERSE]
    apart = decorrelation.mean(1, keepdims=True) >= conventions.INDEX_GAP
    fall = np.where(apart, falls(terms["error"], DIVERSE, PLAIN), np.nan)
    of_many = np.where(apart, falls(terms["many"], DIVERSE, PLAIN), np.nan)
    return {
        "fall": sized_outcome(fall),
        "fall of many": sized_outcome(of_many),
        "decorrelation": share(decorrelation),
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values of all kinds, n_eff/n, and the plain pool's correlation, a row per problem.

    ``ants`` is 1 of ants.

    ``n_eff = σ²/v`` with the noise variance v of a head of the plain pool, averaged over heads and
    queries; NaN of other agents.
    """
    terms = pool_terms(results)
    correlation = terms["covariance"].mean(1) / terms["variance"].mean(1)
    noise = []
    for _, data in sorted(results.estimates.items()):
        noise.append(
            data["noise_variance"][:, PLAIN].mean() if "noise_variance" in data else np.nan
        )
    table = drawn_values(results)
    share = table["noise_sd"] ** 2 / table["keys"] / np.array(noise)
    ants = table["kind"] == "ants"
    return table[[*SHOWN]].assign(selectivity=share, correlation=correlation[:, PLAIN], ants=ants)
