"""Frames: bases of the heads' subspaces, with prescribed principal angles."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base import threefry
from sims.base.checks import (
    as_floats,
    check_count,
    check_covariance,
    check_within,
    on_device,
    seeded_key,
)
from sims.base.errors import InputError


def gram(dimension: int, count: int, width: int, seed: int | None = 0, *, gram: ArrayLike) -> Array:
    """Frames with a prescribed Gram matrix in each direction.

    With the Gram matrix G_j of direction j, ``L_j = G_j^{1/2}`` and an orthonormal (d, H·d_k)
    matrix of column blocks Q_g: ``U_h[:, j] = Σ_g L_j[h, g] Q_g[:, j]``. Then
    ``U_hᵀU_g = diag_j(G_j[h, g])``: the principal angles' cosines are ``|G_j[h, g]|``.

    Args:
        dimension: d ≥ H·d_k.
        count: H.
        width: d_k.
        seed: random seed for the Haar-random orthonormal matrix; None uses the coordinate axes.
        gram: shape (H, H), the same for all directions, or (d_k, H, H); symmetric positive
            semidefinite with unit diagonal.

    Returns:
        Frames (H, d, d_k) with orthonormal columns.
    """
    _check_sizes(dimension, count, width, count * width)
    square = (count, count)
    matrices = np.asarray(as_floats("heads.frames.gram", gram, square, (width, *square)))
    matrices = np.broadcast_to(matrices, (width, *square))
    for matrix in matrices:
        check_covariance("heads.frames.gram", matrix)
    if not np.allclose(np.diagonal(matrices, axis1=1, axis2=2), 1.0, atol=1e-10):
        raise InputError("heads.frames.gram", "a diagonal entry other than 1", "unit diagonal")
    values, vectors = np.linalg.eigh(matrices)
    # An eigenvalue of 0 is computed as about eps·H, and its root would part aligned heads by 1e-8.
    rounding = 16 * count * np.finfo(values.dtype).eps
    roots = np.sqrt(np.where(values > rounding, values, 0.0))
    root = np.einsum("jhe,je,jge->jhg", vectors, roots, vectors)
    return on_device(np.einsum("jhg,dgj->hdj", root, _blocks(dimension, count, width, seed)))


def equiangular(
    dimension: int,
    count: int,
    width: int,
    seed: int | None = 0,
    *,
    cosine: ArrayLike | None = None,
    angle: ArrayLike | None = None,
) -> Array:
    """Frames with the same principal angles for all pairs: ``U_hᵀU_g = diag(cosine)``, h ≠ g.

    Args:
        dimension: d ≥ H·d_k.
        count: H.
        width: d_k.
        seed: random seed for the Haar-random orthonormal matrix; None uses the coordinate axes.
        cosine: c, a scalar, or one for each direction (d_k,); each in [−1/(H−1), 1].
        angle: angles in degrees, 0 to 90, in place of ``cosine``.

    Returns:
        Frames (H, d, d_k) with orthonormal columns.
    """
    _check_sizes(dimension, count, width)
    value = cosine if angle is None else angle
    if value is None or (cosine is not None and angle is not None):
        options = "neither" if value is None else "both"
        raise InputError("heads.frames", options, "exactly one of cosine and angle")
    field = "heads.frames.cosine" if angle is None else "heads.frames.angle"
    cosines = np.asarray(as_floats(field, value, (), (width,)))
    if angle is not None:
        check_within(field, angle, 0, 90, "degrees, ")
        # Exactly 0 at 90 degrees, where the cosine in radians is only 0 to rounding.
        cosines = np.where(cosines == 90, 0.0, np.cos(np.deg2rad(cosines)))
    matrices = [
        equicorrelated("heads.frames.cosine", count, c) for c in np.broadcast_to(cosines, (width,))
    ]
    return gram(dimension, count, width, seed, gram=np.stack(matrices))


def equicorrelated(field: str, count: int, correlation: float) -> Float[np.ndarray, "H H"]:
    """``(1 − c) I + c 11ᵀ``, positive semidefinite for c within [−1/(H−1), 1]."""
    lowest = -1.0 / (count - 1) if count > 1 else -1.0
    if not lowest - 1e-12 <= correlation <= 1:
        raise InputError(field, float(correlation), f"{lowest:.6g} (= -1/(H-1)) to 1")
    return (1 - correlation) * np.eye(count) + correlation * np.ones((count, count))


def haar(dimension: int, count: int, width: int, seed: int = 0) -> Array:
    """Independent Haar-random subspaces: frames (H, d, d_k) with orthonormal columns; d ≥ d_k."""
    _check_sizes(dimension, count, width)
    keys = threefry.split(seeded_key("heads.frames.seed", seed), count)
    return on_device(np.stack([threefry.orthogonal(key, dimension, width) for key in keys]))


def explicit(dimension: int, count: int, width: int, seed: int = 0, *, frames: ArrayLike) -> Array:
    """Frames given explicitly, shape (H, d, d_k). The seed is not used."""
    del seed
    return as_floats("heads.frames.frames", frames, (count, dimension, width))


def _check_sizes(dimension: int, count: int, width: int, minimum: int = 1) -> None:
    check_count("dimension", dimension)
    check_count("heads.count", count)
    check_count("heads.width", width)
    if width > dimension:
        raise InputError("heads.width", width, f"1 to dimension = {dimension}")
    if dimension < minimum:
        allowed = f"at least heads.count * heads.width = {minimum}"
        raise InputError("dimension", dimension, allowed)


def _basis(dimension: int, width: int, seed: int | None) -> np.ndarray:
    if seed is None:
        return np.eye(dimension, width)
    return threefry.orthogonal(seeded_key("heads.frames.seed", seed), dimension, width)


def _blocks(dimension: int, count: int, width: int, seed: int | None) -> np.ndarray:
    return _basis(dimension, count * width, seed).reshape(dimension, count, width)


FRAMES: dict[str, Callable[..., Array]] = {
    "equiangular": equiangular,
    "gram": gram,
    "haar": haar,
    "explicit": explicit,
}
"""Every family of frames: name to ``(dimension, count, width, seed, **options) -> (H, d, d_k)``."""
