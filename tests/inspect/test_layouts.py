"""A report is of the heads, whatever the layout, the stored type and the number of files."""

import json
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest
import xarray as xr
from safetensors.numpy import save_file

from sims.inspect import Model, inspect, layers, reader
from tests.inspect.models import GROUPED, LAYOUTS, LLAMA, WIDTH, D, H, inputs, matrices, write

CONFIG = {"num_attention_heads": H}


def report(folder, **options):
    found = inspect(folder, activations={"0": inputs()}, attention="full", **options)
    return found.drop_vars("module")


@pytest.mark.parametrize(
    ("layout", "keys"),
    [*((name, H) for name in LAYOUTS), *((name, k) for name in GROUPED for k in (1, 2))],
)
def test_every_layout_of_one_set_of_matrices_gives_one_report(tmp_path, layout, keys):
    """Matrices too, head by head: symmetric summaries would not see heads exchanged."""
    q, k, v, o = given = matrices(keys)
    folder = write(tmp_path / layout, LAYOUTS[layout](*given), CONFIG)
    (layer,) = layers(Model(folder))
    for read, rows in zip(layer.matrices, (q, k, v), strict=False):
        np.testing.assert_array_equal(read, rows[..., :D].swapaxes(1, 2))
    for read, rows in zip(layer.biases, (q, k, v), strict=True):
        np.testing.assert_array_equal(read, rows[..., D])
    np.testing.assert_array_equal(layer.matrices.output, o.T.reshape(H, WIDTH, D))
    np.testing.assert_array_equal(layer.key_head, np.repeat(np.arange(keys), H // keys))
    llama = write(tmp_path / "reference", LAYOUTS["llama"](*given), CONFIG)
    xr.testing.assert_equal(report(folder), report(llama))


def test_stored_type_and_shards_change_nothing_else(tmp_path, monkeypatch):
    """Nor does an address space into which a file cannot be mapped."""
    given = [part.astype(ml_dtypes.bfloat16).astype(float) for part in matrices(2)]
    tensors = LAYOUTS["llama"](*given)
    whole = write(tmp_path / "float64", tensors, CONFIG)
    half = write(tmp_path / "bfloat16", tensors, CONFIG, ml_dtypes.bfloat16)
    parts = write(tmp_path / "parts", {}, CONFIG)
    (parts / "model.safetensors").unlink()
    files = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(tensors)}
    for file in set(files.values()):
        own = {n: np.ascontiguousarray(t) for n, t in tensors.items() if files[n] == file}
        save_file(own, parts / file)
    index = parts / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    for other in (half, parts, index):
        xr.testing.assert_equal(report(other), report(whole))
    monkeypatch.setattr(reader, "safe_open", Mock(side_effect=MemoryError))
    for other in (half, parts):
        xr.testing.assert_equal(report(other), report(whole))


def test_gains_are_folded_where_a_model_is_known_to_normalise_first(tmp_path):
    """LayerNorm takes the mean out as well; without model_type nothing is folded."""
    given, gain = matrices(), np.linspace(0.5, 2, D)
    rms = LAYOUTS["llama"](*given) | {"model.layers.0.input_layernorm.weight": gain}
    layer_norm = LAYOUTS["gpt2"](*given) | {"transformer.h.0.ln_1.weight": gain}
    for kind, tensors, centred in (("llama", rms, False), ("gpt2", layer_norm, True)):
        folded = inspect(write(tmp_path / kind, tensors, CONFIG | {"model_type": kind}))
        scaled = [part.copy() for part in given[:3]]
        for part in scaled:
            part[..., :D] *= gain
            part[..., :D] -= centred * part[..., :D].mean(-1, keepdims=True)
        by_hand = inspect(write(tmp_path / "hand", LAYOUTS["llama"](*scaled, given[3]), CONFIG))
        same = ["module", "gain_folded"]
        rotary = [name for name in folded.variables if name not in by_hand]
        left = folded.drop_vars([*same, *rotary])
        xr.testing.assert_allclose(left, by_hand.drop_vars(same), atol=1e-7)
        assert (folded.gain_folded.item(), by_hand.gain_folded.item()) == (True, False)


def test_shared_layers_have_a_row_a_pass(tmp_path):
    config = CONFIG | {"num_hidden_layers": 3, "model_type": "albert"}
    folder = write(tmp_path / "albert", LAYOUTS["albert"](*matrices()), config)
    module = inspect(folder).module.item()
    named = {f"{module}#{i}": inputs(seed=i) for i in range(3)}
    numbered = {str(i): inputs(seed=i) for i in range(3)}
    data = inspect(folder, activations=named)
    xr.testing.assert_identical(data, inspect(folder, activations=numbered))
    assert data.sizes["layer"] == 3
    assert len(set(data.noise_kept.values)) == 3


def test_layers_come_in_the_order_of_their_numbers(tmp_path):
    tensors = {}
    for number in (10, 2, 0):
        own = LAYOUTS["llama"](*matrices(seed=number))
        tensors |= {n.replace(".0.", f".{number}."): t for n, t in own.items()}
    data = inspect(write(tmp_path / "deep", tensors), heads=H)
    assert list(data.module.values) == [LLAMA.replace(".0.", f".{n}.") for n in (0, 2, 10)]
