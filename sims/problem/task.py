"""The problem: a task (which generates the data), heads (which estimate the target) and queries."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base import threefry
from sims.base.checks import (
    as_floats,
    as_numbers,
    check_count,
    check_non_negative,
    check_within,
    device_key,
    is_concrete,
    on_device,
    seeded_key,
)
from sims.base.errors import InputError
from sims.base.identity import digest
from sims.problem.design_laws import Design, with_root
from sims.problem.kernel_check import check_kernel
from sims.problem.kernels import KERNELS, Kernel, get_kernel
from sims.problem.regression import CustomTarget, Function, Target
from sims.weights import RULES, WeightRule, check_rule


class Task(eqx.Module):
    """``Y = m(X) + ε`` with X ~ design and ``Var ε = noise_sd²``, independent of X.

    Args:
        design: distribution of X in R^d.
        target: m, on the same R^d: one of :data:`~sims.problem.TARGETS`, or any function
            ``(…, d) -> (…)`` in ``jax.numpy``, which becomes a
            :class:`~sims.problem.CustomTarget`.
        noise_sd: σ ≥ 0.

    Raises:
        InputError: the design or target is invalid, their dimensions differ, or σ is not a
            number ≥ 0.
    """

    design: Design
    target: Target
    noise_sd: Float[Array, ""]

    def __init__(self, design: Design, target: Target | Function, noise_sd: ArrayLike) -> None:
        if not isinstance(design, Design):
            raise InputError("design", design, "a Design, such as DESIGNS['isotropic'](d)")
        if not isinstance(target, Target):
            if not callable(target) or isinstance(target, type):
                allowed = "a function (…, d) -> (…) in jax.numpy, or a Target such as "
                allowed += "TARGETS['rbf'](d); a model of another library: HostReplicates"
                raise InputError("target", target, allowed)
            target = CustomTarget(design.dimension, target)
        if target.dimension != design.dimension:
            allowed = f"the design's d = {design.dimension}"
            raise InputError("target.dimension", target.dimension, allowed)
        if isinstance(target, CustomTarget):
            target.check_under(design)
        self.design = design
        self.target = target
        self.noise_sd = as_numbers("noise_sd", noise_sd, ())
        check_non_negative("noise_sd", self.noise_sd)

    @property
    def dimension(self) -> int:
        """Ambient dimension d."""
        return self.design.dimension


BANDWIDTHS = (1e-12, 1e12)
"""Allowed bandwidths: squared distances over b stay finite in single precision too."""


class Heads(eqx.Module):
    """H heads, head h with weights of the projected query ``U_hᵀx`` and keys ``V_hᵀX``.

    Args:
        frames: U, shape (H, d, d_k), which project queries; any frames, orthonormal or not.
        kernel: a name; a custom :class:`~sims.problem.kernels.Kernel`, for Nadaraya–Watson weights
            ``K(U_hᵀx, V_hᵀX)/ΣK``; or a :class:`~sims.weights.WeightRule`, such as those that
            :data:`sims.weights.FACTORIES` create. A custom one is checked at a few points.
        bandwidth: b within :data:`BANDWIDTHS`, a scalar or one per head, (H,). The temperature of
            the softmax kernel and of weight rules is b².
        key_frames: V, of the shape of U, which project keys; None is V = U.
    """

    frames: Float[Array, "H d d_k"]
    bandwidth: Float[Array, " H"]
    key_frames: Float[Array, "H d d_k"] | None
    rule: Kernel | WeightRule = eqx.field(static=True)

    def __init__(
        self,
        frames: ArrayLike,
        kernel: str | Kernel | WeightRule,
        bandwidth: ArrayLike,
        key_frames: ArrayLike | None = None,
    ) -> None:
        self.frames = as_floats("heads.frames", frames)
        if self.frames.ndim != 3 or not self.frames.size:
            raise InputError("heads.frames", self.frames.shape, "shape (H, d, d_k), no empty axis")
        self.key_frames = None
        if key_frames is not None:
            self.key_frames = as_floats("heads.key_frames", key_frames, self.frames.shape)
        width = as_numbers("heads.bandwidth", bandwidth, (), (self.count,))
        check_within("heads.bandwidth", width, *BANDWIDTHS)
        if is_concrete(width):  # NumPy has nothing to compile
            self.bandwidth = on_device(np.broadcast_to(width, (self.count,)))
        else:
            self.bandwidth = jnp.broadcast_to(width, (self.count,))
        if isinstance(kernel, str) and kernel in RULES:
            kernel = RULES[kernel]
        self.rule = kernel if isinstance(kernel, WeightRule) else get_kernel(kernel)
        if isinstance(self.rule, WeightRule):
            check_rule(self.rule, self.width)
        elif self.rule not in KERNELS.values():  # those in KERNELS have tests
            check_kernel(self.rule, self.width)

    @property
    def of_keys(self) -> Float[Array, "H d d_k"]:
        """Frames V that project keys: ``key_frames``, or else the queries' frames."""
        return self.frames if self.key_frames is None else self.key_frames

    @property
    def kernel(self) -> Kernel:
        """Kernel K of weights K/ΣK.

        Raises:
            InputError: the weights follow another rule.
        """
        if not isinstance(self.rule, Kernel):
            allowed = "a Kernel with weights K/ΣK (simulation accepts every weight rule)"
            raise InputError("heads.kernel", f"weight rule {self.rule.name}", allowed)
        return self.rule

    @property
    def count(self) -> int:
        """Number of heads H."""
        return self.frames.shape[0]

    @property
    def dimension(self) -> int:
        """Ambient dimension d."""
        return self.frames.shape[1]

    @property
    def width(self) -> int:
        """Head dimension d_k."""
        return self.frames.shape[2]


