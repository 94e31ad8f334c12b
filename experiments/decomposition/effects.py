"""Gaps between simulation and theory, term by term, over the whole grid."""

from sims.effects import Effect, Families, of_batches
from sims.study.results import Results

TERMS = {
    "squared bias": "squared_bias",
    "signal variance": "signal_variance",
    "noise variance": "noise_variance",
    "signal covariance": "cross_signal_covariance",
    "noise covariance": "cross_noise_covariance",
    "mean squared error": "mse",
}


def effects(results: Results) -> Families:
    """Simulation less theory, relative: every term at every point, by both orders of theory."""
    families: Families = {}
    for name, term in TERMS.items():
        families[f"first order, {name}"] = [first(results, term, p) for p in results.points]
        families[f"exact, {name}"] = [
            exact(results, term, p) for p in results.points if "exact" in results.orders(p)
        ]
    families["drawn labels"] = [drawn(results, p) for p in results.points]
    return families


def first(results: Results, term: str, point: str) -> Effect:
    """``simulation/first order − 1``, with the point's effective number of keys."""
    theory = float(results.prediction(point)[term])
    facts = {"n_eff": effective_keys(results, point)}
    return of_batches(point, results.estimates[point][term].values / theory - 1, point, at=facts)


def exact(results: Results, term: str, point: str) -> Effect:
    """Simulation less exact theory, over the term itself.

    Signal terms are taken over a head's variance instead: they are small shares of it, whose
    relative error says little.
    """
    theory = results.prediction(point, "exact")
    scale = float(theory["variance"] if "signal" in term else abs(theory[term]))
    return of_batches(
        point, (results.estimates[point][term].values - float(theory[term])) / scale, point,
        bound=float(theory[f"{term}_error"]) / scale,
    )  # fmt: skip


def drawn(results: Results, point: str) -> Effect:
    """MSE from drawn labels less the sum of the terms, over that sum.

    Paired over batches: both sides share the keys, so only the labels' noise is left.
    """
    data = results.estimates[point]
    difference = (data["raw_mse"] - data["mse"]).values / float(data["mse"].mean())
    return of_batches(point, difference, point)


def effective_keys(results: Results, point: str) -> float:
    """Harmonic mean of n_eff over queries and heads.

    The variance terms average r_hh = n/n_eff over queries, so it is the small n_eff that count;
    their arithmetic mean hides a query that attends to few keys.
    """
    return float(1 / (1 / results.prediction(point)["n_eff"]).mean())
