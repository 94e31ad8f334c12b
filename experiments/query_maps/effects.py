"""Noise correlations of heads with query maps of their own: to their law, to 1, to each other."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, common, jackknife
from sims.study.results import Results

OF_KEYS = "of the keys"
"""Query maps of heads with W_Q = W_K."""
IDENTICAL = {("equal", 0.0), (OF_KEYS, 0.0)}
"""Query maps and angle between key subspaces of two heads that are one."""
CORRELATION = ("cross_noise_covariance", "noise_variance")
"""Numerator and denominator of the noise correlation."""


def effects(results: Results) -> Families:
    """Gaps to the law of the maps, departures from 1, and rises from orthogonal key subspaces."""
    names = {place(results, name): name for name in results.points}
    apart = {at: name for at, name in names.items() if at[1:] not in IDENTICAL}
    widths = sorted({width for width, _, _ in names})
    return {
        "gap to the law of the maps": [gap(results, name) for name in apart.values()],
        "correlation less 1, one key subspace": [
            of_batches(name, values(results, name) - 1, name, unit="problems", at=facts(at))
            for at, name in apart.items()
            if at[2] == 0
        ],
        "rise from orthogonal key subspaces": [
            rise(results, names[width, "opposite", 0.0], names[width, OF_KEYS, 90.0])
            for width in widths
        ],
    }


Place = tuple[int, str, float]
"""(d_k, query maps, principal angle between the key subspaces in degrees)."""


def place(results: Results, point: str) -> Place:
    """Where a point stands."""
    maps = str(results.coordinates[point]["heads.frames"])
    width = int(results.number(point, "heads.width"))
    heads = results.problems[point]["heads"]
    if maps.startswith(OF_KEYS):
        return width, OF_KEYS, float(heads["frames"]["angle"])
    return width, maps, float(heads["key_frames"]["angle"])


def facts(at: Place) -> dict[str, float | str]:
    """The place, for rows that select by it."""
    return dict(zip(("width", "maps", "angle"), at, strict=True))


def noise_correlation(terms: Batches) -> np.ndarray:
    """Of two heads: a ratio of averages over queries and problems, as the law is."""
    return terms[CORRELATION[0]] / terms[CORRELATION[1]]


def law(results: Results, point: str) -> float:
    """The noise correlation by the law of the maps, a ratio of averages over problems."""
    own = results.predictions[point]
    return float(own["pair_overlap"].mean() / own["own_overlap"].mean())


def values(results: Results, point: str) -> np.ndarray:
    """Pseudo-values of the simulated noise correlation, one a problem."""
    data = results.estimates[point]
    return jackknife({part: data[part].values for part in CORRELATION}, noise_correlation)


def gap(results: Results, point: str) -> Effect:
    """Simulated correlation over that of the law, less 1, paired problem by problem."""
    own, data = results.predictions[point], results.estimates[point]
    parts = {part: data[part].values for part in CORRELATION}
    parts |= {name: own[name].values for name in ("pair_overlap", "own_overlap")}
    gaps = jackknife(
        parts,
        lambda t: noise_correlation(t) * t["own_overlap"] / t["pair_overlap"] - 1,
    )
    at = facts(place(results, point))
    return of_batches(point, gaps, point, unit="problems", at=at)


def rise(results: Results, first: str, second: str) -> Effect:
    """Correlation at the first point less that at the second, over common draws."""
    one, other = common(*(values(results, name) for name in (first, second)))
    at = facts(place(results, first))
    label = f"{second} to {first}"
    return of_batches(label, one - other, (first, second), unit="problems", at=at)
