"""Models made of one set of matrices, in every layout that is read."""

import json
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

D, H, WIDTH = 24, 4, 6


def matrices(keys=H, seed=0, heads=H):
    """Rows of q, k, v by heads with their biases as last column, and o (d, H·d_v)."""
    draw = np.random.default_rng(seed)
    parts = [draw.normal(size=(n, WIDTH, D + 1)) / 3 for n in (heads, keys, keys)]
    return [*parts, draw.normal(size=(D, heads * WIDTH))]


def split(name, *parts, end="."):
    """Rows of parts by heads in one tensor, and their biases."""
    rows = np.concatenate([part.reshape(-1, D + 1) for part in parts])
    return {f"{name}{end}weight": rows[:, :D], f"{name}{end}bias": rows[:, D]}


def separate(module, names, output):
    def build(*parts):
        tensors = {f"{output}.weight": parts[-1]}
        for name, part in zip(names, parts, strict=False):
            tensors |= split(f"{module}.{name}", part)
        return tensors

    return build


def columns(*parts):
    module = "transformer.h.0.attn"
    mask = {f"{module}.bias": np.tri(8)[None, None], f"{module}.masked_bias": np.array(-1e4)}
    fused = split(f"{module}.c_attn", *parts[:3]) | {f"{module}.c_proj.weight": parts[3]}
    return mask | {name: tensor.T for name, tensor in fused.items()}


def blocks(fused, output):
    def build(*parts):
        end = "_" if fused.endswith("in_proj") else "."
        return split(fused, *parts[:3], end=end) | {f"{output}.weight": parts[3]}

    return build


def groups(module):
    def build(q, k, v, o):
        each = q.reshape(len(k), -1, WIDTH, D + 1)
        rows = np.concatenate([each, k[:, None], v[:, None]], axis=1)
        return split(f"{module}.query_key_value", rows) | {f"{module}.dense.weight": o}

    return build


def heads(module):
    """TransformerLens; keys of fewer heads have an underscore."""

    def build(q, k, v, o):
        low = "_" if len(k) < len(q) else ""
        names = ("W_Q", f"{low}W_K", f"{low}W_V")
        tensors = {f"{module}.mask": np.ones((8, 8)), f"{module}.b_O": np.ones(D)}
        for name, part in zip(names, (q, k, v), strict=True):
            tensors[f"{module}.{name}"] = part[..., :D].swapaxes(1, 2)
            tensors[f"{module}.{name.replace('W', 'b')}"] = part[..., D]
        return tensors | {f"{module}.W_O": o.T.reshape(len(q), WIDTH, D)}

    return build


LLAMA, BERT = "model.layers.0.self_attn", "bert.encoder.layer.0.attention"
VIT, ALBERT = (
    "vit.encoder.layer.0.attention",
    "albert.encoder.albert_layer_groups.0.albert_layers.0",
)
QKV = ("query", "key", "value")
LAYOUTS = {
    "llama": separate(LLAMA, ("q_proj", "k_proj", "v_proj"), f"{LLAMA}.o_proj"),
    "phi": separate(LLAMA, ("q_proj", "k_proj", "v_proj"), f"{LLAMA}.dense"),
    "bert": separate(f"{BERT}.self", QKV, f"{BERT}.output.dense"),
    "vit": separate(f"{VIT}.attention", QKV, f"{VIT}.output.dense"),
    "new vit": separate(
        "layers.0.attention", ("q_proj", "k_proj", "v_proj"), "layers.0.attention.o_proj"
    ),
    "albert": separate(f"{ALBERT}.attention", QKV, f"{ALBERT}.attention.dense"),
    "distilbert": separate(
        "transformer.layer.0.attention",
        ("q_lin", "k_lin", "v_lin"),
        "transformer.layer.0.attention.out_lin",
    ),
    "gpt2": columns,
    "timm": blocks("blocks.0.attn.qkv", "blocks.0.attn.proj"),
    "phi3": blocks(f"{LLAMA}.qkv_proj", f"{LLAMA}.o_proj"),
    "transformerlens": heads("blocks.0.attn"),
    "torch": blocks("net.3.in_proj", "net.3.out_proj"),
    "bare torch": blocks("in_proj", "out_proj"),
    "neox": groups("gpt_neox.layers.0.attention"),
    "bloom": groups("h.0.self_attention"),
    "falcon": groups("transformer.h.0.self_attention"),
}
GROUPED = ("llama", "phi3", "falcon", "transformerlens")
"""Layouts that let several query heads share a key head."""


def write(folder, tensors, config=None, dtype=np.float64):
    """A folder with a model and its config."""
    folder.mkdir(exist_ok=True)
    stored = {name: np.ascontiguousarray(t, dtype) for name, t in tensors.items()}
    save_file(stored, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def renumbered(tensors, number):
    """Tensors of layer 0 as those of another layer."""
    return {name.replace(".0.", f".{number}."): tensor for name, tensor in tensors.items()}


def inputs(sequences=12, tokens=20, seed=1):
    return np.random.default_rng(seed).normal(size=(sequences, tokens, D))


RECORD = Path(__file__).with_name("families.npz")
"""Outputs of tiny models of transformers; written by benchmarks/families.py."""


def drawn(shapes):
    """Tensors by the names and shapes of a model's file: gains about 1, matrices about 0."""
    tensors = {}
    for name, shape in shapes.items():
        draw = np.random.default_rng(zlib.crc32(name.encode())).normal(size=shape) * 0.4
        tensors[name] = (draw + (len(shape) == 1)).astype(np.float32)
    return tensors
