"""First-order theory against exact theory, and exact theory against simulation."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.study.results import ORDER, Results

TERMS = {
    "squared bias": "squared_bias",
    "signal variance": "signal_variance",
    "noise variance": "noise_variance",
    "signal covariance": "cross_signal_covariance",
    "noise covariance": "cross_noise_covariance",
    "mean squared error": "mse",
}


def effects(results: Results) -> Families:
    """Gaps of simulation, and along each kernel's line of sizes of first order, to exact theory."""
    groups = by_kernel(results)
    return {
        # The mean squared error is the sum of the others, and nearly all squared bias.
        "simulation": [
            simulated(results, name, term)
            for name in results.points
            for term in TERMS.values()
            if term != "mse"
        ],
        "first order": [
            effect
            for kernel in groups
            for term in TERMS.values()
            for effect in first_order(results, kernel, term)
        ],
        "first order, size of the gap in the variance": [
            effect.scaled(np.sign(effect.value))
            for kernel in groups
            for effect in first_order(results, kernel, "variance")
        ],
    }


def by_kernel(results: Results) -> dict[str, list[str]]:
    """Names of points, smallest n first, under the name of their kernel as claims have it."""
    groups: dict[str, list[str]] = {}
    for name in sorted(results.points, key=lambda point: results.number(point, "n")):
        groups.setdefault(kernel_of(results, name), []).append(name)
    return dict(sorted(groups.items()))


def kernel_of(results: Results, point: str) -> str:
    """The kernel of a point, and its design unless that is isotropic."""
    at = results.coordinates[point]
    design = at.get("design", "isotropic")
    return str(at["heads.kernel"]) + ("" if design == "isotropic" else f", {design}")


def curve(results: Results, kernel: str, term: str) -> tuple[np.ndarray, np.ndarray]:
    """n_eff, and first-order over exact value less 1, along a kernel's dense line of sizes."""
    points = [results.predictions[name] for name in by_kernel(results)[kernel]]
    line = next(data for data in points if "curve_n_eff" in data)
    first, exact = (line[f"curve_{term}"].sel({ORDER: order}) for order in ("first", "exact"))
    return line["curve_n_eff"].values, (first / exact - 1).values


def first_order(results: Results, kernel: str, term: str) -> list[Effect]:
    """First-order over exact value less 1, at each size of the kernel's line."""
    return [
        Effect(
            f"{kernel}, {term}, n_eff = {keys:.3g}",
            float(gap),
            x=float(keys),
            replicates=0,
            at={"kernel": kernel, "n_eff": float(keys)},
        )
        for keys, gap in zip(*curve(results, kernel, term), strict=True)
    ]


def simulated(results: Results, point: str, term: str) -> Effect:
    """Simulated over exact value less 1, with the size of the same gap of first order.

    ``kernel`` and ``n_eff`` are those by which claims of first order select.
    """
    theory = results.prediction(point, "exact")
    exact, bound = float(theory[term]), float(theory[f"{term}_error"])
    values = results.estimates[point][term].values / exact - 1
    facts: dict[str, float | str] = {
        "first_order_gap": abs(float(results.prediction(point)[term]) / exact - 1),
        "kernel": kernel_of(results, point),
        "n_eff": effective_keys(results, point),
    }
    return of_batches(f"{term}, {point}", values, point, bound=bound / abs(exact), at=facts)


def effective_keys(results: Results, point: str) -> float:
    """Harmonic mean over queries and heads: variances average 1/n_eff, not n_eff."""
    return float(1 / (1 / results.prediction(point)["n_eff"]).mean())
