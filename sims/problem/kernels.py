"""Kernels: the weight of a key, given the projected query and the projected key."""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

from sims.base.errors import InputError, one_of
from sims.weights.rules import Scores, distance, dot_product

LogKernel = Callable[[Array, Array, Array], Array]
"""``(query (p, …), key (p, …), bandwidth ()) -> log K (…)``, coordinates first."""


LogRatio = Callable[[Array, Array, Array], Array]
"""``(query (p, …), key (p, …), anchor (p, …)) -> log K(q, k)/K(q, a) (…)`` at b = 1."""


@dataclass(frozen=True)
class Kernel:
    """A non-negative head kernel K(q, k) of the projected query q and key k.

    Attributes:
        name: name in experiment files.
        log_value: ``(query, key, bandwidth) -> log K``. Coordinates come first: query (p, …) and
            key (p, …) broadcast against each other, and the result has shape (…). A compact
            kernel returns −inf where it vanishes; NaN and +∞ are refused, anywhere in R^p. Written
            with :func:`over_coordinates`, it also runs inside the GPU kernel. A term that is the
            same for every key cancels from the weights.
        log_ratio: optionally ``(query, key, anchor) -> log K(q, k) − log K(q, a)`` at b = 1, for
            any anchor a, without forming the two logarithms: small where k is near a, however
            far q is. The engine takes the point nearest q in the keys' bounding box, keeps
            float32 accurate by it, and is about 1.5 times faster.
        scaled: whether K depends on q/b and k/b alone, but for a term that is the same for every
            key. The engine then divides by b once for all keys and passes b = 1; otherwise points
            stay as they are and b is passed. ``log_ratio`` is for scaled kernels.
        around: centre of K's level sets, for the nodes of exact theory: "query" (any
            function of k that is smooth in polar coordinates around q), "origin" (the same around
            0), or "line" (a function of ⟨q, k⟩ alone). It changes accuracy, never the limit,
            except that "line" leaves out all other coordinates of the key.
        support: radius, in units of b, of the ball around q outside which K is exactly 0; None
            for a kernel that never vanishes. Exact theory needs it of every kernel that does.
        power: ν of a kernel ``(1 − ‖q − k‖²/b²)₊^ν``, None for any other.
        scores: scores whose softmax gives these weights; None if there are none.

    Closed forms and native code belong to the classes :class:`GaussianKernel` and
    :class:`SoftmaxKernel`, whose functions are fixed: a different function under a known name gets
    neither.
    """

    name: str
    log_value: LogKernel
    log_ratio: LogRatio | None = None
    scaled: bool = True
    around: Literal["query", "origin", "line"] = "query"
    support: float | None = None
    power: int | None = None
    scores: Scores | None = None


def gaussian_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−‖q − k‖²/(2b²)``."""
    return -0.5 * _square(query, key, bandwidth)


def gaussian_log_ratio(query: Array, key: Array, anchor: Array) -> Array:
    """``⟨k − a, (q − a) − (k − a)/2⟩``, which is ``(‖q − a‖² − ‖q − k‖²)/2``."""
    return over_coordinates(lambda q, k, a: (k - a) * ((q - a) - 0.5 * (k - a)), query, key, anchor)


def softmax_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``⟨q, k⟩/s`` with temperature s = b² (a Transformer's default is s = √d_k)."""
    return over_coordinates(lambda q, k: (q / bandwidth) * (k / bandwidth), query, key)


def softmax_log_ratio(query: Array, key: Array, anchor: Array) -> Array:
    """``⟨q, k − a⟩``."""
    return over_coordinates(lambda q, k, a: q * (k - a), query, key, anchor)


