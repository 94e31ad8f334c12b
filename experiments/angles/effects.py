"""Noise correlation of two heads, and the variance that an ensemble keeps, at every angle."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, common, jackknife, mcse, ratio
from sims.study.results import Results

KERNEL, ANGLE = "heads.kernel", "heads.frames.angle"
CANONICAL = "canonical_correlation"
"""What is predicted of pairs in keys N(0, Σ) alone."""
QUERIES_ALONE = 0.9
"""Share of the variance from which on the queries' error is taken for all of it."""
CORRELATION = ("cross_noise_covariance", "noise_variance")
"""Numerator and denominator of the noise correlation."""
OVERLAPS = (0.0, 0.2, 0.4, 1.0)
"""Ends of the groups of drawn frames, by the mean squared cosine of their principal angles."""


def effects(results: Results) -> Families:
    """Gaps of the correlation to the law and to exact theory, and what each angle gains."""
    many = averaged(results)
    # The share of noise kept is 1/H + (1 − 1/H)·correlation: it falls when the correlation does.
    steps = [pair for curve in curves(results).values() for pair in pairwise(curve)]
    to_orthogonal = [(name, curve[-1]) for curve in curves(results).values() for name in curve[:-1]]
    extremes = orthogonal(results)
    return {
        "gap to the law": [gap_to_law(results, name) for name in many],
        "gap to the law, drawn": [e for name in random(results) for e in groups(results, name)],
        "gap to exact theory": [gap_to_exact(results, name) for name in compared(results)],
        "fall of the variance kept, drawn": [
            fall(results, *pair, variance_kept) for pair in extremes
        ],
        "fall of the noise correlation": [fall(results, *s, noise_correlation) for s in steps],
        "fall of the variance kept": [fall(results, *s, variance_kept) for s in to_orthogonal],
        **of_correlated_keys(results),
    }


def of_correlated_keys(results: Results) -> Families:
    """Pairs of heads in keys N(0, Σ): at one principal angle, orthogonal ones, and all by the law.

    Of a kernel and d_k the orthogonal pair is the one of the largest principal angle, and the
    Σ-orthogonal pair the one of the least canonical correlation.
    """
    alike, orthogonal_least, canonical_least = [], [], []
    for facts, names in correlated(results).items():
        for first, second in pairwise(names):
            if np.isclose(angle_of(results, first), angle_of(results, second)):
                alike.append(apart(results, first, second, facts))
        widest = max(names, key=lambda name: angle_of(results, name))
        least = min(names, key=lambda name: canonical_of(results, name))
        at: dict[str, float | str] = {"kernel": facts[0], "width": facts[1]}
        orthogonal_least.append(replace(fall(results, least, widest, noise_correlation), at=at))
        canonical_least += [
            replace(fall(results, name, least, noise_correlation), at=at)
            for name in names
            if name != least
        ]
    return {
        "gap to the law, canonical": [
            gap_to_law(results, name) for own in correlated(results).values() for name in own
        ],
        "difference at one principal angle": alike,
        "rise from the orthogonal pair": orthogonal_least,
        "rise from the Σ-orthogonal pair": canonical_least,
    }


def noise_correlation(terms: Batches) -> np.ndarray:
    """Of two heads: a ratio of averages over queries, as the law is."""
    return terms[CORRELATION[0]] / terms[CORRELATION[1]]


def variance_kept(terms: Batches) -> np.ndarray:
    """Share of a head's variance that the ensemble keeps."""
    return terms["ensemble_variance"] / terms["variance"]


def averaged(results: Results) -> list[str]:
    """Points of many queries and keys N(0, I), where the law, an average over all, is predicted."""
    laws = [name for name in results.points if "law" in results.predictions[name]]
    return [name for name in laws if CANONICAL not in results.predictions[name]]


def compared(results: Results) -> list[str]:
    """Populations of few keys, where exact theory is."""
    return [name for name in results.points if "exact" in results.orders(name)]


