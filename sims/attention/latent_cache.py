"""Temporal latent attention: a cache of latents in which s neighbouring tokens share a slot.

After arXiv 2505.13544. Token i has the latent ``c_i = LayerNorm(x_i W_r)`` and a gate in (0, 1),
``w_i = σ(⟨A c_i + a, B pe_j + b⟩)``, that depends on its chunk j = ⌈i/s⌉ through a sinusoidal
place. A chunk's slot is ``ĉ_j = Σ_i w_i c_i``, grown token by token, with the rotary key of its
*latest* token. Head h scores a slot by ``(q_h·ĉW_K^h + q^R_h·k^R)/√(d_n + d_R)`` and reads
``ĉW_V^h`` from it.

The parallel pass is the same for all tokens at once: query m sees the slot of token n if n = m, or
n < m and n ends a chunk (:func:`stride_mask`), each in its state after token n (:func:`grown`).

NumPy, float64: shapes change with every length and stride, and nothing would be compiled twice.
Tokens count from 1 in formulas and from 0 in arrays, as do sinusoids' places and rotary positions.
"""

from typing import Literal, NamedTuple

import numpy as np

from sims.attention.attention import Array, layer_norm, softmax

BASE = 1e4
"""Base of the wavelengths of sinusoids and rotations."""
STEADY = 1e-5
"""Number added to a variance before division."""

GateRule = Literal["printed", "ones", "normalised"]
"""``printed``: gates unchanged; ``ones``: all 1; ``normalised``: over the sum of their chunk's
so far, so that a slot is a mean of its latents at every step."""


class Gate(NamedTuple):
    """Parameters of gates: two affine maps to k numbers, of a latent and of a position.

    Attributes:
        latent: A (r, k).
        latent_offset: a (k,).
        place: B (r, k).
        place_offset: b (k,).
    """

    latent: Array
    latent_offset: Array
    place: Array
    place_offset: Array


class LatentLayer(NamedTuple):
    """Matrices and merging rule of a layer with H heads, inputs of dimension d, latents of r.

    Attributes:
        down: W_r (d, r).
        gate: parameters of the gates.
        query: W_Q (H, d, d_n).
        rotary_query: (H, d, d_R), to be rotated.
        rotary_key: (d, d_R), shared by the heads, to be rotated.
        up_key: W_K (H, r, d_n), from a slot to a head's key.
        up_value: W_V (H, r, d_v), from a slot to a head's value.
        stride: s ≥ 1.
        rule: treatment of the gates.
    """

    down: Array
    gate: Gate
    query: Array
    rotary_query: Array
    rotary_key: Array
    up_key: Array
    up_value: Array
    stride: int
    rule: GateRule = "printed"


class Cache(NamedTuple):
    """State of decoding: J slots, the last of which may still grow.

    Attributes:
        slots: ĉ_1, …, ĉ_J, (J, r).
        rotary: the rotated key of every slot's latest token, (J, d_R).
        mass: the sum of the gates in the last slot.
        length: number of tokens so far.
    """

    slots: Array
    rotary: Array
    mass: float
    length: int

    @property
    def elements(self) -> int:
        """Number of stored elements, which grows with the sequence."""
        return self.slots.size + self.rotary.size


def latents_of(layer: LatentLayer, x: Array) -> Array:
    """``c_i = LayerNorm(x_i W_r)``, (T, r), of tokens x (T, d)."""
    return layer_norm(x @ layer.down, STEADY)


def sinusoid(places: Array, width: int) -> Array:
    """``sin(p/BASE^{2i/width})`` at 2i, the cosine at 2i + 1."""
    even = np.arange(width) // 2 * 2
    angle = places[:, None] / BASE ** (even / width)
    return np.where(np.arange(width) % 2, np.cos(angle), np.sin(angle))


def rotated(x: Array, positions: Array) -> Array:
    """Rotary embedding: coordinates 2i and 2i + 1 turned by ``position/BASE^{2i/d_R}``."""
    angle = positions[:, None] / BASE ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    even, odd = x[..., ::2], x[..., 1::2]
    turned = (
        even * np.cos(angle) - odd * np.sin(angle),
        even * np.sin(angle) + odd * np.cos(angle),
    )
    return np.stack(turned, axis=-1).reshape(x.shape)


def gates_of(layer: LatentLayer, latents: Array, first: int = 0) -> Array:
    """``w_i`` (T,) of consecutive latents (T, r), the first of which is number ``first`` from 0."""
    if layer.rule == "ones":
        return np.ones(len(latents))
    places = (first + np.arange(len(latents))) // layer.stride
    latent_part = latents @ layer.gate.latent + layer.gate.latent_offset
    right = sinusoid(places, latents.shape[1]) @ layer.gate.place + layer.gate.place_offset
    return 1 / (1 + np.exp(-np.sum(latent_part * right, axis=1)))