def laplace_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−‖q − k‖/b``: a cusp at the query, exponential tails."""
    return -_root(_square(query, key, bandwidth))


def laplace_log_ratio(query: Array, key: Array, anchor: Array) -> Array:
    """``(‖q − a‖² − ‖q − k‖²)/(‖q − a‖ + ‖q − k‖)``."""
    total = _distance(query, key) + _distance(query, anchor)
    return 2 * gaussian_log_ratio(query, key, anchor) / jnp.where(total > 0, total, 1.0)


def _distance(query: Array, key: Array) -> Array:
    return _root(over_coordinates(lambda q, k: (q - k) ** 2, query, key))


def _root(square: Array) -> Array:
    # √ has no derivative at 0: two steps, as in polynomial_log.
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


STUDENT_FREEDOM = 3.0
"""Degrees of freedom ν of the student kernel."""


def student_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−((ν + p)/2) log(1 + ‖u‖²/ν)``, u = (q − k)/b ∈ R^p, ν = 3: multivariate t, heavy tails."""
    square = _square(query, key, bandwidth)
    return -0.5 * (STUDENT_FREEDOM + len(query)) * jnp.log1p(square / STUDENT_FREEDOM)


def polynomial_log(query: Array, key: Array, bandwidth: Array, power: int) -> Array:
    """``power · log(1 − ‖q − k‖²/b²)`` inside the ball of radius b around q, −inf outside.

    Epanechnikov, biweight and triweight for powers 1, 2, 3. α-entmax attention with
    α = 1 + 1/power is this kernel with an adaptive bandwidth; normalised ReLU attention on unit
    vectors, ``relu(⟨q, k⟩/γ + 1 − 2/b²)`` with γ = b²/2, is power 1 (arXiv 2601.22766).
    """
    inside = 1.0 - _square(query, key, bandwidth)
    # Two steps, because the derivative of log at 0 would reach through jnp.where as NaN.
    return jnp.where(inside > 0, power * jnp.log(jnp.where(inside > 0, inside, 1.0)), -jnp.inf)


def _square(query: Array, key: Array, bandwidth: Array) -> Array:
    return over_coordinates(lambda q, k: ((q - k) / bandwidth) ** 2, query, key)


def over_coordinates(term: Callable[..., Array], *points: Array) -> Array:
    """Sum of a term over coordinates, for points (p, …) or tuples of p arrays.

    Written out, since XLA's CPU code for a sum over a short leading axis is many times slower.
    """
    terms = [term(*map(operator.itemgetter(i), points)) for i in range(len(points[0]))]
    return functools.reduce(operator.add, terms)


class GaussianKernel(Kernel):
    """``exp(−‖q − k‖²/(2b²))``."""

    def __init__(self) -> None:
        super().__init__("gaussian", gaussian_log, gaussian_log_ratio, scores=distance)


class SoftmaxKernel(Kernel):
    """``exp(⟨q, k⟩/b²)``, softmax attention."""

    def __init__(self) -> None:
        super().__init__(
            "softmax",
            softmax_log,
            softmax_log_ratio,
            around="line",
            scores=dot_product,
        )


QuadraticKernel = GaussianKernel | SoftmaxKernel
"""Kernels whose logarithm is quadratic: under a Gaussian design they have closed forms."""


def _ball(name: str, power: int) -> Kernel:
    log_value = functools.partial(polynomial_log, power=power)
    return Kernel(name, log_value, support=1.0, power=power)


GAUSSIAN = GaussianKernel()
SOFTMAX = SoftmaxKernel()

KERNELS = {
    kernel.name: kernel
    for kernel in (
        GAUSSIAN,
        SOFTMAX,
        Kernel("laplace", laplace_log, laplace_log_ratio),
        Kernel("student", student_log),
        _ball("epanechnikov", 1),
        _ball("biweight", 2),
        _ball("triweight", 3),
    )
}
"""Every kernel by its name."""


def get_kernel(kernel: "str | Kernel") -> Kernel:
    """Kernel with the given name, or the given kernel."""
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise InputError("heads.kernel", kernel, one_of(sorted(KERNELS), kernel))
    return KERNELS[kernel]


def kernel_of(scores: Scores) -> Kernel | None:
    """Kernel whose weights are the softmax of these scores; None for other scores."""
    return next((kernel for kernel in KERNELS.values() if kernel.scores is scores), None)
