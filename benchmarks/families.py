"""Outputs of tiny models of transformers, which tests/inspect compares with `sims inspect`.

`make peers` installs transformers apart and writes tests/inspect/families.npz. Weights are NumPy's,
drawn by the names of tensors (:func:`tests.inspect.models.drawn`), so that a test needs no torch.
"""

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING, AutoModel

from sims.inspect import Model
from sims.inspect.layouts import modules
from tests.inspect.models import RECORD, drawn

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 16,
    "vocab_size": 12,
    "max_position_embeddings": 16,
}
KEYS = {"num_key_value_heads": 2}
WIDE = {"head_dim": 16}
IMAGE = {"image_size": 4, "patch_size": 2, "num_channels": 1}
IMAGES = {
    "vocabulary_map": {"<image>": 11},
    "vq_config": {"embed_dim": 4, "latent_channels": 4, "num_embeddings": 4, "base_channels": 32},
}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}
FAMILIES = {
    "albert": {"embedding_size": 8},
    "bert": {},
    "bloom": {},
    "chameleon": KEYS | ROPE | IMAGES,
    "chameleon swin": KEYS | ROPE | IMAGES | {"swin_norm": True},
    "deit": IMAGE,
    "distilbert": {"hidden_dim": 16},
    "electra": {"embedding_size": 8},
    "falcon": {"new_decoder_architecture": True, "num_kv_heads": 2, "alibi": False},
    "falcon multi-query": {"multi_query": True, "alibi": False},
    "falcon multi-head": {"multi_query": False, "alibi": False},
    "gemma": KEYS | WIDE,
    "gemma3_text": KEYS
    | WIDE
    | {
        "layer_types": ["sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 24,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
            "full_attention": {"rope_type": "default", "rope_theta": 500.0},
        },
    },
    "gpt2": {},
    "gpt2 without scale": {"scale_attn_weights": False},
    "gpt_neox": {},
    "jamba": KEYS | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 1},
    "llama": KEYS | ROPE,
    "llama with biases": KEYS | {"attention_bias": True},
    "mistral": KEYS,
    "olmo2": KEYS,
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 16},
    "opt post-norm": {"word_embed_proj_dim": 32, "ffn_dim": 16, "do_layer_norm_before": False},
    "phi": {"qk_layernorm": True},
    "phi3": KEYS | {"pad_token_id": 0},
    "qwen2": KEYS,
    "qwen2 windows": KEYS | {"use_sliding_window": True, "sliding_window": 9},
    "qwen3": KEYS | WIDE | {"rms_norm_eps": 0.3},
    "roberta": {},
    "stablelm": KEYS | {"qk_layernorm": True},
    "vit": IMAGE,
}
"""What each config has in addition to the sizes."""
OUTPUTS = ("o_proj", "out_proj", "dense", "c_proj", "out_lin", "output.dense")
"""Names of output projections in the attention module, or beside it."""
TOKENS = 4
KEPT = 2
"""Number of passes through a module that are recorded."""


def observe(model: torch.nn.Module, module: str) -> dict[str, list[np.ndarray]]:
    """Lists that fill up with inputs of the block and of the attention, and with its outputs."""
    if module not in dict(model.named_modules()):  # files keep the names of older versions
        module = module.replace("encoder.layer.", "layers.").removesuffix(".attention")
    seen: dict[str, list[np.ndarray]] = {}

    def keep(name):
        values = seen.setdefault(name, [])

        def hook(_, args, kwargs, output=None):
            x = output if output is not None else [*args, *kwargs.values()][0]
            values.append(x[0].reshape(-1, SIZES["hidden_size"]).numpy().astype(np.float32))

        return hook

    attention = model.get_submodule(module)
    block = model.get_submodule(re.match(r"(?:.*\.)?\d+(?=\.)", module)[0])
    places = (attention, model.get_submodule(module.rpartition(".")[0]))
    output = next(m for n in OUTPUTS for p in places for k, m in p.named_modules() if k == n)
    block.register_forward_pre_hook(keep("block"), with_kwargs=True)
    attention.register_forward_pre_hook(keep("input"), with_kwargs=True)
    output.register_forward_hook(keep("output"), with_kwargs=True)
    return seen


def record(name: str, folder: Path) -> dict[str, np.ndarray]:
    """Config, shapes, and inputs and outputs of every attention of a family's tiny model."""
    config = CONFIG_MAPPING[name.split()[0]](**SIZES | FAMILIES[name])
    AutoModel.from_config(config).save_pretrained(folder)
    file = folder / "model.safetensors"
    stored = load_file(file)
    shapes = {k: list(v.shape) for k, v in stored.items() if not k.startswith("vqmodel")}
    save_file({k: torch.tensor(v) for k, v in drawn(shapes).items()}, file, {"format": "pt"})
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    content = json.loads((folder / "config.json").read_text())
    found = {"config": np.array(json.dumps(content)), "shapes": np.array(json.dumps(shapes))}
    seen = {module: observe(model, module) for module in modules(Model(folder))}
    if "image_size" in FAMILIES[name]:
        given = {"pixel_values": torch.randn(1, 1, 4, 4).double()}
    else:
        given = {"input_ids": torch.arange(TOKENS)[None] + 3}
    with torch.no_grad():
        model(**given)
    for module, lists in seen.items():
        for kind, passes in lists.items():
            for number, values in enumerate(passes[:KEPT]):
                found[f"{module} {number} {kind}"] = values
    return found


def main() -> None:
    """Write the record of all families."""
    torch.manual_seed(0)
    arrays = {}
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            for key, values in record(name, Path(folder)).items():
                arrays[f"{name}: {key}"] = values
        print(name)
    np.savez_compressed(RECORD, **arrays)


if __name__ == "__main__":
    main()