def grown(latents: Array, gates: Array, stride: int, mean: bool) -> Array:
    """Slot of every token's chunk after that token, (T, r).

    Args:
        latents: c (T, r).
        gates: w (T,).
        stride: s.
        mean: whether gates are divided by their sum so far.
    """
    length = len(latents)
    mixed = np.concatenate([latents * gates[:, None], gates[:, None]], axis=1)
    padded = np.pad(mixed, [(0, -length % stride), (0, 0)])
    sums = padded.reshape(-1, stride, mixed.shape[1]).cumsum(axis=1).reshape(len(padded), -1)
    sums = sums[:length]
    return sums[:, :-1] / sums[:, -1:] if mean else sums[:, :-1]


def stride_mask(length: int, stride: int) -> Array:
    """Row m sees column n if n = m, or n < m and n mod s = 0 (both from 1)."""
    m = np.arange(1, length + 1)[:, None]
    n = np.arange(1, length + 1)
    return (n == m) | ((n < m) & (n % stride == 0))


def attend(
    absorbed: Array,
    rotary: Array,
    slots: Array,
    rotary_keys: Array,
    scale: float,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    """Mixed slots and attention weights, with W_K absorbed into the queries (``q_h W_K^hᵀ``).

    Args:
        absorbed: queries in the space of latents, (H, Q, r).
        rotary: rotated queries, (H, Q, d_R).
        slots: keys and values, (J, r).
        rotary_keys: rotated keys, (J, d_R).
        scale: √(d_n + d_R).
        mask: (Q, J), True where a slot is seen; None is all. Every row needs one.

    Arrays may hold objects with products, sums, quotients and ``exp``, such as numbers that count.
    """
    scores = (absorbed @ slots.T + rotary @ rotary_keys.T) / scale
    weights = softmax(scores, mask)
    return weights @ slots, weights


class Pass(NamedTuple):
    """A pass over T tokens.

    Attributes:
        output: (T, H, d_v).
        weights: attention of token m to the slot of token n, (H, T, T).
        gates: (T,).
    """

    output: Array
    weights: Array
    gates: Array


def parallel(layer: LatentLayer, x: Array) -> Pass:
    """Outputs of all tokens (T, d) in parallel, with T × T scores."""
    positions = np.arange(len(x))
    scale = _scale(layer)
    latents = latents_of(layer, x)
    gates = gates_of(layer, latents)
    slots = grown(latents, gates, layer.stride, layer.rule == "normalised")
    absorbed, rotary = _queries(layer, x, positions)
    keys = rotated(x @ layer.rotary_key, positions)
    mask = stride_mask(len(x), layer.stride)
    mixed, weights = attend(absorbed, rotary, slots, keys, scale, mask)
    return Pass(np.einsum("hqr,hrv->qhv", mixed, layer.up_value), weights, gates)


def step(
    layer: LatentLayer,
    cache: Cache,
    x: Array,
    rule: Literal["printed", "corrected"] = "corrected",
) -> tuple[Array, Cache]:
    """Output (H, d_v) of one decoded token, and the cache after it.

    The token opens or extends a slot, then attends to all slots.

    Args:
        layer: the layer.
        cache: cache after the previous tokens.
        x: the token, (d,).
        rule: token i opens a slot where ``(i − 1) mod s = 0``, printed as ``i mod s = 1``, which
            never holds at s = 1. The first token opens one in any case.
    """
    position = np.array([cache.length])
    latent = latents_of(layer, x[None])
    gate = float(gates_of(layer, latent, cache.length)[0])
    key = rotated(x[None] @ layer.rotary_key, position)
    place = cache.length % layer.stride
    opens = place == 0 if rule == "corrected" else (place + 1) % layer.stride == 1
    slots = cache.slots
    keys = cache.rotary
    mean = layer.rule == "normalised"
    if not cache.length or opens:
        slot = latent if mean else gate * latent
        mass = gate
    else:
        mass = cache.mass + gate
        slot = (cache.mass if mean else 1.0) * slots[-1:] + gate * latent
        slots = slots[:-1]
        keys = keys[:-1]
        slot = slot / mass if mean else slot
    grown_cache = Cache(np.vstack([slots, slot]), np.vstack([keys, key]), mass, cache.length + 1)
    absorbed, rotary = _queries(layer, x[None], position)
    mixed, _ = attend(absorbed, rotary, *grown_cache[:2], _scale(layer))
    return np.einsum("hqr,hrv->qhv", mixed, layer.up_value)[0], grown_cache


def decode(
    layer: LatentLayer,
    x: Array,
    rule: Literal["printed", "corrected"] = "corrected",
) -> tuple[Array, Cache]:
    """Outputs (T, H, d_v) of tokens (T, d) decoded in turn, and the final cache."""
    none = np.zeros((0, layer.down.shape[1])), np.zeros((0, layer.rotary_key.shape[1]))
    cache = Cache(*none, 0.0, 0)
    outputs = []
    for token in x:
        output, cache = step(layer, cache, token, rule)
        outputs.append(output)
    return np.stack(outputs), cache


def _queries(layer: LatentLayer, x: Array, positions: Array) -> tuple[Array, Array]:
    """Absorbed and rotated queries of every head."""
    absorbed = (x @ layer.query) @ layer.up_key.swapaxes(1, 2)
    return absorbed, rotated(x @ layer.rotary_query, positions)


def _scale(layer: LatentLayer) -> float:
    return float(np.sqrt(layer.query.shape[2] + layer.rotary_key.shape[1]))
