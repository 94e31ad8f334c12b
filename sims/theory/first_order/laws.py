"""Angle laws: closed forms for families of problems, averaged over random queries.

Both angle laws are reconstructions; their derivations are in ``docs/theory/angles.md``.
They are first order in 1/n, for X ~ N(0, I), frames with orthonormal columns that project queries
and keys alike (except in :func:`softmax_overlap_of_maps`), one bandwidth for all heads and queries
x ~ N(0, κ²I).
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import as_floats, check_non_negative, check_positive, is_concrete
from sims.base.errors import InputError
from sims.problem import Kernel
from sims.problem.kernels import GAUSSIAN, GaussianKernel, SoftmaxKernel, get_kernel
from sims.theory.arrays import Numbers, namespace

Overlap = Callable[[ArrayLike, ArrayLike, ArrayLike], Numbers]
"""``(cosine, bandwidth, query_scale) -> ρ``."""


def gaussian_overlap(
    cosine: ArrayLike, bandwidth: ArrayLike, query_scale: ArrayLike
) -> Float[Numbers, "*c"]:
    """Contribution of a principal angle to r_hg = E[K_hK_g]/(E K_h E K_g), gaussian kernel.

    With t = 1 + b²::

        ρ(c) = t² / √((t² − κ²c²)² − c²(t − κ²)²)

    which increases strictly in ``|c|`` from ρ(0) = 1. At κ = 0 it is ``(1 − c²/t²)^{−1/2}``; for
    small b, ``ρ(1) ≈ (2b²)^{−1/2}`` at κ = 0, the classical ∫K²/b.

    Args:
        cosine: c in [−1, 1], the cosine of a principal angle.
        bandwidth: b > 0.
        query_scale: κ ≥ 0, in the unit of the keys' standard deviation. The average over queries
            is finite where ``t² + |c|(t − κ²) > κ²c²`` (for all c iff κ² < t(t + 1)/2, so always
            when κ ≤ 1) and infinite elsewhere.

    Returns:
        ρ, dimensionless, in the broadcast shape.

    Raises:
        InputError: an argument is out of its range.
    """
    c, b, kappa = _arguments(cosine, bandwidth, query_scale)
    # The determinant of a Gaussian integral over queries; where it is not positive, no average.
    xp = namespace(c)
    t = 1.0 + b**2
    # A difference of squares as a product, whose first factor is positive wherever it is finite.
    part = xp.abs(c) * (t - kappa**2)
    finite = t**2 + part > kappa**2 * c**2
    squared = (t**2 + part - kappa**2 * c**2) * (t**2 - part - kappa**2 * c**2)
    return xp.where(finite, t**2 / xp.sqrt(xp.where(finite, squared, 1.0)), xp.inf)


def softmax_overlap(
    cosine: ArrayLike, bandwidth: ArrayLike, query_scale: ArrayLike
) -> Float[Numbers, "*c"]:
    """Contribution of a principal angle to r_hg for the softmax kernel of temperature s = b².

    ``r_hg(x) = exp(xᵀP_hP_gx/s²)``, and on the plane of one principal angle the symmetric part of
    P_hP_g has eigenvalues c(c ± 1)/2, so with a = κ²/s²::

        ρ(c) = [1 − 2ac² − a²c²(1 − c²)]^{−1/2}

    The average is over both signs of the query's alignment; at one query the covariance depends
    on that sign, which the gaussian kernel's does not.

    Args:
        cosine: c in [−1, 1].
        bandwidth: b > 0.
        query_scale: κ ≥ 0; finite where ``a·|c|(1 + |c|) < 1`` (for all c iff a < ½), else
            infinite.

    Returns:
        ρ, dimensionless, in the broadcast shape.

    Raises:
        InputError: an argument is out of its range.
    """
    c, b, kappa = _arguments(cosine, bandwidth, query_scale)
    # The same determinant, of I − 2κ² times the symmetric part of P_hP_g/s².
    xp = namespace(c)
    a = (kappa / b**2) ** 2
    finite = a * xp.abs(c) * (1 + xp.abs(c)) < 1
    inverse = 1.0 - 2.0 * a * c**2 - a**2 * c**2 * (1 - c**2)
    return xp.where(finite, xp.where(finite, inverse, 1.0) ** -0.5, xp.inf)


def softmax_overlap_of_maps(
    frames: ArrayLike, key_frames: ArrayLike, bandwidth: ArrayLike, query_scale: ArrayLike
) -> Float[Array, "*sets H H"]:
    """Query-averaged overlap of softmax heads whose queries and keys have separate maps.

    A head's scores are ``xᵀU_hV_hᵀX/s``. For keys N(0, I) its weights are those of the tilt
    ``A_hx`` with ``A_h = V_hU_hᵀ/s``, two heads overlap by ``exp(xᵀA_hᵀA_gx)``, and averaged over
    x ~ N(0, κ²I)::

        r_hg = det[I − κ²(A_hᵀA_g + A_gᵀA_h)]^{−1/2}

    With ``V_h = U_h`` it is the product over principal angles of :func:`softmax_overlap`.

    Args:
        frames: U, shape (…, H, d, d_k), which project queries.
        key_frames: V, of the shape of U, which project keys.
        bandwidth: b > 0 of all heads; the temperature is s = b².
        query_scale: κ ≥ 0.

    Returns:
        r, dimensionless; infinite where the average is infinite. The noise covariance is σ²r/n.

    Raises:
        InputError: shapes disagree, or an argument is out of its range.
    """
    query_maps = as_floats("frames", frames)
    key_maps = as_floats("key_frames", key_frames)
    if query_maps.ndim < 3 or key_maps.shape != query_maps.shape:
        allowed = f"the frames' shape {query_maps.shape}, (…, H, d, d_k)"
        raise InputError("key_frames", key_maps.shape, allowed)
    b = as_floats("bandwidth", bandwidth)
    kappa = as_floats("query_scale", query_scale)
    check_positive("bandwidth", b)
    check_non_negative("query_scale", kappa)
    maps = jnp.einsum("...hdk,...hek->...hde", key_maps, query_maps) * (kappa / b**2)
    forms = jnp.einsum("...hed,...gef->...hgdf", maps, maps)
    inverse = jnp.linalg.eigvalsh(jnp.eye(maps.shape[-1]) - forms - jnp.swapaxes(forms, -1, -2))
    finite = inverse[..., 0] > 0
    return jnp.where(
        finite, jnp.prod(jnp.where(finite[..., None], inverse, 1.0), -1) ** -0.5, jnp.inf
    )


def noise_correlation_law(
    cosines: ArrayLike,
    bandwidth: ArrayLike,
    query_scale: ArrayLike,
    kernel: str | Kernel = GAUSSIAN,
) -> Float[Numbers, "*batch"]:
    """Noise correlation of two heads: ``Π_j ρ(cos θ_j)/ρ(1)``, a ratio of query averages.

    It is 1 for aligned subspaces.
    """
    rho = overlap_of(kernel)
    with np.errstate(invalid="ignore"):  # NaN where both averages are infinite
        ratio = rho(cosines, bandwidth, query_scale) / rho(1.0, bandwidth, query_scale)
    return ratio.prod(-1)


def overlap_of(kernel: str | Kernel) -> Overlap:
    """Function ρ(cosine, bandwidth, query_scale) of a kernel with an angle law, by name or object.

    Raises:
        InputError: the kernel has no angle law.
    """
    match get_kernel(kernel):
        case GaussianKernel():
            return gaussian_overlap
        case SoftmaxKernel():
            return softmax_overlap
        case other:
            raise InputError("kernel", other.name, "gaussian, softmax")


def _arguments(
    cosine: ArrayLike, bandwidth: ArrayLike, query_scale: ArrayLike
) -> tuple[Numbers, Numbers, Numbers]:
    c: Numbers = as_floats("cosine", cosine)
    if is_concrete(c) and not (np.abs(np.asarray(c)) <= 1 + 1e-12).all():
        raise InputError("cosine", float(np.abs(np.asarray(c)).max()), "-1 to 1")
    b: Numbers = as_floats("bandwidth", bandwidth)
    kappa: Numbers = as_floats("query_scale", query_scale)
    check_positive("bandwidth", b)
    check_non_negative("query_scale", kappa)
    if all(map(is_concrete, (c, b, kappa))):  # NumPy has nothing to compile
        c, b, kappa = map(np.asarray, (c, b, kappa))
    return c, b, kappa
