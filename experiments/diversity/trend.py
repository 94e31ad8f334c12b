"""Is there a trend? Rank correlations of an index and the error over configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import rankdata

from sims.effects import Effect, of_batches
from sims.estimates import jackknife, mcse

from .quantities import APART, Arrays, Key, mean_error, relative_errors

TIED = 1e-9
"""Pseudo-values that differ by less in every batch are one number."""


def trends(
    regime: str, labels: Sequence[str], index: Mapping[Key, np.ndarray], data: Arrays, equal: bool
) -> dict[str, list[Effect]]:
    """Of every index an effect, :func:`rank_fall`: over all configurations, and over random ones.

    Args:
        regime: the point's name.
        labels: of the C configurations.
        index: pseudo-values (B, C) of each index.
        data: the regime's batches.
        equal: whether heads are equally good alone in all configurations. Then errors are relative
            to the mean of the heads' own, whose sampling errors cancel.
    """
    error = relative_errors if equal else mean_error
    values, each = jackknife(data, error), error(data)
    drawn = np.array([label.startswith("random") for label in labels])
    return {
        f"{regime}, trend over {which}": [
            rank_fall(regime, key, own[:, at], values[:, at], each[:, at])
            for key, own in index.items()
        ]
        for which, at in (("configurations", drawn | True), ("random frames", drawn))
        if at.any()
    }


def rank_fall(
    regime: str, key: Key, index: np.ndarray, error: np.ndarray, each: np.ndarray
) -> Effect:
    """Minus Spearman's rank correlation of an index and the error, on average over batches.

    Ranks of the index are those of all draws, ranks of the error those of a batch's own: a mean
    over all draws has ranks that no batch moves, so that a jackknife would find no error where it
    is only that none is seen. Noise of a batch may turn the correlation either way. So there is a
    bound: how far the correlation of both means over all draws is from the average over batches,
    and how much it could change if every pair whose order (by the index, or by the error) is not
    known to :data:`APART` standard errors were the other way round. More batches narrow it.

    Changing one pair (i, k) moves ranks i and k by one each, and the sum of products of the ranks a
    and b, both about their means, by ``|b_i − b_k|``; where ranks of both move, by no more than
    the product of the numbers of open pairs besides.

    Args:
        regime: the point's name.
        key: of the index; its matrix is a fact that a claim may select by.
        index: pseudo-values (B, C).
        error: pseudo-values (B, C).
        each: errors of each batch by itself, (B, C).
    """
    diverse, unclear = ranks(index)
    worse, unknown = ranks(error)
    own = rankdata(each, axis=-1)
    falls = -correlated(diverse, own - own.mean(-1, keepdims=True))
    moved = (
        np.sum(unclear * apart(worse)) / 2
        + np.sum(unknown * apart(diverse)) / 2
        + unclear.sum(1) @ unknown.sum(1)
    )
    change = moved / np.sqrt(np.sum(diverse**2) * np.sum(worse**2))
    bound = abs(falls.mean() + correlated(diverse, worse)) + change
    label, facts = f"{regime}, {', '.join(key)}", {"matrix": key[1]}
    effect = of_batches(label, falls, regime, bound=float(bound), at=facts)
    return replace(effect, narrowing=True)


def ranks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of means about their own mean, and which pairs are of an order that is not known.

    Numbers that are one in every batch share the average of their ranks, and have no order.

    Args:
        values: pseudo-values (B, C).

    Returns:
        Ranks (C,), ascending, and a symmetric matrix of truth values (C, C).
    """
    gaps = values[:, :, None] - values[:, None, :]
    equal = np.abs(gaps).max(0) < TIED
    means = np.where(equal, 0.0, gaps.mean(0))
    return np.sign(means).sum(1) / 2, ~equal & (np.abs(means) <= APART * mcse(gaps))


def apart(centred: np.ndarray) -> np.ndarray:
    """Distances of ranks, (C, C)."""
    return np.abs(centred[:, None] - centred)


def correlated(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlation of numbers whose mean is 0, along the last axis."""
    sizes = np.sum(first**2, axis=-1) * np.sum(second**2, axis=-1)
    return np.asarray(np.sum(first * second, axis=-1) / np.sqrt(sizes))
