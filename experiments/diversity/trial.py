"""A trial of the listed configurations: by first-order theory, the worst pair of all of them.

Where every law is invariant under rotations, the products of two heads' errors depend on their
subspaces through the principal angles alone. With one angle θ a pair, a configuration of H heads is
H unit vectors, and its matrices are functions of their angles: tabulated once, they make a
configuration cost microseconds. So the supremum of the rise can be looked for over all of them,
where a simulation can only go through a list.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

from sims.diversity import DEFINITIONS

from .regimes import Regime

Key = tuple[str, str]
"""Definition and version of an index."""
VERSIONS = ("noise", "total", "errors")
"""Versions of an index whose matrices are tabulated; the geometric one is ``cos² θ``."""
SHRINKING = 0.8
"""Of the search's steps, from one round to the next."""


class Family:
    """The configurations of a regime with one principal angle a pair, by first-order theory.

    A configuration is H unit vectors, (…, H, H): the subspaces are those of ``u_h ⊗ I``.

    Args:
        angles: knots of the tables, ascending from 0 to π/2.
        parts: predictions of two heads at each angle, as ``averaged`` gives them.
        heads: H.
    """

    def __init__(self, angles: np.ndarray, parts: xr.Dataset, heads: int):
        bias, signal, noise = (parts[f"{k}_matrix"].values for k in ("bias", "signal", "noise"))
        matrices = (noise, signal + noise, bias + signal + noise)
        self.heads, self.sets = heads, len(bias)
        self._tables = {}
        for version, sets in zip(VERSIONS, matrices, strict=True):
            # The average over sets first: what is searched, and every set after it. A function of
            # cos² θ has no slope at either end.
            every = np.concatenate([sets.mean(0, keepdims=True), sets])
            alone = np.trace(every, axis1=-2, axis2=-1) / 2
            self._tables[version] = [
                CubicSpline(angles, column, bc_type="clamped")
                for column in every[..., 0, 1] / alone
            ]

    def matrix(self, vectors: np.ndarray, version: str, column: int = 0) -> np.ndarray:
        """``M_hg/M_hh`` of each configuration: the average over sets, or of set ``column − 1``."""
        cosines = np.abs(vectors @ np.swapaxes(vectors, -1, -2))
        cosines[..., np.arange(self.heads), np.arange(self.heads)] = 1.0
        if version == "geometric":
            return cosines**2
        angles = np.arccos(np.clip(cosines, 0.0, 1.0))
        return np.asarray(self._tables[version][column](angles))

    def error(self, vectors: np.ndarray, column: int = 0) -> np.ndarray:
        """The ensemble's error over that of a head alone, (…)."""
        return self.matrix(vectors, "errors", column).mean((-2, -1))

    def index(self, vectors: np.ndarray, key: Key, column: int = 0) -> np.ndarray:
        """The index, (…)."""
        return DEFINITIONS[key[0]](self.matrix(vectors, key[1], column))


