"""Heads of one attention module."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sims.attention.attention import HeadMatrices
from sims.inspect.norms import HeadNorm

CROSS = re.compile("cross|encoder_attn|EncDecAttention")
"""Pattern in the names of modules whose keys and queries come from different tokens."""
CUTOFF = 1e-10
"""What is left of a matrix below this share of it counts as 0."""


@dataclass(frozen=True)
class Layer:
    """Heads of one attention module, in float64.

    Attributes:
        module: its name in the file.
        number: number of the layer, if modules have distinct numbers; None otherwise.
        matrices: query (H, d, d_k), key (H_kv, d, d_k), value (H_kv, d, d_v), output (H, d_v, d).
        biases: biases of queries (H, d_k), keys (H_kv, d_k) and values (H_kv, d_v); 0 without any.
        norms: norms of queries and of keys; empty without norms.
        gain: gain of the normalisation before the module (d); None if none is documented.
        centred: whether that normalisation removes the mean.
        not_folded: tensors of size d that may act before the module and are not folded.
        cross: whether keys and queries come from different tokens.
        passes: number of times that the model applies the module.
        left: names of tensors that affect only attention weights, and are not read.
    """

    module: str
    number: int | None
    matrices: HeadMatrices
    biases: tuple[np.ndarray, np.ndarray, np.ndarray]
    norms: tuple[HeadNorm, ...] = ()
    gain: np.ndarray | None = None
    centred: bool = False
    not_folded: Sequence[str] = ()
    cross: bool = False
    passes: int = 1
    left: Sequence[str] = ()

    @property
    def key_head(self) -> np.ndarray:
        """Key head that each query head reads, (H,)."""
        heads = len(self.matrices.query)
        return np.arange(heads) * len(self.matrices.key) // heads

    @property
    def normed(self) -> HeadMatrices:
        """Matrices that include the linear part of the normalisation of queries and keys."""
        if not self.norms:
            return self.matrices
        query, key, value, output = self.matrices
        return HeadMatrices(self.norms[0].fold(query), self.norms[1].fold(key), value, output)

    @property
    def folded(self) -> HeadMatrices:
        """Matrices as seen from the normalised residual stream: ``(I − 11ᵀ/d) diag(g) W``.

        A matrix that is 0 but for rounding is set to 0.
        """

        def fold(matrix: np.ndarray) -> np.ndarray:
            scaled = matrix if self.gain is None else self.gain[:, None] * matrix
            folded = scaled - scaled.mean(-2, keepdims=True) if self.centred else scaled
            sizes = abs(folded).max((1, 2), keepdims=True)
            return np.where(sizes > CUTOFF * abs(scaled).max((1, 2), keepdims=True), folded, 0.0)

        query, key, value, output = self.normed
        return HeadMatrices(fold(query), fold(key), fold(value), output)

    def unfold(self, matrices: np.ndarray) -> np.ndarray:
        """Matrices on the module's inputs, from those on the normalised residual stream."""
        if self.gain is None:
            return matrices
        inverse = np.divide(1, self.gain, out=np.zeros(len(self.gain)), where=self.gain != 0)
        return np.asarray(inverse[:, None] * matrices)