def correlated(results: Results) -> dict[tuple[str, float], list[str]]:
    """(kernel, d_k) to pairs in keys N(0, Σ), by principal angle and canonical correlation."""
    groups: dict[tuple[str, float], list[str]] = {}
    for name in results.points:
        if CANONICAL in results.predictions[name]:
            kernel = str(results.coordinates[name][KERNEL])
            groups.setdefault((kernel, results.number(name, "heads.width")), []).append(name)

    def order(name: str) -> tuple[float, float]:
        return round(angle_of(results, name), 6), canonical_of(results, name)

    return {facts: sorted(names, key=order) for facts, names in groups.items()}


def angle_of(results: Results, point: str) -> float:
    """Principal angle of a pair in keys N(0, Σ), in degrees."""
    return float(results.prediction(point)["principal_angle"])


def canonical_of(results: Results, point: str) -> float:
    """Canonical correlation of what the two heads see of a key."""
    return float(results.prediction(point)[CANONICAL])


def random(results: Results) -> list[str]:
    """Populations of random frames and many keys, where the law is predicted."""
    return [name for name in results.points if "each_law" in results.predictions[name]]


def orthogonal(results: Results) -> list[tuple[str, str]]:
    """Populations at an angle, each with that of orthogonal heads: all but the frames is common."""
    places: dict[str, dict[float, str]] = {}
    for name in results.points:
        if results.coordinates[name]["population"] == "equal angles":
            kernel = str(results.coordinates[name][KERNEL])
            places.setdefault(kernel, {})[results.number(name, ANGLE)] = name
    return [
        (name, at[max(at)])
        for at in places.values()
        for angle, name in at.items()
        if angle < max(at)
    ]


def curves(results: Results) -> dict[tuple[str, float, int], list[str]]:
    """(kernel, bandwidth, d_k) to points of equal angles in all directions, by angle."""
    groups: dict[tuple[str, float, int], list[str]] = {}
    for name in averaged(results):
        if not np.isnan(results.number(name, ANGLE)):
            bandwidth, width = (results.number(name, f"heads.{k}") for k in ("bandwidth", "width"))
            group = str(results.coordinates[name][KERNEL]), bandwidth, int(width)
            groups.setdefault(group, []).append(name)
    by_angle = {k: sorted(v, key=lambda p: results.number(p, ANGLE)) for k, v in groups.items()}
    return dict(sorted(by_angle.items()))


def aligned(results: Results, point: str) -> bool:
    """Whether all heads of a point are in one subspace."""
    return results.number(point, ANGLE) == 0


def gap_to_law(results: Results, point: str) -> Effect:
    """Simulated correlation over that of the law, less 1, with the error of the queries."""
    theory = results.prediction(point)
    law = float(theory["law"])
    effect = of_batches(
        point,
        results.pseudovalues(point, noise_correlation) / law - 1,
        point,
        unit="replicates on more queries",
        at={"kernel": str(results.coordinates[point][KERNEL])},
    )
    if aligned(results, point):  # one head: a correlation of 1 in every draw and at every query
        return replace(effect, error=0.0, batches=np.inf)
    queries = of_batches(point, by_query(theory) / law)
    error = float(np.hypot(effect.error, queries.error))
    # Third cumulants of independent errors add up; the law's is subtracted.
    third = effect.skewness * effect.error**3 - queries.skewness * queries.error**3
    effect = replace(effect, error=error, skewness=third / error**3)
    if queries.error**2 < QUERIES_ALONE * error**2:
        return effect
    # Nearly all variance is that of the queries, whose number was fixed beforehand: t intervals
    # with their freedom, and replicates do not help.
    return replace(effect, batches=theory.sizes["query"], points=(), fixed=True)


