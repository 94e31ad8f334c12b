"""Points where kernels reach: a mixture of the design and of the design tilted by each kernel.

With ``T_c = K_h^θ`` of component c, points x_i drawn in equal numbers from the C laws
``T_c(x)/E T_c · P(dx)`` represent P by the weights of the balance heuristic (Owen & Zhou 2000,
doi:10.1080/01621459.2000.10473909)

::

    p_i ∝ C / Σ_c T_c(x_i)/E T_c,        T_0 = 1,   θ = 0.4 θ_h and θ_h of every head

which the design itself, component 0, bounds by C. Every law here is a mixture of strata
``X = μ + τ F z`` with z standard normal, in which kernels that are Gaussian in the key have closed
forms. In coordinates y = Bᵀz of a head,

::

    log K = c + a·y − ½ Σ_j g_j y_j²,   E K^θ = exp(θc + ½ Σ_j [θ² a_j²/p_j − log p_j]),  p = 1 + θg
    y | tilt ~ N(θ a/p, 1/p)

Student's t is a mixture over its scale, by the trapezoid rule in log scale. Any function of
(stratum, z) serves as a tilt: other kernels take the gaussian one of their bandwidth, and where X
is a function of a normal point (of its direction on a sphere, of its quantiles in a cube), T is
taken at that point. A custom design is Student's t with its density over t's as a factor of p.
θ_h ≤ 1 is the largest at which the tilted law's divergence from the design is that of a shift by
``√(2 log n) + ½`` standard deviations: n keys reach no further. If E K is infinite (softmax of
Student's t), that holds stratum by stratum. Rows of a table are the law itself.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sims.problem import CustomDesign, GaussianDesign, Heads, Kernel, StudentDesign
from sims.problem.custom import FREEDOM
from sims.problem.design_laws import (
    CubeDesign,
    Design,
    MixtureDesign,
    SphereDesign,
    square_root,
)
from sims.problem.kernels import GAUSSIAN, QuadraticKernel, SoftmaxKernel
from sims.theory.arrays import Number, Numbers, namespace, repeated

SHARES = (0.4, 1.0)
"""Exponents of a head's two tilts, as shares of the largest that n keys reach."""
LEAST_EXPONENT = 2.0**-100
BISECTIONS = 14
"""Of log θ."""
SCALES = 256
"""Strata of Student's t."""
RAREST = 1e-11
"""Probability of scales of Student's t that are left out at either end."""


class Law(NamedTuple):
    """A law of keys as strata ``X = μ + τ F z``.

    Attributes:
        log_share: log of each stratum's probability, (L,).
        mean: μ, (L, d).
        scale: τ, (L,).
        factor: F, symmetric; one for each stratum or one for all, (L or 1, d, d).
    """

    log_share: Float[Numbers, " L"]
    mean: Float[Numbers, "L d"]
    scale: Float[Numbers, " L"]
    factor: Float[Numbers, "F d d"]


class Tilts(NamedTuple):
    """Laws of the C components of the mixture, at a query.

    Attributes:
        basis: B of each component, (C, F, d, k).
        shrink: ``p^{−½} − 1`` in those coordinates, (C, L, k).
        move: ``θ a/p``, (C, L, k).
        exponent: θ, (C, L).
        log_share: log of each stratum's probability, (C, L).
        log_mean: ``log E K^θ`` in the stratum, (C, L).
    """

    basis: Float[Numbers, "C F d k"]
    shrink: Float[Numbers, "C L k"]
    move: Float[Numbers, "C L k"]
    exponent: Float[Numbers, "C L"]
    log_share: Float[Numbers, "C L"]
    log_mean: Float[Numbers, "C L"]


class Points(NamedTuple):
    """Points of the law of a key: a law of N atoms, in which expectations are sums.

    Attributes:
        keys: (N, d).
        mass: probability of each, (N,).
    """

    keys: Float[Numbers, "*R N d"]
    mass: Float[Numbers, "*R N"]


def law_of(design: Design) -> Law:
    """The law of keys of a design that is not a table, before :func:`transported`."""
    d = design.dimension
    match design:
        case MixtureDesign():
            xp = namespace(design.means)
            share = xp.log(design.weights)
            return Law(share, design.means, xp.ones(len(design.means)), design.factors)
        case StudentDesign():
            return _student(design.factor, design.freedom)
        case CustomDesign():
            xp = namespace(design.mean)
            law = _student(xp.asarray(square_root(design.covariance)), xp.asarray(FREEDOM))
            return law._replace(mean=law.mean + design.mean)
        case SphereDesign():
            return _normal(design.radius / d**0.5 * np.eye(d))
        case CubeDesign():
            return _normal(design.half_width / 3**0.5 * np.eye(d))
        case _:
            assert isinstance(design, GaussianDesign)  # for the type checker
            return _normal(design.factor)


