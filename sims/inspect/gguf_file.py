"""Tensors and settings of a GGUF file, under the names of transformers.

Files of the architecture ``llama`` are read: LLaMA, Mistral, SmolLM and others of their layout.
Their rotary positions turn rows 2i and 2i + 1 of a head's queries and keys together, those of
transformers rows i and i + d_k/2. Rows are put into the second order. Quantised tensors are
dequantised.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sims.base.errors import InputError

ARCHITECTURE = "llama"
SETTINGS = {
    "general.architecture": "model_type",
    "llama.block_count": "num_hidden_layers",
    "llama.embedding_length": "hidden_size",
    "llama.attention.head_count": "num_attention_heads",
    "llama.attention.head_count_kv": "num_key_value_heads",
    "llama.attention.key_length": "head_dim",
    "llama.attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "llama.attention.causal": "is_causal",
    "llama.rope.freq_base": "rope_theta",
}
"""Metadata that config.json has under other names; the rest on attention keeps its names."""
ROTATED = "llama.rope.dimension_count"
ROWS = (".attn_q.", ".attn_k.")
"""Parts of the names of tensors whose rows turn."""
NAMES = {
    "blk.": "model.layers.",
    ".attn_q.": ".self_attn.q_proj.",
    ".attn_k.": ".self_attn.k_proj.",
    ".attn_v.": ".self_attn.v_proj.",
    ".attn_output.": ".self_attn.o_proj.",
    ".attn_norm.": ".input_layernorm.",
    ".attn_": ".self_attn.",
}
"""Parts of names, and those of transformers in their place, in this order."""


def open_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of a file, as config.json has them; shapes and readers of its tensors, by name.

    Raises:
        InputError: the package gguf is missing, or the architecture is not supported.
    """
    reader = open_reader(path)
    config = {}
    for name, field in reader.fields.items():
        if name in SETTINGS or name.startswith(("llama.attention.", "llama.rope.")):
            config[SETTINGS.get(name, name)] = field.contents()
    if (architecture := config["model_type"]) != ARCHITECTURE:
        raise InputError(f"{path}: general.architecture", architecture, ARCHITECTURE)
    width = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    if config.get(ROTATED) == width:
        del config[ROTATED]
    config.pop("llama.attention.value_length", None)  # as the tensors say
    tensors = {}
    for tensor in reader.tensors:
        name = tensor.name
        if name == "rope_freqs.weight":
            config["rope_scaling"] = name
        turned = width if any(part in name for part in ROWS) else 0
        for stored, given in NAMES.items():
            name = name.replace(stored, given)
        shape = tuple(reversed(tensor.shape.tolist()))
        tensors[name] = (shape, partial(_values, tensor, shape, turned))
    return config, tensors


def _values(tensor: Any, shape: tuple[int, ...], turned: int) -> np.ndarray:
    """Values of a tensor; rows of heads of width ``turned`` in the order of transformers."""
    from gguf import dequantize

    values = dequantize(tensor.data, tensor.tensor_type).reshape(shape)
    if turned:
        pairs = values.reshape(-1, turned // 2, 2, *shape[1:])
        values = pairs.swapaxes(1, 2).reshape(shape)
    return np.asarray(values)


def open_reader(path: Path) -> Any:
    """The package's reader of a file, which refuses a header that the file does not hold."""
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        extra = "GGUF needs a package: pip install 'nw-attention-sims[models]'"
        raise InputError(str(path), extra) from None

    class Reader(GGUFReader):
        def _get(self, offset: int, dtype: Any, count: int = 1, *order: Any, **named: Any) -> Any:
            if int(offset) + np.dtype(dtype).itemsize * int(count) > self.data.size:
                raise ValueError("the file ends early")
            return super()._get(offset, dtype, count, *order, **named)

    return Reader(path)
