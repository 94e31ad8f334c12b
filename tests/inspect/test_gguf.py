"""GGUF files: attention as LLaMA's paper defines it on the stored rows; refusals in one line."""

import re
import struct
import sys

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.inspect import Model, inspect, layers
from sims.inspect.patterns import projections, rule_of
from tests.inspect.models import LAYOUTS, WIDTH, D, H, inputs, matrices

KEYS, BASE = 2, 50.0
PARTS = matrices(KEYS)
GAIN = np.linspace(0.5, 2, D)
TENSORS = LAYOUTS["llama"](*PARTS) | {"model.layers.0.self_attn.norm.weight": GAIN}
NAMES = {"model.layers": "blk", ".self_attn.": ".attn_", "_proj": "", "attn_o.": "attn_output."}
"""What names of transformers have, and what those of GGUF have."""


def write(path, architecture="llama", rotated=WIDTH, more=()):
    """A file of one block, with tensors of further names; weights are in half precision."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_embedding_length(D)
    writer.add_rope_freq_base(BASE)
    writer.add_head_count(H)
    writer.add_head_count_kv(KEYS)
    writer.add_rope_dimension_count(rotated)
    for name, tensor in (TENSORS | dict.fromkeys(more, GAIN)).items():
        for given, other in NAMES.items():
            name = name.replace(given, other)
        writer.add_tensor(name, tensor.astype(np.float16 if tensor.ndim > 1 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_scores_are_those_of_adjacent_rows_as_complex_numbers(tmp_path):
    """By LLaMA's definition: pair j of stored rows is one number, times exp(i·t/base^(2j/d_k))."""
    model = Model(write(tmp_path / "m.gguf"))
    (layer,) = layers(model)
    x = inputs(1, 20)[0]
    turn = np.exp(1j * np.arange(20)[:, None] / BASE ** (np.arange(0, WIDTH, 2) / WIDTH))
    query, key, value = (
        x @ rows[..., :D].swapaxes(1, 2) + rows[:, None, :, D] for rows in PARTS[:3]
    )
    query, key = ((part[..., ::2] + 1j * part[..., 1::2]) * turn for part in (query, key))
    scores = (query @ key[layer.key_head].conj().swapaxes(1, 2)).real
    scores -= scores.mean(-1, keepdims=True)
    found, found_key, found_value = projections(layer, x, rule_of(model.config))
    found = found @ found_key[layer.key_head].swapaxes(1, 2)
    np.testing.assert_allclose(found, scores, atol=0.05)  # weights are stored in half precision
    np.testing.assert_allclose(found_value, value, atol=0.01)
    np.testing.assert_allclose(layer.gain, GAIN, rtol=1e-6)
    np.testing.assert_allclose(layer.matrices.output, PARTS[3].T.reshape(H, WIDTH, D), 2e-3)
    assert inspect(tmp_path).attrs["notes"] == ""


REFUSED = {
    "qwen2": ({"architecture": "qwen2"}, "general.architecture: got 'qwen2'; allowed: llama"),
    "sinks": ({"more": ["blk.0.attn_sinks.weight"]}, "self_attn.sinks.weight: got 'unknown to"),
    "long": ({"more": ["rope_freqs.weight"]}, "config.rope_scaling: got 'rope_freqs.weight'"),
    "partial": ({"rotated": 4}, "config.llama.rope.dimension_count: got 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_file_has_and_is_not_supported_is_refused(tmp_path, name):
    options, words = REFUSED[name]
    with pytest.raises(InputError, match=re.escape(words)):
        inspect(write(tmp_path / "m.gguf", **options), activations={"0": inputs()})


def test_a_file_shorter_than_its_header_says_is_refused(tmp_path):
    """A tensor that is cut, and metadata of one array with 2⁶⁰ numbers."""
    path = write(tmp_path / "m.gguf")
    data = path.read_bytes()
    array = struct.pack("<QQsIIQ", 1, 1, b"x", 9, 0, 2**60)
    for damaged in (data[:-9], data[:16] + array):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="the file ends early'; allowed: a complete"):
            inspect(path)


def test_the_package_that_gguf_needs_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "m.gguf")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(InputError, match=r"m.gguf: .*pip install 'nw-attention-sims\[models\]'$"):
        inspect(path)
