"""Problems of the law ``collapse``: a Transformer's layer, and stacks of such layers.

Both roads take tokens, score biases and the layer whose heads are to be recovered from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from sims.problem.law import Law

ALONE = "attention alone"
NONE, MASK, BIAS = "none", "causal mask", "distance bias"
DECODED = 16
"""Tokens, at most, from whose outputs the heads are recovered."""


class Layer(NamedTuple):
    """A layer whose heads are ``Y_h = F_h V_h`` with V_h of independent N(0, 1) entries.

    Attributes:
        factors: F, (H, n, r): the identity, or what attention leaves of the tokens, of mean square
            1 a row.
        gates: g, (n, H), in (0, 1).
        output: W_O by heads, (H, d_k, d).
    """

    factors: np.ndarray
    gates: np.ndarray
    output: np.ndarray


@dataclass(frozen=True, eq=False)
class Problem:
    """One problem of the law.

    Attributes:
        drawn: the law's fields.
    """

    drawn: Mapping[str, Any]

    @property
    def width(self) -> int:
        """d_k: two at least, since a plain sum of heads of width 1 leaves a token its sign."""
        drawn = self.drawn
        return max(2, round(drawn["channels"] * drawn["dimension"] / drawn["heads"]))

    @property
    def values(self) -> int:
        """Dimension that values are mapped through: H d_k, and d_k of a plain sum."""
        return self.width * (1 if self.drawn["output"] == "plain sum" else self.drawn["heads"])

    @property
    def bias(self) -> np.ndarray | None:
        """Score bias by position, (n, n), −∞ where a causal mask hides; None without positions."""
        place = np.arange(self.drawn["tokens"])
        gap = place[:, None] - place
        hidden = np.where(gap < 0, -np.inf, 0.0)
        return {MASK: hidden, BIAS: -self.drawn["slope"] * abs(gap)}.get(self.drawn["positions"])

    def tokens(self, rng: np.random.Generator, *lead: int) -> np.ndarray:
        """Tokens (…, n, d) of unit variance a feature, two of them of the drawn mean cosine."""
        n, d, cosine = (self.drawn[k] for k in ("tokens", "dimension", "cosine"))
        common, apart = rng.normal(size=(*lead, 1, d)), rng.normal(size=(*lead, n, d))
        return np.asarray(cosine**0.5 * common + (1 - cosine) ** 0.5 * apart)

    def matrices(self, rng: np.random.Generator, *lead: int) -> tuple[np.ndarray, ...]:
        """Query, key, value (H, …, d, d_k) and output (H, …, d_k, d) of a layer's heads.

        Scores over √d_k have about the drawn scale. Values and output together have entries of
        variance σ²/d; σ² is 1 without a residual stream, which there is nothing to compare with.
        """
        drawn = self.drawn
        variance = 1.0 if drawn["block"] == ALONE else drawn["variance"]
        d, heads, width = drawn["dimension"], drawn["heads"], self.width
        query, key, value = rng.normal(size=(3, heads, *lead, d, width)) / d**0.5
        output = rng.normal(size=(heads, *lead, width, d)) * (variance / heads / width) ** 0.5
        if drawn["output"] == "plain sum":
            output = np.broadcast_to(output[:1], output.shape)
        return drawn["scale"] * query, key, value, output

    @property
    def layer(self) -> Layer:
        """The layer whose heads are recovered, of the first :data:`DECODED` tokens."""
        drawn, rng = self.drawn, np.random.default_rng(self.drawn["weights"])
        tokens = self.tokens(rng)[:DECODED]
        n, heads = len(tokens), drawn["heads"]
        query, key, _, output = self.matrices(rng)
        gates = expit(drawn["gate"] * rng.normal(size=(n, heads)))
        if drawn["content"] == "free":
            return Layer(np.broadcast_to(np.eye(n), (heads, n, n)), gates, output)
        scores = (tokens @ query) @ (tokens @ key).swapaxes(1, 2) / self.width**0.5
        bias = self.bias
        seen = softmax(scores if bias is None else scores + bias[:n, :n], axis=-1) @ tokens
        left, values, _ = np.linalg.svd(seen, full_matrices=False)
        size = np.sqrt(np.mean(np.sum(values**2, -1)) / n)
        return Layer(left * values[:, None] / size, gates, output)


def draw(law: Mapping[str, Any], seed: int, number: int) -> Problem:
    """Problem of that number; law and seed as in :class:`sims.problem.law.Law`."""
    return Problem(Law(law).draw(seed, number))
