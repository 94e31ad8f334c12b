"""Temporal latent attention (2505.13544): the parallel pass against decoding, and its slots."""

import numpy as np
import pytest

from tests.attention.latent_layer import by_loops, layer_of, parallel, stride_mask, tokens


@pytest.mark.parametrize("rule", ["printed", "ones", "normalised"])
@pytest.mark.parametrize("stride", [1, 3, 4])
@pytest.mark.parametrize("length", [1, 5, 9])
def test_the_parallel_pass_is_decoding(length, stride, rule):
    """`mtla-parallel`, by the mask as printed."""
    layer, x = layer_of(stride, rule), tokens(length)
    expected, slots = by_loops(layer, x)
    np.testing.assert_allclose(parallel(layer, x)[0], expected, rtol=0, atol=1e-13)
    assert slots == -(-length // stride)


def test_mask_by_its_words():
    """Row 5 of stride 2 sees tokens 2, 4 (ends of chunks) and itself, counted from 1."""
    assert np.flatnonzero(stride_mask(6, 2)[4]).tolist() == [1, 3, 4]


def test_the_printed_rule_of_opening():
    """`mtla-literal`: it agrees for every stride but 1, where it never opens a second slot."""

    def printed(i, stride):
        return i % stride == 1

    assert by_loops(layer_of(1), tokens(4), printed)[1] == 1
    assert by_loops(layer_of(1), tokens(4))[1] == 4
    both = (by_loops(layer_of(3), tokens(4), *rule)[0] for rule in ((printed,), ()))
    np.testing.assert_array_equal(*both)