def _normal(factor: Float[Numbers, "d d"]) -> Law:
    xp = namespace(factor)
    return Law(xp.zeros(1), xp.zeros((1, len(factor))), xp.ones(1), factor[None])


def _student(factor: Float[Numbers, "d d"], freedom: Float[Numbers, ""]) -> Law:
    """``z √(ν/W)``, W ~ χ²_ν: the density of ``v = log W/ν``, ∝ exp(½ν (v − e^v)), on a lattice."""
    xp = namespace(factor)
    half = freedom / 2
    # P(W/ν < e^v) is about (half e^v)^half/Γ(half + 1) far to the left.
    low = xp.log(RAREST) / half - xp.log(half)
    high = xp.log(1 + 8 / xp.sqrt(half) + 30 / half)
    v = xp.linspace(low, high, SCALES)
    log_share = half * (v - xp.exp(v))
    log_share = log_share - _log_sum(log_share, 0)
    return Law(log_share, xp.zeros((SCALES, len(factor))), xp.exp(-v / 2), factor[None])


def transported(design: Design, points: Points) -> Points:
    """Points of the design from those of its :func:`law_of`."""
    keys, mass = points
    xp: Any = namespace(keys)
    match design:
        case SphereDesign():
            keys = keys * (design.radius / xp.sqrt((keys**2).sum(1, keepdims=True)))
        case CubeDesign():
            share = _normal_distribution(keys * (3**0.5 / design.half_width))
            keys = design.half_width * (2 * share - 1)
        case CustomDesign():
            assert design.log_density is not None  # for the type checker
            off = keys - design.mean
            square = (xp.linalg.solve(design.covariance, off.T).T * off).sum(1)
            log_student = -0.5 * (FREEDOM + keys.shape[1]) * xp.log1p(square / FREEDOM)
            log_mass = xp.log(mass) + xp.asarray(design.log_density(jnp.asarray(keys)))
            log_mass = log_mass - log_student
            mass = xp.exp(log_mass - _log_sum(log_mass, 0))
    return Points(keys, mass)


def _log_sum(values: Numbers, axis: int) -> Any:
    """``log Σ exp``."""
    xp = namespace(values)
    top = values.max(axis=axis, keepdims=True)
    return (top + xp.log(xp.exp(values - top).sum(axis=axis, keepdims=True))).squeeze(axis)


