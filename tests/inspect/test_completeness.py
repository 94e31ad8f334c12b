"""What a report says, or refuses, of what a file lacks or the program does not use."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from sims.base.errors import InputError
from sims.inspect import inspect
from tests.inspect.models import (
    BERT,
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

GAIN = np.linspace(1, 9, D)
LLAMAS = LAYOUTS["llama"](*matrices())
TWO = LLAMAS | renumbered(LLAMAS, 1)
SIDES = {
    f"{side}.layers.0.self_attn.{name.rpartition('attn.')[2]}": tensor
    for side in ("encoder", "decoder")
    for name, tensor in LLAMAS.items()
}
YARN = {"rope_type": "yarn", "factor": 4.0}
NOTES = {
    "layers": (TWO, {"num_hidden_layers": 4}, "Not in the file: attention of layers 2, 3."),
    "a layer": (TWO, {"n_layer": 3}, "Not in the file: attention of layers 2."),
    "fewer layers": (TWO, {"n_layer": 1}, "Not in the config: attention of layers 1."),
    "decoder": (SIDES, {"decoder_layers": 3}, "attention of decoder.layers 1, 2."),
    "no encoder": (TWO, {"encoder_layers": 1}, "attention of encoder.layers 0."),
    "family": (TWO, {"model_type": "cohere"}, "No forward pass of model_type cohere is checked"),
    "yarn": (TWO, {"model_type": "llama", "rope_scaling": YARN}, "config.rope_scaling: got"),
    "scaled": (
        TWO,
        {"model_type": "phi3", "rope_parameters": {"rope_type": "new"}},
        "score forms leave positions and masks out (config.rope_par",
    ),
    "unknown family": (TWO, {"model_type": "x", "rope_scaling": YARN}, "config.rope_scaling: got"),
    "positions": (TWO, {"model_type": "stablelm"}, "positions are left out, as --attention asks"),
    "no gain": (TWO, {"model_type": "llama"}, "gain before attention is not in the file (input_l"),
    "norm": (
        LLAMAS | {"model.layers.0.ln_in.weight": GAIN},
        {},
        "Layer 0: not folded into the weights: ln_in.weight.",
    ),
    "of a family": (
        LLAMAS | {"model.layers.0.scale_in": GAIN[None], "model.layers.0.mlp.norm.weight": GAIN},
        {"model_type": "llama"},
        "Layer 0: not folded into the weights: scale_in.\n",
    ),
    "norm of timm": (
        LAYOUTS["timm"](*matrices()) | {"blocks.0.norm1.weight": GAIN},
        {},
        "Layer 0: not folded into the weights: norm1.weight.",
    ),
    "norm of ESM": (
        LAYOUTS["bert"](*matrices()) | {f"{BERT}.LayerNorm.weight": GAIN},
        {"model_type": "esm"},
        "not folded into the weights: attention.LayerNorm.weight.",
    ),
}
"""Tensors, config, and words of the notes."""


@pytest.mark.parametrize("name", NOTES)
def test_what_is_lacking_or_not_used_is_named(tmp_path, name):
    tensors, config, words = NOTES[name]
    folder = write(tmp_path / "model", tensors, {"num_attention_heads": H} | config)
    data = inspect(folder, attention="causal" if name == "positions" else None)
    assert words in data.attrs["notes"] + "\n"


def test_rows_name_modules_that_share_a_number(tmp_path):
    cross = {name.replace("self_attn", "encoder_attn"): tensor for name, tensor in SIDES.items()}
    tensors = SIDES | {name: t for name, t in cross.items() if "decoder" in name}
    folder = write(tmp_path / "model", tensors, {"num_attention_heads": H})
    modules = ["decoder.layers.0.encoder_attn", "decoder.layers.0.self_attn"]
    data = inspect(folder)
    assert list(data.label.values) == [*modules, "encoder.layers.0.self_attn"]
    for name, words in (("0", "of no layer"), (modules[0], "cross-attention")):
        with pytest.raises(InputError, match=words):
            inspect(folder, activations={name: inputs()}, attention="full")


REFUSED = {
    "bigcode": (LAYOUTS["gpt2"](*matrices()), {"model_type": "gpt_bigcode"}, "have another order"),
    "multi-query": (
        {
            "h.0.attn.c_attn.weight": np.ones((D + 2 * WIDTH, D)),
            "h.0.attn.c_proj.weight": np.eye(D),
        },
        {},
        r"allowed: \(24, 72\), \(in, out\) as GPT-2$",
    ),
    "a bias in one layer": (
        {k: t for k, t in TWO.items() if k != f"{LLAMA}.q_proj.bias"},
        {},
        "in some layers",
    ),
    "a short gain": (
        LLAMAS | {"model.layers.0.input_layernorm.weight": GAIN[1:]},
        {"model_type": "llama"},
        "got \\(23,\\); allowed: shape \\(24,\\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_read_wrongly_is_refused(tmp_path, name):
    tensors, config, words = REFUSED[name]
    folder = write(tmp_path / "model", tensors, {"num_attention_heads": H} | config)
    with pytest.raises(InputError, match=words):
        inspect(folder)


@pytest.mark.parametrize("place", ["nowhere", "other"])
def test_a_tensor_is_where_the_index_says(tmp_path, place):
    names = sorted(TWO)
    for file, part in (("a", names[::2]), ("b", names[1::2])):
        save_file({n: np.ascontiguousarray(TWO[n]) for n in part}, tmp_path / f"{file}.safetensors")
    files = {name: f"{'ab'[i % 2]}.safetensors" for i, name in enumerate(names)}
    files |= (
        {"lm_head.weight": "a.safetensors"} if place == "nowhere" else {names[0]: "b.safetensors"}
    )
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    with pytest.raises(InputError, match=r"not in [ab]\.safetensors, as the index says"):
        inspect(index, heads=H)


def test_keys_of_other_tokens_are_read_and_not_measured(tmp_path):
    """torch's kdim and vdim: the subspaces are those of keys as columns of their own tokens."""
    q, k, v, o = matrices()
    wide = np.random.default_rng(1).normal(size=(D, 20))
    tensors = {f"net.{letter}_proj_weight": wide for letter in "kv"}
    tensors["net.q_proj_weight"] = q[..., :D].reshape(D, D)
    tensors["net.out_proj.weight"] = o
    tensors["net.in_proj_bias"] = np.concatenate([part[..., D].ravel() for part in (q, k, v)])
    folder = write(tmp_path / "torch", tensors)
    frames = np.linalg.qr(wide.reshape(H, WIDTH, 20).swapaxes(1, 2)).Q
    kernel = np.einsum("hdi,gdj->hgij", frames, frames)
    expected = (kernel**2).sum((2, 3)) / WIDTH
    np.testing.assert_allclose(inspect(folder, heads=H).projection_kernel[0], expected)
    with pytest.raises(InputError, match="cross-attention"):
        inspect(folder, heads=H, attention="full", activations={"0": inputs()})
