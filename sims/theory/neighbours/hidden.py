"""Hidden scores: a running mean of scores over layers, and its effect on attention.

``h_l = α′h_{l−1} + (1 − α′)S_l`` with memory α′ and one of two starts, ``zero`` (h_{−1} = 0) and
``copy`` (h_0 = S_0). Derived in ``docs/theory/hidden_scores.md``.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float

Start = Literal["zero", "copy"]


def shares(layer: int, memory: float, start: Start = "zero") -> Float[np.ndarray, " l"]:
    """``w_k = (1 − α′)α′^{l−k}``, the weights of S_0, …, S_l in h_l; with a copy w_0 = α′^l."""
    w = (1 - memory) * float(memory) ** np.arange(layer, -1, -1)
    if start == "copy":
        w[0] = float(memory) ** layer
    return w
