"""What is to be computed: heads and pairs at a query, with their extents; and which are copies."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array

from sims.problem import Heads
from sims.problem.kernels import KERNELS, Kernel, over_coordinates
from sims.theory.exact_integrals import LEAST_RANK, Head, Proposal, Regression, Single
from sims.theory.exact_law import GaussianLaw, PairProjection, Projection
from sims.theory.exact_pairs import Mehler
from sims.theory.exact_range import Range
from sims.theory.exact_scattered import Conditional

WIDEN = 1.2
"""Importance proposals are widened: tails that are too thin cost more than ones too thick."""
GRID_WIDEN = 1.1
"""The same for grids, which need less: their weights are not random."""


def _quadratic_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−½ ‖q − k‖²`` over all coordinates but the last, of which k enters linearly."""
    del bandwidth
    return over_coordinates(lambda q, k: -0.5 * (q - k) ** 2, query[:-1], key[:-1]) + key[-1]


QUADRATIC = Kernel("quadratic", _quadratic_log)
"""The gaussian and the softmax kernel in one, so that they share their programs."""
_SHARED = (KERNELS["gaussian"], KERNELS["softmax"])


def program_kernel(kernel: Kernel) -> Kernel:
    """The kernel that integrals of this one are compiled with."""
    return QUADRATIC if kernel in _SHARED else kernel


def _pad(array: Any, *sizes: int) -> Any:
    """With zeros behind, to at least these sizes (as ``np.pad``, at a tenth of its time)."""
    out = np.zeros([max(size, least) for size, least in zip(array.shape, sizes, strict=True)])
    out[tuple(slice(size) for size in array.shape)] = array
    return out


def head_arrays(kernel: Kernel, projection: Projection, extent: Range, padded: bool) -> Head:
    """A head as the integrals take it, ``padded`` to the rank that grids have at least."""
    k, shape = projection.rank, extent.radius * projection.shape
    log_scale = np.linalg.slogdet(shape)[1] - 0.5 * k * np.log(2 * np.pi)
    matrix, query, bandwidth = projection.map, projection.query, projection.bandwidth
    if program_kernel(kernel) is QUADRATIC:
        rows = max(len(query), LEAST_RANK)
        linear = kernel is KERNELS["softmax"]
        parts = np.zeros((rows + 1, k)), np.zeros(rows + 1)
        if linear:
            parts[0][-1] = query @ matrix / bandwidth**2
        else:
            parts[0][: len(query)], parts[1][: len(query)] = matrix / bandwidth, query / bandwidth
        (matrix, query), bandwidth = parts, 1.0
    rank = LEAST_RANK if padded else 0
    arrays: Any = (
        _pad(matrix, 0, rank),
        query,
        _pad(projection.centre, rank),
        _pad(shape, rank, rank),
        bandwidth,
        extent.low,
        log_scale,
    )
    return Head(*arrays)


def _padded(regression: Regression) -> Regression:
    """With zero loadings on the coordinates that padding adds; a ``second`` of no columns stays."""
    first, second = (
        _pad(part, 0, LEAST_RANK) if part.size else part
        for part in (regression.first, regression.second)
    )
    return regression._replace(first=first, second=second)


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

    def arrays(self, kernel: Kernel, random: bool, law: GaussianLaw) -> tuple[Any, ...]:
        head = head_arrays(kernel, self.head, self.extent, not random)
        regression = law.given_one(self.head)
        return (head, regression, self.proposal()) if random else (head, _padded(regression))


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

    @property
    def frozen(self) -> int:
        """Directions, the first ones, in which head g sees exactly what head h sees."""
        return int(np.sum(self.view.correlation == 1.0))

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
        root = np.linalg.cholesky(covariance)
        root[:, self.frozen :] *= GRID_WIDEN
        arrays: Any = (
            _pad(pull @ rotation.T @ self.second.extent.shift, LEAST_RANK),
            _pad(-pull @ excess @ into, LEAST_RANK, LEAST_RANK),
            _pad(root, LEAST_RANK, LEAST_RANK),
            np.sum(np.log(np.diag(root))),
        )
        return Conditional(*arrays)

    def arrays(
        self, kernel: Kernel, curves: tuple[Single, Single], method: str, law: GaussianLaw
    ) -> tuple[Any, ...]:
        grid = method != "sobol"
        heads = (
            head_arrays(kernel, self.view.first, self.first.extent, grid),
            head_arrays(kernel, self.view.second, self.second.extent, grid),
        )
        rho = self.view.correlation
        if not grid:
            return heads, curves, law.given_rest(self.view), rho, self.proposal()
        if method == "hermite":
            regression = _padded(law.given_rest(self.view))
            return heads, curves, regression, _pad(rho, LEAST_RANK), self.conditional()
        gap = 1 - rho**2
        arrays: Any = (
            _pad(rho / gap, LEAST_RANK),
            _pad(0.5 * rho**2 / gap, LEAST_RANK),
            -0.5 * np.sum(np.log(gap)),
        )
        return heads, curves, _padded(law.given_both(self.view)), Mehler(*arrays)


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

        self._singles: dict[tuple[int, int], bytes] = {}

    def single(self, q: int, h: int) -> bytes:
        if (q, h) not in self._singles:
            self._singles[q, h] = self._name(
                self._cross[h, h], self._target[h], self._query[q, h], self._bandwidth[h]
            )
        return self._singles[q, h]

    def pair(self, q: int, h: int, g: int) -> bytes:
        return self.single(q, h) + self.single(q, g) + self._name(self._cross[h, g])

    @staticmethod
    def _name(*parts: Any) -> bytes:
        # Adding 0 turns −0 into 0, which has other bytes.
        return b"".join((np.round(part, 11) + 0.0).tobytes() for part in parts)
