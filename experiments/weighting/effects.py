"""Gains of weighing heads by regime, and the error under weights estimated from held-out pairs."""

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results
from sims.terms import risk_matrix
from sims.weighting import WEIGHTINGS, risk

COST = "cost"
EQUAL = ("exchangeable", "ring")
"""Regimes whose risk matrix has equal row sums."""


def effects(results: Results) -> Families:
    """Gains of the best weights, and what estimating them costs at every number of pairs."""
    cost, law = results.estimates[COST], results.prediction(COST)
    even = float(cost["error"].sel(rule="uniform").mean())
    least = cost["oracle"].sel(rule="optimal")
    risks = (least + law.attrs["noise_variance"]).values
    beyond = (cost["error"].sel(rule="optimal") - least) / law["inflation"]
    beyond = beyond.transpose("pairs", "batch")
    over = beyond.copy(data=[ratio(each, risks) - 1 for each in beyond.values])
    optimal = cost["error"].sel(rule="optimal") / even
    rules = {rule: cost["error"].sel(rule=rule) / even for rule in ("uniform", "non_negative")}
    return {
        "gain": [gain(results, regime) for regime in regimes(results)],
        "gain less theory's": [gain_gap(results, regime) for regime in regimes(results)],
        "cost over the law": by_pairs(results, over),
        "optimal less uniform": by_pairs(results, optimal - rules["uniform"]),
        "optimal less non-negative": by_pairs(results, optimal - rules["non_negative"]),
    }


def regimes(results: Results) -> dict[str, str]:
    """Regime to the name of its point."""
    names = [name for name in results.points if name != COST]
    return dict(zip(results.settings["regimes"], names, strict=True))


def gain(results: Results, regime: str) -> Effect:
    """Share of the error under uniform weights that the best ones remove, cross-fitted."""
    name = regimes(results)[regime]
    return of_batches(
        regime,
        gains(results.estimates[name], "optimal"),
        name,
        replicates=draws(results),
        at=row_sums(regime),
    )


def row_sums(regime: str) -> dict[str, float | str]:
    """Whether a regime's risk matrix has equal row sums, where no weights gain by algebra."""
    return {"row_sums": "equal" if regime in EQUAL else "unequal"}


def gain_gap(results: Results, regime: str) -> Effect:
    """That gain less exact theory's."""
    name = regimes(results)[regime]
    theory = results.prediction(name, "exact")
    values = gains(results.estimates[name], "optimal") - predicted_gain(theory, "optimal")
    bound = gain_bound(theory)
    return of_batches(
        regime, values, name, bound=bound, replicates=draws(results), at=row_sums(regime)
    )


def by_pairs(results: Results, values: xr.DataArray) -> list[Effect]:
    """An effect for every number m of held-out pairs, from values (batch, pairs)."""
    heads = results.prediction(COST).attrs["heads"]
    return [
        of_batches(
            f"m = {m}",
            values.sel(pairs=m).values,
            COST,
            replicates=draws(results),
            at={"pairs_per_head": m / heads},
        )
        for m in values["pairs"].values
    ]


def draws(results: Results) -> int:
    """Replicates behind every effect; of the cost: training sets times draws of held-out pairs."""
    repeats = int(results.settings["cost"]["repeats"])
    return min(
        results.replicates_at(name) * (repeats if name == COST else 1) for name in results.points
    )


def predicted_gain(theory: xr.Dataset, rule: str) -> float:
    """Share of the error under uniform weights that a rule's weights remove, by theory."""
    matrix = risk_matrix(theory)
    even, best = (float(risk(WEIGHTINGS[r](matrix), matrix)) for r in ("uniform", rule))
    return 1 - best / even


def gain_bound(theory: xr.Dataset) -> float:
    """Bound on the error of theory's gain of optimal weights, from those of the matrix' entries.

    That the weights change with the matrix is of second order, since they are the best.
    """
    matrix, error = risk_matrix(theory), risk_matrix(theory, "_error")
    even, best = (WEIGHTINGS[rule](matrix) for rule in ("uniform", "optimal"))
    kept = float(risk(best, matrix) / risk(even, matrix))
    return float(risk(np.abs(best), error) + kept * risk(even, error)) / float(risk(even, matrix))


def gains(data: xr.Dataset, rule: str) -> np.ndarray:
    """Pseudo-values (B,) of the gain: a batch judges the weights that the others chose."""
    batches = risk_matrix(data)
    others = (batches.sum(0) - batches) / (len(batches) - 1)
    even = risk(np.full(batches.shape[-1], 1 / batches.shape[-1]), batches)
    chosen = np.array([risk(WEIGHTINGS[rule](o), b) for o, b in zip(others, batches, strict=True)])
    return 1 - ratio(chosen, even)
