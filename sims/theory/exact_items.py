"""What is to be computed: heads and pairs at a query, with their extents; and which are copies."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.problem import Heads
from sims.theory.exact_integrals import Head, Proposal, Single
from sims.theory.exact_law import GaussianLaw, PairProjection, Projection
from sims.theory.exact_pairs import Mehler
from sims.theory.exact_range import Range
from sims.theory.exact_scattered import Conditional

WIDEN = 1.2
"""Importance proposals are widened: tails that are too thin cost more than ones too thick."""
GRID_WIDEN = 1.1
"""The same for grids, which need less: their weights are not random."""


def head_arrays(projection: Projection, extent: Range) -> Head:
    """A head as the integrals take it."""
    shape = extent.radius * projection.shape
    log_scale = np.linalg.slogdet(shape)[1] - 0.5 * projection.rank * np.log(2 * np.pi)
    arrays: Any = (
        projection.map,
        projection.query,
        projection.centre,
        shape,
        projection.bandwidth,
        extent.low,
        log_scale,
    )
    return Head(*arrays)


@dataclass
class One:
    """One head at one query on its way to accuracy.

    ``truth`` is m(x); ``value`` and ``error`` are a ``Single`` each, once computed.
    """

    head: Projection
    extent: Range
    truth: float
    value: Any = None
    error: Any = None
    done: bool = False
    level: int = 0

    @property
    def mean_error(self) -> float:
        """Of E f̂, which is centre · reach."""
        error = self.error.centre * self.value.reach
        if self.value.reach < 1:  # 1 is exact: a kernel that never vanishes
            error = error + self.error.reach * np.abs(self.value.centre)
        return float(error)

    def count(self, step: float) -> int:
        """Points of the grid in log s."""
        return int(np.ceil((self.extent.high - self.extent.low) / step)) + 1

    def proposal(self) -> Proposal:
        """N(mean, L Lᵀ) around where the head responds."""
        excess = _excess(self.extent)
        return _gaussian(np.eye(self.head.rank) + excess, self.extent.shift)

    def arrays(self, random: bool, law: GaussianLaw) -> tuple[Any, ...]:
        items = (head_arrays(self.head, self.extent), law.given_one(self.head))
        return (*items, self.proposal()) if random else items


@dataclass
class Two:
    """A pair at one query on its way to accuracy; ``value``, ``error``: a ``Pair`` each."""

    first: One
    second: One
    view: PairProjection
    value: Any = None
    error: Any = None
    done: bool = False

    @property
    def concentric(self) -> bool:
        """Whether ξ_g is ξ_h, and both heads' kernels are arranged around one point of it.

        The first head is then the one with the smaller reach, where both respond.
        """
        first, second = self.view.first, self.view.second
        return bool(
            first.rank == second.rank
            and np.all(self.view.correlation == 1.0)
            and np.allclose(first.centre, second.centre, rtol=0, atol=1e-9)
        )

    @property
    def ranks(self) -> tuple[int, int]:
        return self.view.first.rank, self.view.second.rank

    def count(self, step: float) -> int:
        return max(self.first.count(step), self.second.count(step))

    def proposal(self) -> Proposal:
        """N(mean, L Lᵀ) around where both heads respond, in coordinates (ξ_h, v)."""
        width, (k, other) = len(self.view.correlation), self.ranks
        into_first, into_second = np.eye(k, k + other), np.zeros((other, k + other))
        into_second[:, k:] = np.eye(other)
        into_second[range(width), range(width)] = self.view.correlation
        into_second[range(width), range(k, k + width)] = np.sqrt(1 - self.view.correlation**2)
        precision, shift = np.eye(k + other), np.zeros(k + other)
        for into, one, rotation in zip(
            (into_first, into_second), (self.first, self.second), self.view.rotations, strict=True
        ):
            precision = precision + into.T @ (rotation.T @ _excess(one.extent) @ rotation) @ into
            shift = shift + into.T @ (rotation.T @ one.extent.shift)
        return _gaussian(precision, shift)

    def conditional(self) -> Conditional:
        """Where v matters given ξ_h, for a Gauss–Hermite grid."""
        width, (k, other) = len(self.view.correlation), self.ranks
        scale, into = np.ones(other), np.zeros((other, k))
        scale[:width] = np.sqrt(1 - self.view.correlation**2)
        into[range(width), range(width)] = self.view.correlation
        rotation = self.view.rotations[1]
        excess = rotation.T @ _excess(self.second.extent) @ rotation
        covariance = np.linalg.inv(np.eye(other) + scale[:, None] * excess * scale)
        pull = covariance * scale
        root = GRID_WIDEN * np.linalg.cholesky(covariance)
        arrays: Any = (
            pull @ rotation.T @ self.second.extent.shift,
            -pull @ excess @ into,
            root,
            np.sum(np.log(np.diag(root))),
        )
        return Conditional(*arrays)

    def arrays(
        self, curves: tuple[Single, Single], method: str, law: GaussianLaw
    ) -> tuple[Any, ...]:
        heads = (
            head_arrays(self.view.first, self.first.extent),
            head_arrays(self.view.second, self.second.extent),
        )
        rho = self.view.correlation
        if method == "product":
            gap = 1 - rho**2
            arrays: Any = (rho / gap, 0.5 * rho**2 / gap, -0.5 * np.sum(np.log(gap)))
            return heads, curves, law.given_both(self.view), Mehler(*arrays)
        extra = self.conditional() if method == "hermite" else self.proposal()
        return heads, curves, law.given_rest(self.view), rho, extra


def _excess(extent: Range) -> np.ndarray:
    """What the kernel adds to the design's precision in the fitted region."""
    values, vectors = np.linalg.eigh(extent.precision - np.eye(len(extent.shift)))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _gaussian(precision: np.ndarray, shift: np.ndarray) -> Proposal:
    covariance = np.linalg.inv(precision)
    arrays: Any = (covariance @ shift, WIDEN * np.linalg.cholesky(covariance))
    return Proposal(*arrays)


class Identity:
    """Names of problems that are equal to rounding, so that copies are computed once.

    Everything the integrals depend on goes into the name: what the head sees of design, query and
    target. Redundant views give one head and one pair a query; most frames give no copies.
    """

    def __init__(self, law: GaussianLaw, heads: Heads, queries: np.ndarray) -> None:
        frames = np.asarray(heads.frames)
        self._cross = np.einsum("hdi,de,gej->hgij", frames, law.covariance, frames, optimize=True)
        self._target = np.einsum("jd,hdi->hji", law.spread, frames, optimize=True)
        self._query = np.einsum("qd,hdi->qhi", queries, frames)
        self._bandwidth = np.asarray(heads.bandwidth)

    def single(self, q: int, h: int) -> bytes:
        return self._name(self._cross[h, h], self._target[h], self._query[q, h], self._bandwidth[h])

    def pair(self, q: int, h: int, g: int) -> bytes:
        return self.single(q, h) + self.single(q, g) + self._name(self._cross[h, g])

    @staticmethod
    def _name(*parts: Any) -> bytes:
        # Adding 0 turns −0 into 0, which has other bytes.
        return b"".join((np.round(part, 11) + 0.0).tobytes() for part in parts)
