"""Sparse attention as weight rules with options: ReLU, α-entmax, top-k.

Each class maps the scores z of all n keys to their weights. The temperature s = b² is part of the
scores (:data:`~sims.weights.rules.SCORES`). :data:`FACTORIES` creates complete rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sims.base.checks import check_count, check_finite, check_positive
from sims.base.errors import InputError, one_of
from sims.weights.entmax import Entmax
from sims.weights.merged import merged
from sims.weights.rules import WeightRule, Weights, scores_of

ScoreName = Literal["dot", "distance"]


@dataclass(frozen=True)
class Relu:
    """Normalised ReLU weights, ``relu(z/γ + b)`` over its sum.

    With keys of equal norm R, dot products at temperature 1 and a query of norm a this is the
    Epanechnikov kernel of radius² ``a² + R² + 2γb``.

    Attributes:
        gain: γ > 0.
        offset: b.
        empty: weights of a row without a positive entry: ``zero``, all weights 0, so that the
            estimate counts as 0 and the query as empty; or ``uniform``, all weights 1/n.
    """

    gain: float
    offset: float
    empty: Literal["zero", "uniform"]

    def __post_init__(self) -> None:
        check_positive("heads.kernel.gain", self.gain)
        check_finite("heads.kernel.offset", self.offset)
        if self.empty not in ("zero", "uniform"):
            raise InputError("heads.kernel.empty", self.empty, one_of(("zero", "uniform"), ""))

    def __call__(self, scores: Float[Array, " n"]) -> Float[Array, " n"]:
        parts = jax.nn.relu(scores / self.gain + self.offset)
        total = jnp.sum(parts)
        nothing = 0.0 if self.empty == "zero" else 1 / len(scores)
        return jnp.where(total > 0, parts / jnp.where(total > 0, total, 1.0), nothing)


@dataclass(frozen=True)
class ReluGap:
    """Weights ``relu((z − max z)/γ + 1)`` over their sum, which are never empty.

    In distances it is the Epanechnikov kernel of radius² ``d_(1)² + 2sγ``, d_(1) that of the
    nearest key.

    Attributes:
        gain: γ > 0.
    """

    gain: float

    def __post_init__(self) -> None:
        check_positive("heads.kernel.gain", self.gain)

    def __call__(self, scores: Float[Array, " n"]) -> Float[Array, " n"]:
        top = jnp.max(scores)
        parts = jax.nn.relu((scores - jnp.where(jnp.isfinite(top), top, 0.0)) / self.gain + 1)
        return parts / jnp.maximum(jnp.sum(parts), 1.0)  # the best key's part is 1


@dataclass(frozen=True)
class TopK:
    """Weights of the k keys of highest score, 0 for all others; ties go to the first key.

    A key out of reach (z = −∞) has weight 0 even if it is among the k.

    Attributes:
        k: 1 to n.
        weighting: ``uniform``, or ``softmax`` of the k scores.
    """

    k: int
    weighting: Literal["uniform", "softmax"]

    def __post_init__(self) -> None:
        check_count("heads.kernel.k", self.k)

    def __call__(self, scores: Float[Array, " n"]) -> Float[Array, " n"]:
        if self.k > len(scores):
            raise InputError("heads.kernel.k", self.k, f"1 to n = {len(scores)}")
        best, places = lax.top_k(scores, self.k)
        if self.weighting == "uniform":
            parts = jnp.isfinite(best).astype(scores.dtype)
        else:
            shifted = best - lax.stop_gradient(jnp.where(jnp.isfinite(best[0]), best[0], 0.0))
            parts = jnp.exp(shifted)
        parts = parts / jnp.where(parts[0] > 0, jnp.sum(parts), 1.0)
        return jnp.zeros_like(scores).at[places].set(parts)


def _rule(name: str, scores: str, weights: Weights, least: int = 1) -> WeightRule:
    return WeightRule(f"{name} ({scores})", scores_of(scores), weights, least)


def relu(
    gain: float = 1.0,
    offset: float = 0.0,
    empty: Literal["zero", "uniform"] = "zero",
    scores: ScoreName = "dot",
) -> WeightRule:
    """Normalised ReLU attention, :class:`Relu`."""
    return _rule("relu", scores, Relu(gain, offset, empty))


def relu_gap(gain: float = 1.0, scores: ScoreName = "dot") -> WeightRule:
    """ReLU of the gap to the best key, :class:`ReluGap`."""
    return _rule("relu_gap", scores, ReluGap(gain))


def sparsemax(scores: ScoreName = "dot") -> WeightRule:
    """The projection of the scores on the probability simplex: :class:`.entmax.Entmax`, ν = 1."""
    return _rule("sparsemax", scores, Entmax(1.0))


def entmax(
    nu: float | None = None, alpha: float | None = None, scores: ScoreName = "dot"
) -> WeightRule:
    """α-entmax, :class:`.entmax.Entmax`, given by ν > 0 or by α = 1 + 1/ν > 1.

    Raises:
        InputError: both or neither are given, or one is out of its range.
    """
    if nu is None and alpha is not None:
        check_positive("heads.kernel.alpha", alpha)
        if alpha <= 1:
            raise InputError("heads.kernel.alpha", alpha, "> 1 (α = 1 is the kernel softmax)")
        return _rule("entmax", scores, Entmax(1 / (alpha - 1)))
    if nu is None or alpha is not None:
        got = "neither" if nu is None else "both"
        raise InputError("heads.kernel", got, "exactly one of nu, alpha")
    return _rule("entmax", scores, Entmax(nu))


def top_k(k: int, scores: ScoreName = "dot") -> WeightRule:
    """Equal weights of the k best keys, :class:`TopK`."""
    return _rule("top_k", scores, TopK(k, "uniform"), k)


def top_k_softmax(k: int, scores: ScoreName = "dot") -> WeightRule:
    """Softmax over the k best keys, :class:`TopK`."""
    return _rule("top_k_softmax", scores, TopK(k, "softmax"), k)


FACTORIES: dict[str, Callable[..., WeightRule]] = {
    "relu": relu,
    "relu_gap": relu_gap,
    "sparsemax": sparsemax,
    "entmax": entmax,
    "top_k": top_k,
    "top_k_softmax": top_k_softmax,
    "merged": merged,
}
"""Every weight rule that a file can name, by its ``kind``; the arguments are its options."""