def gaussian_queries(
    dimension: int, count: int, scale: float, seed: int = 0
) -> Float[Array, "Q d"]:
    """Queries ``x ~ N(0, scale²·I)``; scale (κ) 0 puts every query at the origin."""
    _check_sizes(dimension, count)
    check_non_negative("queries.scale", scale)
    key = seeded_key("queries.seed", seed)
    return as_floats("queries.scale", scale * threefry.normal(key, (count, dimension)))


def correlated_queries(
    dimension: int, count: int, covariance: ArrayLike, scale: float = 1.0, seed: int = 0
) -> Float[Array, "Q d"]:
    """Queries ``x ~ N(0, scale²·Σ)``: with the keys' Σ they follow the keys, shrunk by κ.

    Args:
        dimension: d.
        count: Q, at least 1.
        covariance: Σ, shape (d, d), symmetric and positive semidefinite.
        scale: κ ≥ 0; 0 puts every query at the origin.
        seed: random seed; with Σ = I the draws equal those of :func:`gaussian_queries`.

    Raises:
        InputError: a size is not a count, κ is negative, or Σ is not a covariance of shape (d, d).
    """
    isotropic = gaussian_queries(dimension, count, scale, seed)
    as_floats("queries.covariance", covariance, (dimension, dimension))
    return isotropic @ with_root("queries.covariance", covariance)[1]


def ball_queries(dimension: int, count: int, radius: float, seed: int = 0) -> Float[Array, "Q d"]:
    """Queries uniform in the ball of the given radius around the origin."""
    _check_sizes(dimension, count)
    check_non_negative("queries.radius", radius)
    key = device_key("queries.seed", seed)
    unit = jax.random.ball(key, dimension, shape=(count,), dtype=jnp.float64)
    return as_floats("queries.radius", radius * unit)


def explicit_queries(
    dimension: int, count: int, points: ArrayLike, seed: int = 0
) -> Float[Array, "Q d"]:
    """Queries given explicitly, shape (Q, d). The seed is not used."""
    del seed
    _check_sizes(dimension, count)
    return as_floats("queries.points", points, (count, dimension))


def _check_sizes(dimension: int, count: int) -> None:
    check_count("dimension", dimension)
    check_count("queries.count", count)


QUERIES: dict[str, Callable[..., Array]] = {
    "gaussian": gaussian_queries,
    "correlated": correlated_queries,
    "ball": ball_queries,
    "explicit": explicit_queries,
}
"""Every distribution of queries: name to ``(dimension, count, …, seed) -> (Q, d)``."""


MOST_KEYS = 2**53
"""Largest n: larger integers are not exact in float64."""


def check_compatible(task: Task, heads: Heads, n: int, queries: ArrayLike) -> Float[Array, "Q d"]:
    """Queries as an array (Q, d), after checks that the parts of a problem fit together."""
    if heads.dimension != task.dimension:
        raise InputError("heads.frames", heads.frames.shape, f"(H, {task.dimension}, d_k)")
    check_count("n", n)
    if n > MOST_KEYS:
        raise InputError("n", n, f"at most {MOST_KEYS}")
    if isinstance(heads.rule, WeightRule) and heads.rule.least > n:
        raise InputError("n", n, f"{heads.rule.least} or more, which {heads.rule.name} weighs")
    queries = as_floats("queries", queries)
    if queries.ndim != 2 or queries.shape[1] != task.dimension or not len(queries):
        raise InputError("queries", queries.shape, f"shape (Q, {task.dimension}), Q >= 1")
    return queries


def problem_digest(
    task: Task, heads: Heads, n: int, queries: ArrayLike, weights: ArrayLike | None = None
) -> str:
    """Digest of a problem, by which both methods name it; empty if its code has no digest."""
    if weights is None:
        weights = np.full(heads.count, 1 / heads.count)
    try:
        return digest(task, heads, int(n), np.asarray(queries, float), np.asarray(weights, float))
    except InputError:
        return ""
