"""The temporal latent cache against loops over tokens that share no code with it."""

from dataclasses import dataclass
from math import cos, exp, sin, sqrt

import numpy as np
import pytest

from sims.attention import latent_cache as cache

LENGTHS, STRIDES = (1, 5, 9), (1, 3, 4)
D, R, H, DN, DR, DV, K = 5, 8, 2, 3, 4, 2, 2


def layer_of(stride, rule="printed", seed=0):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.normal(size=shape) / 1.5  # noqa: E731
    gate = cache.Gate(draw(R, K), draw(K), draw(R, K), draw(K))
    return cache.LatentLayer(
        draw(D, R),
        gate,
        draw(H, D, DN),
        draw(H, D, DR),
        draw(D, DR),
        draw(H, R, DN),
        draw(H, R, DV),
        stride,
        rule,
    )


def tokens(length, seed=1):
    return np.random.default_rng(seed).normal(size=(length, D))


def turn(v, position):
    """Pairs of coordinates as complex numbers, times e^{i·angle}."""
    out = []
    for i in range(0, len(v), 2):
        z = complex(v[i], v[i + 1]) * complex(
            cos(position / 1e4 ** (i / len(v))), sin(position / 1e4 ** (i / len(v)))
        )
        out += [z.real, z.imag]
    return np.array(out)


@dataclass
class Token:
    latent: np.ndarray
    gate: float
    key: np.ndarray


def by_loops(layer, x):
    """Every token's output: chunks are rebuilt from their tokens for every query."""
    s, seen = layer.stride, []
    outputs = np.zeros((len(x), H, DV))
    for i, row in enumerate(x, start=1):
        raw = row @ layer.down
        latent = (raw - raw.mean()) / sqrt(raw.var() + 1e-5)
        place = -(-i // s) - 1
        wave = np.array(
            [(cos if u % 2 else sin)(place / 1e4 ** ((u - u % 2) / R)) for u in range(R)]
        )
        a, b = latent @ layer.gate[0] + layer.gate[1], wave @ layer.gate[2] + layer.gate[3]
        gate = 1.0 if layer.rule == "ones" else 1 / (1 + exp(-(a @ b)))
        seen.append(Token(latent, gate, turn(row @ layer.rotary_key, i - 1)))
        chunks = [seen[c : c + s] for c in range(0, i, s)]
        for h in range(H):
            scores, values = [], []
            for chunk in chunks:
                slot = sum(t.gate * t.latent for t in chunk)
                if layer.rule == "normalised":
                    slot = slot / sum(t.gate for t in chunk)
                q, qr = row @ layer.query[h], turn(row @ layer.rotary_query[h], i - 1)
                scores.append((q @ (slot @ layer.up_key[h]) + qr @ chunk[-1].key) / sqrt(DN + DR))
                values.append(slot @ layer.up_value[h])
            w = np.exp(np.array(scores) - max(scores))
            outputs[i - 1, h] = (w / w.sum()) @ np.array(values)
    return outputs


@pytest.mark.parametrize("rule", ["printed", "ones", "normalised"])
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("length", LENGTHS)
def test_both_passes_against_loops(length, stride, rule):
    layer, x = layer_of(stride, rule), tokens(length)
    expected = by_loops(layer, x)
    np.testing.assert_allclose(cache.parallel(layer, x).output, expected, rtol=0, atol=1e-13)
    stepped, kept = cache.decode(layer, x)
    np.testing.assert_allclose(stepped, expected, rtol=0, atol=1e-13)
    slots = -(-length // stride)
    assert kept.slots.shape == (slots, R)
    assert kept.elements == slots * (R + DR)
    assert kept.length == length


def test_mask_by_its_words():
    """Row 5 of stride 2 sees tokens 2, 4 (ends of chunks) and itself, counted from 1."""
    assert np.flatnonzero(cache.stride_mask(6, 2)[4]).tolist() == [1, 3, 4]
    assert np.flatnonzero(cache.stride_mask(6, 2)[5]).tolist() == [1, 3, 5]
    np.testing.assert_array_equal(cache.stride_mask(4, 1), np.tril(np.ones((4, 4), bool)))
    for length, stride in ((7, 3), (12, 4), (5, 9)):
        mask = cache.stride_mask(length, stride)
        # As many slots as there are chunks so far.
        assert mask.sum(1).tolist() == [-(-m // stride) for m in range(1, length + 1)]


def test_slots_as_they_grow():
    latents, gates = np.arange(10.0).reshape(5, 2), np.array([1.0, 2, 3, 4, 5])
    expected = [[0, 1], [4, 7], [16, 22], [24, 28], [24 + 40, 28 + 45]]
    np.testing.assert_array_equal(cache.grown(latents, gates, 3, mean=False), expected)
    means = cache.grown(latents, gates, 3, mean=True)
    np.testing.assert_allclose(means, np.array(expected) / [[1], [3], [6], [4], [9]])


def test_printed_rule_of_opening():
    """It agrees for every stride but 1, where it never opens a second slot."""
    x = tokens(4)
    assert len(cache.decode(layer_of(1), x, "printed")[1].slots) == 1
    assert len(cache.decode(layer_of(1), x)[1].slots) == 4
    both = (cache.decode(layer_of(3), x, rule)[0] for rule in ("printed", "corrected"))
    np.testing.assert_array_equal(*both)


def test_scores_are_relative_in_position():
    """Rotary scores depend on the difference of positions: where counting begins is no matter."""
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 1, 6))
    products = [
        float(cache.rotated(q, np.array([p + 7]))[0] @ cache.rotated(k, np.array([p]))[0])
        for p in (0, 5, 400)
    ]
    np.testing.assert_allclose(products, products[0], rtol=1e-12)
    assert abs(products[0] - float(q[0] @ k[0])) > 1e-3
