"""Problems of the law ``collapse``: a Transformer's layer, and stacks of such layers.

Both methods take tokens, score biases and the layer whose heads are to be recovered from here.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from sims.attention.attention import causal_mask, distance_bias
from sims.study.problem import Drawn

ALONE = "attention alone"
NONE, MASK, BIAS = "none", "causal mask", "distance bias"
DECODED = 16
"""Tokens, at most, from whose outputs the heads are recovered."""


class Layer(NamedTuple):
    """A layer whose heads are ``Y_h = F_h V_h`` with V_h of independent N(0, 1) entries.

    Attributes:
        factors: F, (H, n, r): the identity, or what attention leaves of the tokens, of mean square
            1 a row.
        gates: gates that are 1, and g in (0, 1), (2, n, H).
        output: W_O by heads, (H, d_k, d).
        selectivity: n_eff/n, the inverse of the mean Σw² of a row of attention, over n.
    """

    factors: np.ndarray
    gates: np.ndarray
    output: np.ndarray
    selectivity: float


class Problem(Drawn):
    """One problem of the law."""

    @property
    def width(self) -> int:
        """d_k: two at least, since a plain sum of heads of width 1 leaves a token its sign."""
        return max(2, round(self["channels"] * self["dimension"] / self["heads"]))

    @property
    def alone(self) -> bool:
        """True for attention without a residual stream."""
        return self["block"] == ALONE

    @property
    def scaled(self) -> bool:
        """True if branches of a residual stream are scaled by 1/√L."""
        return self["branches"] == "scaled" and not self.alone

    @property
    def values(self) -> int:
        """Dimension that values are mapped through: H d_k, and d_k of a plain sum."""
        return self.width * (1 if self["output"] == "plain sum" else self["heads"])

    @property
    def bias(self) -> np.ndarray | None:
        """Score bias by position, (n, n), −∞ where a causal mask hides; None without positions."""
        n = self["tokens"]
        hidden = np.where(causal_mask(n), 0.0, -np.inf)
        return {MASK: hidden, BIAS: distance_bias(n, self["slope"])}.get(self["positions"])

    def tokens(self, rng: np.random.Generator, *lead: int) -> np.ndarray:
        """Tokens (…, n, d) of unit variance a feature, two of them of the drawn mean cosine."""
        cosine = self["cosine"]
        d = self["dimension"]
        common = rng.normal(size=(*lead, 1, d))
        apart = rng.normal(size=(*lead, self["tokens"], d))
        return cosine**0.5 * common + (1 - cosine) ** 0.5 * apart

    def matrices(self, rng: np.random.Generator, *lead: int) -> tuple[np.ndarray, ...]:
        """Query, key, value (H, …, d, d_k) and output (H, …, d_k, d) of a layer's heads.

        Scores over √d_k have about the drawn scale. Values and output together have entries of
        variance σ²/d; σ² is 1 without a residual stream, which there is nothing to compare with.
        """
        variance = 1.0 if self.alone else self["variance"]
        d = self["dimension"]
        heads = self["heads"]
        width = self.width
        query, key, value = rng.normal(size=(3, heads, *lead, d, width)) / d**0.5
        output = rng.normal(size=(heads, *lead, width, d)) * (variance / heads / width) ** 0.5
        if self["output"] == "plain sum":
            output = np.broadcast_to(output[:1], output.shape)
        return self["scale"] * query, key, value, output

    @cached_property
    def layer(self) -> Layer:
        """The layer whose heads are recovered, of the first :data:`DECODED` tokens."""
        rng = self.rng("weights")
        tokens = self.tokens(rng)[:DECODED]
        query, key, _, output = self.matrices(rng)
        n = len(tokens)
        gates = expit(self["gate"] * rng.normal(size=(n, len(output))))
        scores = (tokens @ query) @ (tokens @ key).swapaxes(1, 2) / self.width**0.5
        bias = 0.0 if self.bias is None else self.bias[:n, :n]
        attention = softmax(scores + bias, axis=-1)
        factors = np.broadcast_to(np.eye(n), attention.shape)
        if self["content"] == "attended":
            left, values, _ = np.linalg.svd(attention @ tokens, full_matrices=False)
            size = np.sqrt(np.mean(np.sum(values**2, -1)) / n)
            factors = left * values[:, None] / size
        selectivity = float(1 / np.mean(np.sum(attention**2, axis=-1)) / n)
        return Layer(factors, np.stack([np.ones_like(gates), gates]), output, selectivity)
