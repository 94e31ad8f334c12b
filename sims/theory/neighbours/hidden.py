"""Hidden scores: a running mean of scores over layers, and its effect on attention.

``h_l = α′h_{l−1} + (1 − α′)S_l`` with memory α′ and one of two starts, ``zero`` (h_{−1} = 0) and
``copy`` (h_0 = S_0). Derived in ``docs/theory/hidden_scores.md``.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from sims.theory.neighbours.collapse import log_pull

Start = Literal["zero", "copy"]


def shares(layer: int, memory: float, start: Start = "zero") -> Float[np.ndarray, " l"]:
    """``w_k = (1 − α′)α′^{l−k}``, the weights of S_0, …, S_l in h_l; with a copy w_0 = α′^l."""
    w = (1 - memory) * float(memory) ** np.arange(layer, -1, -1)
    if start == "copy":
        w[0] = float(memory) ** layer
    return w


class Simplex(NamedTuple):
    """Tokens ``m + a(e_i − 1/n)``, m orthogonal to all e_i − 1/n; M = βI, W = wI.

    Attributes:
        n: tokens, as many as directions.
        size: a of the first layer.
        score_scale: β.
        value_scale: w.
    """

    n: int
    size: float
    score_scale: float
    value_scale: float


def simplex_log_sizes(
    tokens: Simplex, layers: int, memory: float = 0.0, start: Start = "zero", skip: float = 0.0
) -> Float[np.ndarray, " layers"]:
    """log|a_0|, …, log|a_layers|: ``a_{l+1} = a_l(α + (1 − α)w f(b_l))``, β > 0.

    ``b_l = α′b_{l−1} + (1 − α′)βa_l²`` with the start, ``f(b) = (e^b − 1)/(e^b − 1 + n)``: exact at
    every n and scale. In logarithms, since without skip a falls below any number.
    """
    n, size, beta, w = tokens
    with np.errstate(divide="ignore"):
        sizes = [np.log(abs(size))]
        score = -np.inf
        for layer in range(layers):
            share = 1.0 if layer == 0 and start == "copy" else 1 - memory
            fresh = np.log(share * beta) + 2 * sizes[-1]
            score = np.logaddexp(np.log(memory) + score, fresh)
            pull = float(log_pull(score, n))
            if skip:
                factor = np.log(abs(skip + (1 - skip) * w * np.exp(pull)))
            else:
                factor = np.log(abs(w)) + pull
            sizes.append(sizes[-1] + factor)
    return np.array(sizes)
