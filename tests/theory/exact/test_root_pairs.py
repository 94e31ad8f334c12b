"""A pair's expectations under adaptive radii, by enumeration of all sets of a few keys."""

from itertools import product

import numpy as np
import pytest

from sims.theory.exact.root import Side, pair_integrand

PLACES = np.array([0.5, 0.3, 0.2])
"""Probabilities of three places that a key may be at."""


@pytest.mark.theory
def test_terms_of_a_pair_by_all_sets_of_five_keys():
    """``E Σ_i κ'_h Σ_j κ'_g T exp(iωΣκ_h + ivΣκ_g)``, T being 1 or the sums of two terms of a pair.

    Of a law on three places every one of 3⁵ sets of keys is gone through.
    """
    n, rng = 5, np.random.default_rng(2)
    kappa, slope, target = rng.normal(size=(3, 2, 3))
    frequencies = [rng.normal(size=2), rng.normal(size=4)]
    measures = [rng.normal(size=(len(w), 2)) @ [1, 1j] for w in frequencies]
    scales, sides, alone = (0.9, 0.4), [], []
    for h in (0, 1):
        wave = np.exp(1j * np.outer(frequencies[h], kappa[h]))
        parts = {(0, 0, 0): wave - 1, (1, 1, 0): wave * slope[h], (1, 0, 1): wave * kappa[h]}
        parts[1, 1, 1] = parts[1, 1, 0] * kappa[h]
        sides.append(Side(np.zeros(3), scales[h], measures[h], parts))
        own = np.stack([PLACES, PLACES * target[h]], axis=1)
        alone.append({name: part @ own for name, part in parts.items()})
    functions = [np.ones(3), target[0], target[1], target[0] * target[1]]
    values = np.stack([np.diag(PLACES * function) for function in functions])
    found = pair_integrand(n, tuple(sides), tuple(alone), values)

    expected = np.zeros(3, complex)
    for places in product(range(3), repeat=n):
        at = list(places)
        law = np.prod(PLACES[at])
        for h in (0, 1):
            law *= measures[h] @ np.exp(1j * frequencies[h] * kappa[h, at].sum())
            law *= slope[h, at].sum()
        sums = (kappa * target)[:, at].sum(axis=1)
        expected += law * np.array([1, sums.prod(), kappa[:, at].prod(axis=0).sum()])
    scale = scales[0] * scales[1]
    np.testing.assert_allclose(found, expected.real * [1, scale, scale], rtol=1e-10)
