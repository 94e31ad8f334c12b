"""A report is of the heads, whatever the layout, the stored type and the number of files."""

import json

import ml_dtypes
import numpy as np
import pytest
import xarray as xr
from safetensors.numpy import save_file

from sims.base.errors import InputError
from sims.inspect import Model, as_json, exceeded, inspect, layers
from tests.inspect.models import (
    GROUPED,
    LAYOUTS,
    LLAMA,
    WIDTH,
    D,
    H,
    inputs,
    matrices,
    renumbered,
    write,
)

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


def test_stored_type_and_shards_change_nothing_else(tmp_path):
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


def test_layers_have_the_numbers_that_the_model_gives_them(tmp_path):
    """A part of a model says so."""
    tensors = {}
    for number in (12, 4):
        tensors |= renumbered(LAYOUTS["llama"](*matrices(seed=number)), number)
    folder = write(tmp_path / "deep", tensors)
    data = inspect(folder, heads=H, attention="full", activations={"12": inputs()})
    assert list(data.layer.values) == [4, 12]
    assert list(data.module.values) == [LLAMA.replace(".0.", f".{n}.") for n in (4, 12)]
    assert np.isnan(data.noise_kept.sel(layer=4))
    assert "layer 4 without activations" in data.attrs["sentence"]
    assert [row["layer"] for row in as_json(data)["layers"]] == [4, 12]
    assert exceeded(data, {"heads": 3})[1].startswith("layer 12: heads 4")
    with pytest.raises(InputError, match="layers 4 and 12"):
        inspect(folder, heads=H, attention="full", activations={"0": inputs()})
    part = (folder / "model.safetensors").rename(folder / "model-00002-of-00003.safetensors")
    for path in (folder, part):
        assert inspect(path, heads=H).attrs["notes"] == "The file is part 2 of 3 of its model."


@pytest.mark.parametrize(
    ("layout", "place", "wrapped"),
    [
        ("llama", "model.", "module._orig_mod.model."),
        ("llama", "self_attn.", "_fsdp_wrapped_module.self_attn._checkpoint_wrapped_module."),
        ("gpt2", "transformer.", "_orig_mod.module.model.transformer."),
        ("bloom", "h.", "_orig_mod.module._orig_mod.h."),
    ],
)
def test_wrappers_around_modules_change_nothing(tmp_path, layout, place, wrapped):
    tensors = LAYOUTS[layout](*matrices())
    names = {name: name.replace(place, wrapped, 1) for name in tensors}
    assert set(names.values()).isdisjoint(tensors)
    plain = write(tmp_path / "plain", tensors, CONFIG)
    other = write(tmp_path / "wrapped", {names[n]: t for n, t in tensors.items()}, CONFIG)
    xr.testing.assert_equal(report(other), report(plain))


def test_heads_are_counted_by_module(tmp_path):
    """Of an encoder–decoder each side's."""
    own = LAYOUTS["llama"](*matrices())
    sides = {f"{side}.{n}": t for side in ("encoder", "decoder") for n, t in own.items()}
    config = {"encoder_attention_heads": 4, "decoder_attention_heads": 2}
    folder = write(tmp_path / "sides", sides, config)
    data = inspect(folder)
    assert list(data.heads.values) == [2, 4]
    assert list(data.width.values) == [12, 6]
    assert list(data.label.values) == [f"{side}.{LLAMA}" for side in ("decoder", "encoder")]
    with pytest.raises(InputError, match="allowed: 2, as config"):
        inspect(folder, heads=4)


CUT = range(WIDTH, 2 * WIDTH)
ZERO = {
    "query": (0, ["overlap_excess", "index_query_heads_mean", "qk_effective_rank_median"]),
    "key": (1, ["overlap_excess", "index_query_heads_mean", "qk_effective_rank_median"]),
    "value": (2, ["ov_effective_rank_median"]),
}
"""Place of a map, and the numbers that its head is left out of."""


@pytest.mark.parametrize("kind", ZERO)
@pytest.mark.filterwarnings("error")
def test_heads_that_are_zero_are_named_and_left_out(tmp_path, kind):
    """As if the model had not had them, in one layer of two; and where no head is left."""
    place, numbers = ZERO[kind]
    parts = matrices()
    write(
        tmp_path / "less",
        LAYOUTS["llama"](*(np.delete(p, 1, 0) for p in parts[:3]), np.delete(parts[3], CUT, 1)),
    )
    parts[place][1] = 0
    second = renumbered(LAYOUTS["llama"](*matrices()), 1)
    data = inspect(write(tmp_path / "zero", LAYOUTS["llama"](*parts) | second), heads=H)
    assert data.attrs["notes"] == f"Layer 0: the {kind} map is 0 in head 1, left out."
    less = inspect(tmp_path / "less", heads=H - 1)
    for number in numbers:
        assert data[number][0].item() == pytest.approx(less[number].item())
    assert np.shape(as_json(data)["layers"][0]["projection_kernel"]) == (H, H)
    assert np.isnan(data.principal_angle[0, 1]).all() == (kind != "value")
    parts[place][:] = 0
    data = inspect(write(tmp_path / "none", LAYOUTS["llama"](*parts)), heads=H)
    assert np.isnan([data[number].item() for number in numbers]).all()


def test_a_zero_query_is_left_out_where_others_read_its_key(tmp_path):
    q, *rest = matrices(2)
    q[1] = 0
    data = inspect(write(tmp_path / "grouped", LAYOUTS["llama"](q, *rest)), heads=H)
    k = data.projection_kernel[0, 0, 1].item()
    largest = np.linalg.eigvalsh([[1, k, k], [k, 1, 1], [k, 1, 1]])[-1]  # of heads 0, 2, 3
    top = data.index_query_heads.sel(definition="top").item()
    assert top == pytest.approx((3 - largest) / 2)