def groups(results: Results, point: str) -> list[Effect]:
    """Simulated correlation over the law's, less 1, for drawn frames of much and little overlap.

    A head's noise variance has the same law whatever its frame, so the correlation that the law
    states is the covariance, given the angles, over the variance of all.
    """
    theory, data = results.prediction(point), results.estimates[point]
    pairs, variance = (data[part].values for part in CORRELATION)
    law, overlap = theory["each_law"].values, theory["each_overlap"].values
    at: dict[str, float | str] = {
        "kernel": str(results.coordinates[point][KERNEL]),
        "width": results.number(point, "heads.width"),
    }
    out = []
    for low, high in pairwise(OVERLAPS):
        own = (overlap > low) & (overlap <= high)
        parts = {"pairs": pairs * own, "law": law * own, "variance": variance}
        values = jackknife(parts, lambda t: t["pairs"] / (t["law"] * t["variance"])) - 1
        label = f"{point}, mean cos² from {low:g} to {high:g}"
        middle = float(overlap[own].mean())
        out.append(of_batches(label, values, point, unit="problems", at={**at, "overlap": middle}))
    return out


def apart(results: Results, first: str, second: str, facts: tuple[str, float]) -> Effect:
    """Correlation of the first pair of heads over that of the second, less 1, paired."""
    parts: dict[str, np.ndarray] = {}
    for part in CORRELATION:
        own = common(*(results.estimates[name][part].values for name in (first, second)))
        parts |= {f"{place} {part}": values for place, values in enumerate(own)}
    values = jackknife(
        parts,
        lambda terms: (
            noise_correlation({part: terms[f"0 {part}"] for part in CORRELATION})
            / noise_correlation({part: terms[f"1 {part}"] for part in CORRELATION})
        ),
    )
    at: dict[str, float | str] = {
        "kernel": facts[0],
        "width": facts[1],
        "angle": angle_of(results, first),
    }
    label = f"{first} against {second}"
    return of_batches(label, values - 1, (first, second), at=at)


def gap_to_exact(results: Results, point: str) -> Effect:
    """Simulated correlation over that of exact theory, less 1, paired problem by problem."""
    theory, data = results.prediction(point, "exact"), results.estimates[point]
    each = {f"exact {part}": theory[f"each_{part}"].values for part in CORRELATION}
    values = jackknife(
        {part: data[part].values for part in CORRELATION} | each,
        lambda terms: (
            noise_correlation(terms)
            / noise_correlation({part: terms[f"exact {part}"] for part in CORRELATION})
        ),
    )
    bound = sum(float(theory[f"{part}_error"] / theory[part]) for part in CORRELATION)
    first, exact = (
        noise_correlation(
            {part: results.prediction(point, order)[part].values for part in CORRELATION}
        )
        for order in ("first", "exact")
    )
    at: dict[str, float | str] = {
        "kernel": str(results.coordinates[point][KERNEL]),
        "width": results.number(point, "heads.width"),
        "first_order_gap": abs(float(first / exact) - 1),
    }
    return of_batches(point, values - 1, point, bound=bound, unit="problems", at=at)


def fall(
    results: Results, first: str, second: str, statistic: Callable[[Batches], np.ndarray]
) -> Effect:
    """A statistic at the first point less that at the second, paired over common batches."""
    before, after = common(*(results.pseudovalues(name, statistic) for name in (first, second)))
    return of_batches(f"{first} to {second}", before - after, (first, second))


def by_query(theory: xr.Dataset) -> np.ndarray:
    """Pseudo-values of the correlation, one a query, whose MCSE is that of finitely many queries.

    The law is an average over all queries, the run has some: the delta method for a ratio of means
    over iid queries, with the spread over queries that theory predicts.
    """
    noise = theory["noise_covariance"].values
    heads = noise.shape[-1]
    variance = np.trace(noise, axis1=1, axis2=2) / heads
    pairs = (noise.sum(axis=(1, 2)) - heads * variance) / (heads * (heads - 1))
    return ratio(pairs, variance)


def query_error(theory: xr.Dataset) -> float:
    """Standard error of the correlation from having drawn finitely many queries."""
    return float(mcse(by_query(theory)))
