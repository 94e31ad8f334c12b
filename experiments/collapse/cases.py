"""Drawn problems that both roads solve: sets of tokens, and layers near collapse.

Named by seed and batch, so that theory and simulation see the same ones; neither is used here.
"""

from typing import NamedTuple

import numpy as np

Array = np.ndarray
FEATURES, MOST = (3, 5, 8), 12
"""d of drawn sets of tokens, and their largest n. Two features are a regime of their own."""


class Size(NamedTuple):
    """Tokens n, features d and affine rank k of a generic set."""

    n: int
    d: int
    k: int


def _fewer(n: int, d: int, k: int) -> bool:
    return n < d and k == n - 1


def _square(n: int, d: int, k: int) -> bool:
    return n == d and k == n - 1


def _low(n: int, d: int, k: int) -> bool:
    return 1 <= k <= min(n - 2, d - 2)


def _many(n: int, d: int, k: int) -> bool:
    return n > d and k == d


def _hyperplane(n: int, d: int, k: int) -> bool:
    return n > d and k == d - 1


GENERIC = {
    "fewer tokens": _fewer,
    "as many tokens": _square,
    "low rank": _low,
    "many tokens": _many,
    "one rank less": _hyperplane,
}
"""Regimes of generic sets: fewer tokens than features, as many, affine rank at least two below
what n and d allow, more tokens than features, and the same of affine rank d − 1."""
REGIMES = (*GENERIC, "two features", "structured")


def sizes(regime: str) -> list[Size]:
    """The sizes of a generic regime, each drawn once a batch."""
    if regime == "two features":
        return [Size(n, 2, k) for n in range(2, MOST + 1) for k in range(1, min(n - 1, 2) + 1)]
    return [
        Size(n, d, k)
        for d in FEATURES
        for n in range(2, MOST + 1)
        for k in range(min(n - 1, d) + 1)
        if GENERIC[regime](n, d, k)
    ]


def token_sets(regime: str, seed: int, batch: int) -> list[Array]:
    """The sets of tokens of a regime in a batch."""
    rng = np.random.default_rng([seed, REGIMES.index(regime), batch])
    if regime == "structured":
        return [_structured(rng, kind, n, d) for kind in KINDS for d in FEATURES for n in (3, 6)]
    return [
        rng.normal(size=d) + rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
        for n, d, k in sizes(regime)
    ]


KINDS = ("through 0, one sign", "through 0, both signs", "along 1", "equal", "one norm")
"""Structured sets: multiples of one token, tokens that differ by multiples of the ones vector,
equal ones, and permutations of one token, which have one norm."""


def _structured(rng: np.random.Generator, kind: str, n: int, d: int) -> Array:
    token, factors = rng.normal(size=d), rng.uniform(0.5, 2.0, size=(n, 1))
    if kind == "through 0, both signs":
        factors[0] *= -1
    if kind == "along 1":
        return np.asarray(token + factors)
    if kind == "equal":
        return np.tile(token, (n, 1))
    if kind == "one norm":
        return np.array([rng.permutation(token) for _ in range(n)])
    return factors * token


class Layer(NamedTuple):
    """Tokens ``m + R`` near collapse, and the matrices of a layer: M of scores, W of values."""

    mean: Array
    centred: Array
    score: Array
    value: Array


def near_collapse(residual: float, n: int, d: int, seed: int, batch: int) -> Layer:
    """A drawn layer at tokens of that relative residual, ρ."""
    rng = np.random.default_rng([seed, len(REGIMES), batch])
    mean, centred = rng.normal(size=d), rng.normal(size=(n, d))
    centred -= centred.mean(0)
    odds = residual**2 / (1 - residual**2)
    centred *= np.sqrt(odds * n * (mean @ mean) / (centred**2).sum())
    score, value = rng.normal(size=(2, d, d)) / np.sqrt(d)
    return Layer(mean, centred, score / np.sqrt(d), value)
