"""Items: heads and pairs at a query on their way to accuracy."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from sims.problem.kernels import Kernel, QuadraticKernel, SoftmaxKernel, over_coordinates
from sims.theory.exact.conditioning import PairProjection, Projection
from sims.theory.exact.laplace import LEAST_RANK, Head, Proposal, Regression, Single
from sims.theory.exact.pair_rules import Conditional, Mehler
from sims.theory.exact.pairs import Pair
from sims.theory.exact.solution import Place
from sims.theory.exact.truncation import Extent

WIDEN = 1.2
"""Factor by which importance proposals are widened: tails that are too thin cost more than ones too
thick."""
GRID_WIDEN = 1.1
"""The same for grids, which need less: their weights are not random."""
CONCENTRIC = 1e-9
"""Distance of two heads' centres, in standard deviations, below which they are one point."""


def _quadratic_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−½ ‖q − k‖²`` over all coordinates but the last, of which k enters linearly."""
    del bandwidth
    return over_coordinates(lambda q, k: -0.5 * (q - k) ** 2, query[:-1], key[:-1]) + key[-1]


QUADRATIC = Kernel("quadratic", _quadratic_log)
"""The gaussian and the softmax kernel in one, so that they share their programs."""


def program_kernel(kernel: Kernel) -> Kernel:
    """The kernel that integrals of this one are compiled with."""
    return QUADRATIC if isinstance(kernel, QuadraticKernel) else kernel


def pad(array: np.ndarray, *sizes: int) -> np.ndarray:
    """The array padded with zeros to at least these sizes (``np.pad`` takes ten times as long)."""
    out = np.zeros(np.maximum(array.shape, sizes))
    out[tuple(map(slice, array.shape))] = array
    return out


def padded(regression: Regression) -> Regression:
    """The regression with zero loadings on padded coordinates; a ``second`` of no columns stays."""
    first = np.asarray(regression.first)
    second = np.asarray(regression.second)
    if first.size:
        first = pad(first, 0, LEAST_RANK)
    if second.size:
        second = pad(second, 0, LEAST_RANK)
    return regression._replace(first=first, second=second)


def head_arrays(kernel: Kernel, projection: Projection, extent: Extent, rank: int) -> Head:
    """A head as the integrals take it, padded to that rank; 0 pads nothing."""
    k = projection.rank
    shape = extent.radius * projection.shape
    log_scale = np.linalg.slogdet(shape)[1] - 0.5 * k * np.log(2 * np.pi)
    matrix = projection.map
    query = projection.query
    bandwidth = projection.bandwidth
    if program_kernel(kernel) is QUADRATIC:
        # −½ ‖(q − Z)/b‖² in the first rows; ⟨q, Z⟩/b² in the last. One of them is 0.
        rows = max(len(query), LEAST_RANK)
        joint = np.zeros((rows + 1, k))
        point = np.zeros(rows + 1)
        if isinstance(kernel, SoftmaxKernel):
            joint[-1] = query @ matrix / bandwidth**2
        else:
            joint[: len(query)] = matrix / bandwidth
            point[: len(query)] = query / bandwidth
        matrix = joint
        query = point
        bandwidth = 1.0
    centre = pad(projection.centre, rank)
    shape = pad(shape, rank, rank)
    return Head(pad(matrix, 0, rank), query, centre, shape, bandwidth, extent.low, log_scale)


@dataclass
class HeadItem:
    """A head at a query on its way to accuracy.

    Attributes:
        place: query and head, twice.
        head: its projection.
        extent: where its integrals live.
        value: its integrals, once computed.
        level: level of the nodes that the value was computed on.
    """

    place: Place
    head: Projection
    extent: Extent
    value: Single | None = None
    level: int = 0

    def points(self, step: float) -> int:
        """Points of the grid in log s."""
        return int(np.ceil((self.extent.high - self.extent.low) / step)) + 1

    def proposal(self) -> Proposal:
        """N(mean, L Lᵀ) around where the head responds."""
        return _gaussian(np.eye(self.head.rank) + _excess(self.extent), self.extent.shift)


@dataclass
class PairItem:
    """A pair at one query on its way to accuracy.

    Attributes:
        place: query and heads.
        first, second: its heads; the first has the smaller reach.
        projection: both in canonical coordinates.
        value, error: its integrals and their errors, once computed.
    """

    place: Place
    first: HeadItem
    second: HeadItem
    projection: PairProjection
    value: Pair | None = None
    error: Pair | None = None

    @property
    def heads(self) -> tuple[HeadItem, HeadItem]:
        """The two heads."""
        return self.first, self.second

    @property
    def concentric(self) -> bool:
        """True if ξ_g is ξ_h, and both heads' kernels are arranged around one point of it."""
        first = self.projection.first
        second = self.projection.second
        return bool(
            first.rank == second.rank
            and np.all(self.projection.correlation == 1.0)
            and np.allclose(first.centre, second.centre, rtol=0, atol=CONCENTRIC)
        )

    @property
    def ranks(self) -> tuple[int, int]:
        """Numbers of coordinates that the heads see."""
        return self.projection.first.rank, self.projection.second.rank

    @property
    def frozen(self) -> int:
        """Directions, the first ones, in which head g sees exactly what head h sees."""
        return int(np.sum(self.projection.correlation == 1.0))

    def points(self, step: float) -> int:
        """Points of both heads' grids in log s."""
        return max(self.first.points(step), self.second.points(step))

    def arrays(self, kernel: Kernel, rank: int) -> tuple[Head, Head]:
        """Arrays of the two heads for the integrals."""
        return (
            head_arrays(kernel, self.projection.first, self.first.extent, rank),
            head_arrays(kernel, self.projection.second, self.second.extent, rank),
        )

    def proposal(self) -> Proposal:
        """N(mean, L Lᵀ) around where both heads respond, in coordinates (ξ_h, v)."""
        # Linear maps from (ξ_h, v) to ξ_h and to ξ_g = ρ ξ_h + √(1−ρ²) v.
        rho = self.projection.correlation
        k, second_rank = self.ranks
        width = len(rho)
        first_map = np.eye(k, k + second_rank)
        second_map = np.zeros((second_rank, k + second_rank))
        second_map[:, k:] = np.eye(second_rank)
        second_map[range(width), range(width)] = rho
        second_map[range(width), range(k, k + width)] = np.sqrt(1 - rho**2)
        # The design's precision, and what each kernel adds to it where it responds.
        precision = np.eye(k + second_rank)
        shift = np.zeros(k + second_rank)
        maps = zip((first_map, second_map), self.heads, self.projection.rotations, strict=True)
        for into, item, rotation in maps:
            precision = precision + into.T @ (rotation.T @ _excess(item.extent) @ rotation) @ into
            shift = shift + into.T @ (rotation.T @ item.extent.shift)
        return _gaussian(precision, shift)

    def conditional(self) -> Conditional:
        """Location and scale of v given ξ_h, for a Gauss–Hermite grid."""
        rho = self.projection.correlation
        k, second_rank = self.ranks
        width = len(rho)
        scale = np.ones(second_rank)
        slope = np.zeros((second_rank, k))
        scale[:width] = np.sqrt(1 - rho**2)
        slope[range(width), range(width)] = rho
        # The conditional Gaussian of v: precision I + S E S, mean by S (shift − E ρ ξ_h), with S =
        # diag √(1−ρ²) and E what the kernel adds to the precision of ξ_g.
        rotation = self.projection.rotations[1]
        excess = rotation.T @ _excess(self.second.extent) @ rotation
        covariance = np.linalg.inv(np.eye(second_rank) + scale[:, None] * excess * scale)
        pull = covariance * scale
        root = np.linalg.cholesky(covariance)
        root[:, self.frozen :] *= GRID_WIDEN
        return Conditional(
            pad(pull @ rotation.T @ self.second.extent.shift, LEAST_RANK),
            pad(-pull @ excess @ slope, LEAST_RANK, LEAST_RANK),
            pad(root, LEAST_RANK, LEAST_RANK),
            np.sum(np.log(np.diag(root))),
        )

    def mehler(self) -> Mehler:
        """The joint density of the heads' coordinates, for canonical correlations below 1."""
        rho = self.projection.correlation
        gap = 1 - rho**2
        return Mehler(
            pad(rho / gap, LEAST_RANK),
            pad(0.5 * rho**2 / gap, LEAST_RANK),
            -0.5 * np.sum(np.log(gap)),
        )


def _excess(extent: Extent) -> Float[np.ndarray, "k k"]:
    """Precision that the kernel adds to the design's in the fitted region."""
    values, vectors = np.linalg.eigh(extent.precision - np.eye(len(extent.shift)))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _gaussian(precision: Float[np.ndarray, "p p"], shift: Float[np.ndarray, " p"]) -> Proposal:
    covariance = np.linalg.inv(precision)
    return Proposal(covariance @ shift, WIDEN * np.linalg.cholesky(covariance))