def two_heads(regime: Regime, angles: np.ndarray) -> Regime:
    """The regime with two heads, at one angle after another."""
    dimension, width = regime.frames.shape[-2:]
    lines = np.zeros((len(angles), 2, dimension // width))
    lines[:, 0, 0] = 1.0
    lines[:, 1, 0], lines[:, 1, 1] = np.cos(angles), np.sin(angles)
    return regime._replace(
        labels=tuple(f"{angle:.4f}" for angle in angles),
        frames=jnp.asarray(np.kron(lines[..., None], np.eye(width))),
        covariance=jnp.broadcast_to(regime.covariance[0], (len(angles), dimension, dimension)),
        bandwidth=regime.bandwidth[:2],
    )


def scattered(count: int, heads: int, rng: np.random.Generator) -> np.ndarray:
    """Configurations, (count, H, H), of heads close to, or far from, one to H common directions.

    The common directions of every other configuration are orthogonal.
    """
    common = _unit(rng.normal(size=(count, heads, heads)))
    common[::2] = np.linalg.qr(common[::2])[0]
    near = rng.integers(heads, size=(count, heads)) % rng.integers(1, heads + 1, (count, 1))
    spread = 10 ** rng.uniform(-2.0, 0.5, (count, 1, 1))
    drawn = rng.normal(size=(count, heads, heads))
    return _unit(np.take_along_axis(common, near[..., None], 1) + spread * drawn)


def worst_pairs(
    family: Family,
    keys: Sequence[Key],
    *,
    configurations: int,
    levels: int,
    rounds: int,
    step: float,
    seed: int,
) -> xr.Dataset:
    """For every index, the pair of the family with the largest rise of the error, and this rise.

    Of a pair (A, B), with B no less diverse than A by the index, the rise is ``MSE_B/MSE_A − 1``.
    Between the two lies a level of the index: A has the least error up to it, B the largest from it
    on. At many levels at once both are looked for among scattered configurations and then, round by
    round, around the best found, in smaller and smaller steps; at last around the worst pair.

    A set s of draws has tables of its own, by which the pair differs in diversity. To first order
    the largest rise by these is ``rise_s + λ order_s``, with λ the price of diversity: by how much
    the largest rise falls when B has to be more diverse by one unit (the envelope theorem).

    Args:
        family: of a regime.
        keys: the indices, of continuous definitions.
        configurations: scattered ones; half as many are tried in every round, a tenth at last.
        levels: of the index, quantiles of the scattered configurations.
        rounds: of refinement.
        step: of diversity, from which λ is had by a difference.
        seed: of the search.

    Returns:
        ``worst_index`` (searched), definition and version; ``worst_rise`` (searched, set), the
        largest relative rise by each of theory's sets; ``worst_cosines`` (searched, which, head,
        head2), of A and of B.
    """
    rng = np.random.default_rng(seed)
    start = scattered(configurations, family.heads, rng)
    errors = family.error(start)

    def around(found: np.ndarray, count: int, size: float) -> np.ndarray:
        each = np.repeat(found, count, axis=0)
        return np.concatenate([found, _unit(each + size * rng.normal(size=each.shape))])

    def refined(pair: np.ndarray, key: Key, least: float) -> np.ndarray:
        for turn in range(rounds):
            pool = around(pair, configurations // 20, 0.05 * SHRINKING**turn)
            pair = pool[list(_worst(family.index(pool, key), family.error(pool), least))]
        return pair

    def rise(pair: np.ndarray, column: int = 0) -> float:
        less, more = family.error(pair, column)
        return float(more / less - 1)

    rises, cosines = [], []
    for key in keys:
        pool, index, error = start, family.index(start, key), errors
        level = np.quantile(index, (np.arange(levels)[:, None] + 0.5) / levels)
        for turn in range(rounds):
            low = np.where(index <= level, error, np.inf).argmin(1)
            high = np.where(index >= level, error, -np.inf).argmax(1)
            best = pool[np.concatenate([low, high])]
            pool = around(best, configurations // (4 * levels), 0.5 * SHRINKING**turn)
            index, error = family.index(pool, key), family.error(pool)
        pair, apart = (
            refined(pool[list(_worst(index, error, least))], key, least) for least in (0.0, step)
        )
        price = (rise(pair) - rise(apart)) / step
        sets = range(1, family.sets + 1)
        order = np.array([np.diff(family.index(pair, key, column))[0] for column in sets])
        rises.append(np.array([rise(pair, column) for column in sets]) + price * order)
        cosines.append(np.abs(pair @ np.swapaxes(pair, -1, -2)))
    by = "searched"
    data = {
        "worst_index": (by, [", ".join(key) for key in keys]),
        "worst_rise": ((by, "set"), np.stack(rises)),
        "worst_cosines": ((by, "which", "head", "head2"), np.stack(cosines)),
    }
    return xr.Dataset(data)


def _worst(index: np.ndarray, error: np.ndarray, least: float) -> tuple[int, int]:
    """Places of the pair of which the second is more diverse by ``least`` or more, and worst."""
    order = np.argsort(index, kind="stable")
    index, error = index[order], error[order]
    lowest = np.minimum.accumulate(error)
    at = np.maximum.accumulate(np.where(error == lowest, np.arange(len(error)), 0))
    below = np.searchsorted(index, index - least, side="right") - 1
    ratio = np.where(below >= 0, error / lowest[below], 0.0)
    more = int(ratio.argmax())
    return int(order[at[below[more]]]), int(order[more])


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