def tilts_at(law: Law, heads: Heads, x: Float[Numbers, " d"], n: Number, heavy: bool) -> Tilts:
    """The components at a query.

    Args:
        law: of the keys.
        heads: heads of any kernel.
        x: the query.
        n: number of keys.
        heavy: whether E K is infinite, so that strata are tilted each by itself.
    """
    xp = namespace(law.mean)
    basis, pull, precision, constant = _quadratics(law, heads, x)
    reach = 0.5 * (xp.sqrt(2 * xp.log(n)) + 0.5) ** 2

    def divergence(theta: Numbers) -> Any:
        """Of the tilted law from the design, (H, L)."""
        p = 1 + theta[..., None] * precision
        square = (theta[..., None] * pull) ** 2 / p
        within = 0.5 * (1 / p - 1 + xp.log(p) + square / p).sum(-1)
        if heavy:
            return within
        joint = law.log_share + theta * constant + 0.5 * (square - xp.log(p)).sum(-1)
        joint = joint - _log_sum(joint, 1)[:, None]
        total = (xp.exp(joint) * (joint - law.log_share + within)).sum(1)
        return xp.broadcast_to(total[:, None], within.shape)

    low = xp.full(constant.shape, np.log(LEAST_EXPONENT))
    high = xp.zeros(constant.shape)

    def halved(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
        middle = (low + high) / 2
        below = divergence(xp.exp(middle)) <= reach
        return xp.where(below, middle, low), xp.where(below, high, middle)

    _, high = repeated(halved, (low, high), BISECTIONS)
    largest = xp.exp(high)

    # Component 0 is the design: exponent 0 of the first head.
    of_heads = (largest[:, None] * np.array(SHARES)[:, None]).reshape(-1, len(law.scale))
    exponent = xp.concatenate([xp.zeros_like(of_heads[:1]), of_heads])
    head = component_heads(heads.count)
    pull = pull[head]
    p = 1 + exponent[..., None] * precision[head]
    move = exponent[..., None] * pull / p
    log_mean = exponent * constant[head] + 0.5 * (move**2 * p - xp.log(p)).sum(-1)
    log_share = law.log_share + log_mean
    log_share = log_share - _log_sum(log_share, 1)[:, None]
    return Tilts(basis[head], 1 / xp.sqrt(p) - 1, move, exponent, log_share, log_mean)


def component_heads(count: int) -> np.ndarray:
    """The head of each component; that of component 0 does not matter."""
    return np.concatenate([[0], np.repeat(np.arange(count), len(SHARES))])


def _quadratics(
    law: Law, heads: Heads, x: Float[Numbers, " d"]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """B (H, F, d, k), a and g (H, L, k), and c (H, L) of each head's logarithm of its tilt."""
    xp = namespace(law.mean)
    keys = heads.of_keys
    square = heads.bandwidth[:, None, None] ** 2
    query = xp.einsum("hdk,d->hk", heads.frames, x)
    offset = xp.einsum("hdk,ld->hlk", keys, law.mean)
    matrix = law.factor @ keys[:, None]
    scale = law.scale[:, None]
    if isinstance(heads.rule, SoftmaxKernel):
        matrix = matrix @ (query / square[..., 0])[:, None, :, None]
        size = xp.sqrt((matrix**2).sum(2, keepdims=True))
        basis = matrix / xp.where(size > 0, size, 1.0)
        pull = scale * size[:, :, 0]
        constant = xp.einsum("hlk,hk->hl", offset, query) / square[..., 0]
        return basis, pull, xp.zeros_like(pull), constant
    values, vectors = xp.linalg.eigh(xp.swapaxes(matrix, 2, 3) @ matrix)
    size = xp.sqrt(xp.maximum(values, 0.0))
    # Directions in which keys do not vary have size 0, and are left as they are.
    seen = size > 1e-12 * size[..., -1:]
    basis = matrix @ vectors / xp.where(seen, size, 1.0)[:, :, None]
    size = xp.where(seen, size, 0.0)
    rest = ((query[:, None] - offset)[:, :, None] @ vectors)[:, :, 0]
    spread = scale * size
    return basis, spread * rest / square, spread**2 / square, -0.5 * (rest**2 / square).sum(-1)


def tilted_points(
    law: Law,
    tilts: Tilts,
    heads: Heads,
    x: Float[Numbers, " d"],
    normal: Float[Numbers, "C m p"],
) -> Points:
    """Points from standard normal ones, as many of every component.

    Args:
        law: of the keys.
        tilts: the components.
        heads: the heads that they belong to.
        x: the query.
        normal: p = d, and one coordinate more, which chooses the stratum, where there are several.
    """
    xp = namespace(normal)
    count, size = normal.shape[:2]
    d = law.mean.shape[1]
    z = normal[..., :d]
    stratum = xp.zeros((count, size), int)
    if len(law.scale) > 1:
        edges = xp.cumsum(xp.exp(tilts.log_share), axis=1)[:, None, :-1]
        stratum = (_normal_distribution(normal[..., d])[..., None] > edges).sum(-1)
    component = np.arange(count)[:, None]
    basis = tilts.basis[:, 0] if len(law.factor) == 1 else tilts.basis[component, stratum]
    shrink = tilts.shrink[component, stratum]
    along = (z[..., None, :] @ basis)[..., 0, :] if basis.ndim == 4 else z @ basis
    along = shrink * along + tilts.move[component, stratum]
    if basis.ndim == 4:
        z = z + (basis @ along[..., None])[..., 0]
    else:
        z = z + along @ xp.swapaxes(basis, 1, 2)
    z = z.reshape(-1, d)
    stratum = stratum.ravel()
    keys = z @ law.factor[0]
    for index in range(1, len(law.factor)):
        keys = xp.where((stratum == index)[:, None], z @ law.factor[index], keys)
    keys = law.mean[stratum] + law.scale[stratum][:, None] * keys

    log_tilt = log_kernels(heads, x, keys, tilt_kernel(heads.kernel))[component_heads(heads.count)]
    ratio = tilts.log_share - tilts.log_mean - law.log_share
    log_ratio = tilts.exponent[:, stratum] * log_tilt + ratio[:, stratum]
    log_mass = -_log_sum(log_ratio, 0)
    return Points(keys, xp.exp(log_mass - _log_sum(log_mass, 0)))


def tilt_kernel(kernel: Kernel) -> Kernel:
    """The kernel whose powers are the tilts of this one."""
    return kernel if isinstance(kernel, QuadraticKernel) else GAUSSIAN


def log_kernels(
    heads: Heads, x: Float[Numbers, " d"], keys: Float[Numbers, "*R N d"], kernel: Kernel
) -> Float[Numbers, "H *R N"]:
    """log K of every head at points."""
    xp = namespace(keys)
    frames = heads.of_keys
    rows = []
    for head in range(heads.count):
        query = heads.frames[head].T @ x
        projected = xp.moveaxis(keys @ frames[head], -1, 0)
        rows.append(kernel.log_value(query, projected, heads.bandwidth[head]))
    return xp.stack(rows)


def _normal_distribution(normal: Numbers) -> Any:
    return namespace(normal).asarray(jax.scipy.special.ndtr(jnp.asarray(normal)))
