"""Indices of signals, several indices at once, and rises that indices share, by hand."""

import numpy as np
import pytest

from experiments.diversity.effects import Rises, at_equal_diversity
from experiments.diversity.quantities import EVERY, index_of, keys_of, of_all
from experiments.diversity.regimes import SIXTEEN

BATCHES = 64
SQUARES = {f"equiangular {k / 20}": (k / 20) ** 2 for k in range(21)}
LABELS = [*SQUARES, "one pair", "a fan"]


def matrix(first, second, third):
    """Three heads of variance 1 with these products."""
    return np.array([[1.0, first, second], [first, 1.0, third], [second, third, 1.0]])


GRAM = np.stack(
    [matrix(c, c, c) for c in SQUARES.values()] + [matrix(0.9, 0, 0), matrix(0.6, 0.2, 0.4)]
)
"""Squared cosines."""


def means(repeats=0):
    """Signals c⁴, noise ½ + ½ c² of another size, biases 3 in common: errors are their sum."""
    signal, noise, bias = 2 * GRAM**2, 1.0 + 1.0 * GRAM, np.full_like(GRAM, 3.0)
    data = {"error_matrix": bias + signal + noise, "bias_matrix": bias, "noise_matrix": noise}
    return {k: np.stack([v] * repeats) for k, v in data.items()} if repeats else data


def test_index_of_signals_is_of_errors_without_bias_and_noise():
    found = index_of(("mean", "signal"), GRAM)(means())
    above = np.triu_indices(3, 1)
    assert found == pytest.approx([1 - (own[above] ** 2).mean() for own in GRAM])
    known = np.linalg.eigvalsh(GRAM**2)[:, -1]
    assert index_of(("top", "signal"), GRAM)(means()) == pytest.approx((3 - known) / 2)


def test_without_signal_variance_there_is_no_index_of_signals():
    data = means()
    data["error_matrix"] = data["error_matrix"].copy()
    data["error_matrix"][2, 0, 0] -= 2.5  # a variance of −½
    assert np.isnan(index_of(("mean", "signal"), GRAM)(data)).all()
    assert np.isfinite(index_of(("mean", "noise"), GRAM)(data)).all()


def test_errors_at_equal_diversity_are_those_of_each_index():
    """Closed forms: the `mean` of signals fixes the mean of c⁴, that of subspaces the one of c²."""
    keys = [("mean", "signal"), ("mean", "geometric")]
    found = at_equal_diversity("regime", keys, LABELS, means(BATCHES), GRAM)
    assert list(found) == keys

    def error(fourth, square):
        """Over the mean head error, 3 + 2 + 2."""
        return (7 + 2 * (3 + 2 * fourth + 1 + square)) / 3 / 7

    above = np.triu_indices(3, 1)
    for place, label in enumerate(LABELS[-2:]):
        c = GRAM[len(SQUARES) + place][above]
        fourth, square = (c**2).mean(), c.mean()
        equal = {keys[0]: error(fourth, np.sqrt(fourth)), keys[1]: error(square**2, square)}
        for key in keys:
            effect = found[key][place]
            assert effect.label == f"regime, {label}"
            assert effect.value == pytest.approx(error(fourth, square) / equal[key] - 1, abs=2e-5)
    assert found[keys[0]][0].value < -0.02
    assert found[keys[1]][0].value > 0.04


def test_rises_are_from_the_less_to_the_more_diverse_by_each_index():
    """Errors 1, 1.2 and 0.9; an index that rises along them, and the same backwards."""
    rng = np.random.default_rng(2)
    error = np.array([1.0, 1.2, 0.9]) * (1 + 1e-4 * rng.standard_normal((BATCHES, 3)))
    rises = error[:, None, :] / error[:, :, None] - 1
    index = np.array([0.1, 0.5, 0.8]) + 1e-4 * rng.standard_normal((BATCHES, 3))
    shared = Rises("regime", "abc", rises)
    for values, labels, expected in (
        (index, ["a to b", "a to c", "b to c"], [0.2, -0.1, -0.25]),
        (1 - index, ["b to a", "c to a", "c to b"], [1 / 1.2 - 1, 1 / 0.9 - 1, 1 / 3]),
    ):
        found = list(shared.along(values))
        assert [effect.label for effect in found] == labels
        assert [effect.value for effect in found] == pytest.approx(expected, abs=1e-3)
    # Where the order of a and b is not told, the rise may be off by all of it.
    unsure = index + np.array([0.4, 0.0, 0.0]) + 0.1 * rng.standard_normal((BATCHES, 3))
    first, *others = shared.along(unsure)
    assert (first.value, first.narrowing) == (0.0, True)
    assert first.bound == pytest.approx(0.2, abs=0.05)
    assert not any(effect.narrowing for effect in others)


def test_indices_of_a_regime():
    """All sixteen where targets are drawn, those of signals nowhere else, or `only` some."""
    drawn = keys_of({"drawn": True})
    assert set(SIXTEEN) <= set(drawn)
    assert ("inverse", "errors") in drawn
    assert not [key for key in keys_of({}) if key[1] == "signal"]
    assert keys_of({"drawn": True, "only": ["top, errors"]}) == [("top", "errors")]


def test_every_index_at_once_is_each_by_itself():
    """Pseudo-values of batches alike are the index of any of them."""
    every = of_all(EVERY, means(BATCHES), GRAM)
    for key, values in every.items():
        own = index_of(key, GRAM)(means())
        np.testing.assert_allclose(values, np.tile(own, (BATCHES, 1)), atol=1e-9)
