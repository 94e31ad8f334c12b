"""Temporal latent attention (arXiv 2505.13544): all tokens at once, and in loops, token by token.

Token i has the latent ``c_i = LayerNorm(x_i W_r)`` and a gate that depends on its chunk ⌈i/s⌉. A
chunk's slot is ``Σ_i w_i c_i``, grown token by token, with the rotary key of its latest token. A
head scores a slot by ``(q·ĉW_K + q^R·k^R)/√(d_n + d_R)`` and reads ``ĉW_V`` from it. The two passes
share the layer's matrices alone.
"""

from math import cos, exp, sin, sqrt
from typing import NamedTuple

import numpy as np

from sims.attention.attention import layer_norm, softmax

D, R, H, DN, DR, DV, K = 5, 8, 2, 3, 4, 2, 2


class Layer(NamedTuple):
    """Matrices; the gates' affine maps (A, a, B, b); stride; printed, ones or normalised gates."""

    down: np.ndarray
    gate: tuple[np.ndarray, ...]
    query: np.ndarray
    rotary_query: np.ndarray
    rotary_key: np.ndarray
    up_key: np.ndarray
    up_value: np.ndarray
    stride: int
    rule: str


def layer_of(stride, rule="printed"):
    rng = np.random.default_rng(0)
    shapes = [(R, K), K, (R, K), K, (D, R), (H, D, DN), (H, D, DR), (D, DR), (H, R, DN), (H, R, DV)]
    *gate, down, query, rotary_query, rotary_key, up_key, up_value = (
        rng.normal(size=shape) / 1.5 for shape in shapes
    )
    turned = query, rotary_query, rotary_key
    return Layer(down, tuple(gate), *turned, up_key, up_value, stride, rule)


def tokens(length):
    return np.random.default_rng(1).normal(size=(length, D))


def latents_of(layer, x):
    return layer_norm(x @ layer.down, 1e-5)


def rotated(x, positions):
    """Coordinates 2i and 2i + 1 turned by ``position/10⁴^{2i/d_R}``."""
    angle = positions[:, None] / 1e4 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def gates_of(layer, latents):
    if layer.rule == "ones":
        return np.ones(len(latents))
    a, a0, b, b0 = layer.gate
    angle = np.arange(len(latents))[:, None] // layer.stride / 1e4 ** (np.arange(R) // 2 * 2 / R)
    place = np.where(np.arange(R) % 2, np.cos(angle), np.sin(angle))
    return 1 / (1 + np.exp(-np.sum((latents @ a + a0) * (place @ b + b0), axis=1)))


def grown(latents, gates, stride, mean):
    """The slot of every token's chunk after that token, over the gates' sum if a mean."""
    mixed = np.c_[latents * gates[:, None], gates]
    padded = np.pad(mixed, [(0, -len(mixed) % stride), (0, 0)])
    sums = padded.reshape(-1, stride, mixed.shape[1]).cumsum(1).reshape(padded.shape)[: len(mixed)]
    return sums[:, :-1] / sums[:, -1:] if mean else sums[:, :-1]


def stride_mask(length, stride):
    """Token m sees the slot of token n if n = m, or n < m and n mod s = 0, counted from 1."""
    m = np.arange(1, length + 1)[:, None]
    n = np.arange(1, length + 1)
    return (n == m) | ((n < m) & (n % stride == 0))


def attend(absorbed, rotary, slots, rotary_keys, scale, mask=None):
    """Mixed slots and weights; W_K is absorbed into the queries. Objects will do for numbers."""
    weights = softmax((absorbed @ slots.T + rotary @ rotary_keys.T) / scale, mask)
    return weights @ slots, weights


def parallel(layer, x, chosen=slice(None), mask=None):
    """Outputs (T, H, d_v), weights and gates, over the slots of chosen tokens."""
    latents, places = latents_of(layer, x), np.arange(len(x))
    gates = gates_of(layer, latents)
    slots = grown(latents, gates, layer.stride, layer.rule == "normalised")[chosen]
    queries = (
        (x @ layer.query) @ layer.up_key.swapaxes(1, 2),
        rotated(x @ layer.rotary_query, places),
    )
    keys = rotated(x @ layer.rotary_key, places)[chosen]
    mask = stride_mask(len(x), layer.stride) if mask is None else mask
    mixed, weights = attend(*queries, slots, keys, sqrt(DN + DR), mask)
    return np.einsum("hqr,hrv->qhv", mixed, layer.up_value), weights, gates


def turn(v, position):
    """Pairs of coordinates as complex numbers, times e^{i·angle}."""
    out = []
    for i in range(0, len(v), 2):
        angle = position / 1e4 ** (i / len(v))
        z = complex(v[i], v[i + 1]) * complex(cos(angle), sin(angle))
        out += [z.real, z.imag]
    return np.array(out)


def by_loops(layer, x, opens=lambda i, stride: (i - 1) % stride == 0):
    """Outputs of tokens decoded in turn, and the number of slots; token i may open a slot."""
    chunks = []
    outputs = np.zeros((len(x), H, DV))
    a, a0, b, b0 = layer.gate
    for i, row in enumerate(x, start=1):
        raw = row @ layer.down
        latent = (raw - raw.mean()) / sqrt(raw.var() + 1e-5)
        place = -(-i // layer.stride) - 1
        wave = [(cos if u % 2 else sin)(place / 1e4 ** ((u - u % 2) / R)) for u in range(R)]
        gate = 1 / (1 + exp(-((latent @ a + a0) @ (wave @ b + b0))))
        if not chunks or opens(i, layer.stride):
            chunks.append([])
        token = (1.0 if layer.rule == "ones" else gate, latent, turn(row @ layer.rotary_key, i - 1))
        chunks[-1].append(token)
        for h in range(H):
            scores, values = [], []
            for chunk in chunks:
                slot = sum(gate * latent for gate, latent, _ in chunk)
                if layer.rule == "normalised":
                    slot = slot / sum(gate for gate, *_ in chunk)
                q, qr = row @ layer.query[h], turn(row @ layer.rotary_query[h], i - 1)
                scores.append((q @ (slot @ layer.up_key[h]) + qr @ chunk[-1][2]) / sqrt(DN + DR))
                values.append(slot @ layer.up_value[h])
            w = np.exp(np.array(scores) - max(scores))
            outputs[i - 1, h] = (w / w.sum()) @ np.array(values)
    return outputs, len(chunks)
