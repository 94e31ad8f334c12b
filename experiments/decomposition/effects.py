"""Gaps between simulation and theory, term by term, at fixed problems and over populations."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

TERMS = {
    "squared bias": "squared_bias",
    "signal variance": "signal_variance",
    "noise variance": "noise_variance",
    "signal covariance": "cross_signal_covariance",
    "noise covariance": "cross_noise_covariance",
    "mean squared error": "mse",
}
POPULATION = "population"


def effects(results: Results) -> Families:
    """Simulation less theory, relative: every term at every point, by both orders of theory."""
    fixed, drawn = fixed_points(results), populations(results)
    families: Families = {}
    for name, term in TERMS.items():
        families[f"first order, {name}"] = [first(results, term, p) for p in fixed]
        families[f"drawn, first order, {name}"] = [over_problems(results, term, p) for p in drawn]
        families[f"drawn, exact, {name}"] = [
            over_problems(results, term, p, "exact") for p in drawn if "exact" in results.orders(p)
        ]
    families["drawn labels"] = [labels(results, p) for p in fixed]
    return families


def fixed_points(results: Results) -> list[str]:
    """Points of one problem each."""
    return [p for p in results.points if results.coordinates[p].get(POPULATION) is None]


def populations(results: Results) -> list[str]:
    """Points whose batches are problems of their own."""
    return [p for p in results.points if results.coordinates[p].get(POPULATION) is not None]


def first(results: Results, term: str, point: str) -> Effect:
    """``simulation/first order − 1``, with what claims select points by."""
    theory = float(results.prediction(point)[term])
    values = results.estimates[point][term].values / theory - 1
    return of_batches(point, values, point, at=facts(results, point))


def over_problems(results: Results, term: str, point: str, order: str = "first") -> Effect:
    """``mean of simulation/mean of theory − 1`` over a population, paired problem by problem.

    By exact theory signal terms are taken over a head's variance instead: they are small shares of
    it, whose relative error says little. ``first_order_gap`` is on the same scale.
    """
    theory = results.prediction(point, order)
    simulated, predicted = results.estimates[point][term].values, theory[f"each_{term}"].values
    scale, bound, at = float(theory[term]), 0.0, facts(results, point)
    if order == "exact":
        if "signal" in term:
            scale = float(theory["variance"])
        bound = float(theory[f"{term}_error"]) / abs(scale)
        gap = float(results.prediction(point)[term]) - float(theory[term])
        at["first_order_gap"] = abs(gap / scale)
    share = float(theory[term]) / scale
    values = share * (ratio(simulated, predicted) - 1)
    return of_batches(point, values, point, bound=bound, at=at, unit="problems")


def facts(results: Results, point: str) -> dict[str, float | str]:
    """Effective keys, and the share of variance in the error by first order."""
    theory = results.prediction(point)
    share = float(theory["ensemble_variance"] / theory["mse"])
    return {"n_eff": effective_keys(results, point), "variance_share": share}


def labels(results: Results, point: str) -> Effect:
    """MSE from drawn labels less the sum of the terms, over that sum.

    Paired over batches: both sides share the keys, so only the labels' noise is left.
    """
    data = results.estimates[point]
    difference = (data["raw_mse"] - data["mse"]).values / float(data["mse"].mean())
    return of_batches(point, difference, point)


def effective_keys(results: Results, point: str) -> float:
    """Harmonic mean of n_eff over queries and heads (and over the problems of a population).

    The variance terms average r_hh = n/n_eff over queries, so it is the small n_eff that count;
    their arithmetic mean hides a query that attends to few keys.
    """
    return float(1 / np.mean(1 / results.prediction(point)["n_eff"].values))
