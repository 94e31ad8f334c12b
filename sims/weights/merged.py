"""Merged keys: s neighbours in a sequence become one key, their sum under fixed gates.

A chunk of s tokens is one *slot* with the key ``Σ_i g_i k_i`` and the value ``Σ_i g_i Y_i``. Slots
are weighed by softmax, of dot products or of squared distances, so that token i of a slot with the
weight p has the weight ``g_i p``: a weight rule that depends on the order of the keys. The last
chunk may be incomplete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from sims.base.checks import as_floats, check_count
from sims.weights.rules import Scores, WeightRule, scores_of


@dataclass(frozen=True)
class SlotScores:
    """Scores of all tokens, each the score of its slot.

    Attributes:
        gates: g, (s,), one number per position in a chunk.
        score: function that scores a slot's key, as for any key.
    """

    gates: tuple[float, ...]
    score: Scores

    def __call__(self, query: Array, keys: Array, bandwidth: ArrayLike) -> Array:
        stride = len(self.gates)
        n = keys.shape[-1]
        padded = jnp.pad(keys, [(0, 0)] * (keys.ndim - 1) + [(0, -n % stride)])
        chunks = padded.reshape(*keys.shape[:-1], -1, stride)
        slots = chunks @ jnp.asarray(self.gates, keys.dtype)
        return jnp.repeat(self.score(query, slots, bandwidth), stride)[:n]


@dataclass(frozen=True)
class SlotWeights:
    """Weights ``g_i`` times softmax over slots, from scores that all tokens of a slot share.

    Attributes:
        gates: g, (s,).
    """

    gates: tuple[float, ...]

    def __call__(self, scores: Float[Array, " n"]) -> Float[Array, " n"]:
        stride = len(self.gates)
        n = len(scores)
        slots = jnp.repeat(jax.nn.softmax(scores[::stride]), stride)[:n]
        return slots * jnp.tile(jnp.asarray(self.gates, scores.dtype), -(-n // stride))[:n]


def merged(
    stride: int, gates: Sequence[float] | None = None, scores: Literal["dot", "distance"] = "dot"
) -> WeightRule:
    """Weight rule that merges ``stride`` neighbouring keys.

    Args:
        stride: s.
        gates: g, (s,); None is the mean, 1/s each. Weights sum to ``Σ g``.
        scores: ``dot``, softmax attention; or ``distance``, a gaussian kernel of slots.

    Raises:
        InputError: gates are not s finite numbers, or the scores are unknown.
    """
    check_count("heads.kernel.stride", stride)
    values = np.full(stride, 1 / stride) if gates is None else gates
    gate_values = tuple(np.asarray(as_floats("heads.kernel.gates", values, (stride,))).tolist())
    slots = SlotScores(gate_values, scores_of(scores))
    return WeightRule(f"merged by {stride} ({scores})", slots, SlotWeights(gate_values), stride)
