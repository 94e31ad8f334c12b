"""Normalisation of a model's queries and keys."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sims.base.errors import InputError
from sims.inspect.families import Family, Norm, read_number
from sims.inspect.reader import Model


@dataclass(frozen=True)
class HeadNorm:
    """Normalisation of the queries, or of the keys, of a layer.

    Attributes:
        norm: norm of the family.
        gain: (H, d_k).
        shift: (H, d_k), added last.
        epsilon: added to the mean square.
    """

    norm: Norm
    gain: np.ndarray
    shift: np.ndarray
    epsilon: float

    def fold(self, matrix: np.ndarray) -> np.ndarray:
        """Linear factor of the normalisation, applied to matrices or vectors (H, …, d_k)."""
        centred = matrix - matrix.mean(-1, keepdims=True) if self.norm.centred else matrix
        return centred * self.gain[:, None]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Normalised vectors (H, T, d_k)."""
        if self.norm.centred:
            vectors = vectors - vectors.mean(-1, keepdims=True)
        squares = (vectors**2).mean((0, 2) if self.norm.joint else 2, keepdims=True)
        return vectors / np.sqrt(squares + self.epsilon) * self.gain[:, None] + self.shift[:, None]


def read_norms(
    model: Model, module: str, family: Family, shapes: Sequence[tuple[int, int]]
) -> tuple[HeadNorm, ...]:
    """Normalisations of queries and of keys of a module; empty if its family has none.

    Args:
        model: an open model.
        module: name of the attention module.
        family: the model's family.
        shapes: (H, d_k) of queries and of keys.

    Raises:
        InputError: a tensor is missing or does not fit.
    """
    norm = family.norm
    if norm is None or (norm.switch and not model.config.get(norm.switch)):
        return ()
    epsilon = read_number(model.config, norm.epsilon, norm.default)
    norms = []
    for name, shape in zip(norm.names, shapes, strict=True):
        gain = _by_head(model, f"{module}.{name}", "weight", shape, norm.joint) + family.offset
        shift = 0 * gain
        if f"{module}.{name}.bias" in model.shapes:
            shift = _by_head(model, f"{module}.{name}", "bias", shape, norm.joint)
        norms.append(HeadNorm(norm, gain, shift, epsilon))
    return tuple(norms)


def _by_head(model: Model, name: str, kind: str, shape: tuple[int, int], joint: bool) -> np.ndarray:
    """A tensor of a norm by heads, (H, d_k): of all heads alike, of each, or in H tensors."""
    if f"{name}.norms.0.{kind}" in model.shapes:
        parts = [f"{name}.norms.{head}.{kind}" for head in range(shape[0])]
        return np.stack([model.read(part, shape[1:]) for part in parts])
    values = model.read(f"{name}.{kind}")
    if values.shape not in ([(shape[0] * shape[1],)] if joint else [shape, shape[1:]]):
        raise InputError(f"{model.name}: {name}", values.shape, f"shape {shape}, one row per head")
    return np.broadcast_to(values.reshape(-1, shape[1]), shape)
