"""Temporal latent attention (2505.13544): what is algebra or counting, and counterexamples."""

import math

import numpy as np
import pytest

from sims import Heads, nw_weights
from sims.weights import FACTORIES
from tests.attention import latent_layer as latent_attention
from tests.attention.latent_layer import DN, DR, by_loops, grown, layer_of, parallel, tokens

CLOSE = {"rtol": 0, "atol": 1e-13}


def unmerged(layer, x, mask):
    """Multi-head latent attention under a mask: keys and values of every token's own latent."""
    positions, latents = np.arange(len(x)), latent_attention.latents_of(layer, x)
    turned = latent_attention.rotated(x @ layer.rotary_query, positions)
    rotary = latent_attention.rotated(x @ layer.rotary_key, positions)
    keys = latents @ layer.up_key
    scores = (x @ layer.query) @ keys.swapaxes(1, 2) + turned @ rotary.T
    weights = np.where(mask, np.exp(scores / (DN + DR) ** 0.5), 0)
    mixed = weights / weights.sum(-1, keepdims=True) @ (latents @ layer.up_value)
    return mixed.swapaxes(0, 1)


def test_without_merging_it_is_latent_attention_if_gates_are_one_or_normalised():
    """`mtla-contains-mla`; a printed gate, a sigmoid, scales a token's latent: it is not."""
    x = tokens(5)
    expected = unmerged(layer_of(1), x, np.tri(5, dtype=bool))
    for rule in ("ones", "normalised"):
        np.testing.assert_allclose(parallel(layer_of(1, rule), x)[0], expected, **CLOSE)
    assert abs(parallel(layer_of(1), x)[0] - expected).max() > 0.01


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_whole_chunks_first_differ_from_decoding_inside_chunks_alone(stride):
    """`mtla-downsample`: by more than 1 % of the output; at ends of chunks both are the same."""
    layer, x = layer_of(stride), tokens(2 * stride)
    stepped = by_loops(layer, x)[0]
    ends = np.arange(stride - 1, len(x), stride)
    mask = np.arange(2) <= np.arange(len(x))[:, None] // stride
    whole = parallel(layer, x, ends, mask)[0]
    gaps = abs(whole - stepped).max((1, 2)) / abs(stepped).max()
    assert gaps[ends].max() < 1e-13
    assert np.delete(gaps, ends).min() > 0.01


class Counted(float):
    """A number that counts the products it enters."""

    products = 0

    def __mul__(self, other):
        Counted.products += 1
        return Counted(float(self) * other)

    def __add__(self, other):
        return Counted(float(self) + other)

    def __sub__(self, other):
        return Counted(float(self) - other)

    def __truediv__(self, other):
        return Counted(float(self) / other)

    def exp(self):
        return Counted(math.exp(self))


def counted(*shape):
    return np.array([Counted(0.5)] * math.prod(shape), dtype=object).reshape(shape)


def products(queries, slots, latent, rotary):
    """Of one head's scores and mixing, keys and values absorbed."""
    before = Counted.products
    parts = (counted(1, queries, latent), counted(1, queries, rotary))
    latent_attention.attend(*parts, counted(slots, latent), counted(slots, rotary), 1.0)
    return Counted.products - before


def test_sizes_at_the_printed_widths():
    """`mtla-length`, `mtla-cache`, `mtla-flops`, `mtla-training`: n_h = 8, d_h = 64, r = 4 d_h,
    d_R = d_h/2, 60 tokens; a head's products. Multi-head attention takes 2 d_h T a head.

    Counterexamples: 2.25 d_h a token at s = 2, not the 2.5 in the text; more products than
    multi-head attention up to s = 4; as many in training at every s.
    """
    heads, width, latent, rotary, length = 8, 64, 256, 32, 60
    plain = 2 * width * length
    kept, steps = {}, {}
    for stride in range(1, 7):
        slots = -(-length // stride)
        assert by_loops(layer_of(stride), tokens(length))[1] == slots
        kept[stride], steps[stride] = slots * (latent + rotary), products(1, slots, latent, rotary)
        assert steps[stride] * stride == steps[1]
        seen = parallel(layer_of(stride), tokens(8))[1].shape[-1]
        assert products(8, seen, latent, rotary) == 8 * 8 * (2 * latent + rotary)
    assert kept[2] / length / width == 2.25
    ratios = {stride: heads * plain / own for stride, own in kept.items()}
    assert [ratios[s] for s in (2, 3, 4)] == pytest.approx([7.1, 10.7, 14.2], abs=0.05)
    assert [stride for stride, own in steps.items() if own < plain] == [5, 6]
    # `mtla-reported`, MiB of a process: no more is gained than by the cache, but without merging.
    reported = {1: 5065, 2: 2835, 3: 2251, 4: 1921}
    within = [18646 / memory < 1.01 * ratios[stride] for stride, memory in reported.items()]
    assert within == [False, True, True, True]


@pytest.mark.parametrize("stride", [2, 3])
def test_merged_heads_are_estimators_if_the_gates_of_every_chunk_sum_to_one(stride):
    """`merge-nw`: equal gates on whole chunks, or normalised ones; a partial chunk, gates ½ at
    s = 3 and printed gates are counterexamples."""
    rng = np.random.default_rng(stride)
    query, keys = rng.normal(size=2), rng.normal(size=(4 * stride + 1, 2))

    def total(gate, count):
        head = Heads(np.eye(2)[None], FACTORIES["merged"](stride, [gate] * stride), 1.0)
        return float(np.sum(nw_weights(head, query, keys[:count])))

    assert total(1 / stride, 4 * stride) == pytest.approx(1, abs=1e-12)
    assert total(1 / stride, 4 * stride + 1) < 0.99
    assert total(0.5, 4 * stride) == pytest.approx(stride / 2, abs=1e-12)
    sums = []
    for rule in ("normalised", "printed"):
        _, weights, gates = parallel(layer_of(stride, rule), tokens(7))
        mass = grown(np.ones((7, 1)), gates, stride, rule == "normalised")
        sums.append(abs(weights @ mass[:, 0] - 1).max())
    assert sums[0] < 1e-12
    assert sums[1] > 0.01
