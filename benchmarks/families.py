"""Effective keys of `sims inspect` beside those of transformers, which `make peers` installs apart.

Of each family a tiny random model is saved, run, and inspected at the inputs of its layers.
"""

import tempfile

import numpy as np
import torch
from transformers import CONFIG_MAPPING, AutoModel

from sims.inspect import inspect

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 90,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}
KEYS = {"num_key_value_heads": 2}
WIDE = {"head_dim": 16}
FAMILIES = {
    "albert": {"embedding_size": 32},
    "bert": {},
    "bloom": {},
    "distilbert": {"hidden_dim": 64},
    "electra": {"embedding_size": 32},
    "falcon": {"new_decoder_architecture": True, "num_kv_heads": 2},
    "gemma": KEYS | WIDE,
    "gpt2": {},
    "gpt2 without scale": {"scale_attn_weights": False},
    "gpt_neox": {},
    "jamba": KEYS | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 1},
    "llama": KEYS | {"rope_theta": 50.0},
    "mistral": KEYS,
    "olmo2": KEYS,
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 64},
    "phi": {"qk_layernorm": True},
    "phi3": KEYS | {"pad_token_id": 0},
    "qwen2": KEYS,
    "qwen3": KEYS | WIDE | {"rms_norm_eps": 0.3},
    "roberta": {},
    "stablelm": KEYS | {"qk_layernorm": True},
}
"""What each config has beside the sizes."""


def compare(name: str) -> float:
    """The largest relative difference of effective keys over the layers of a family."""
    kind = name.split()[0]
    config = CONFIG_MAPPING[kind](**SIZES | FAMILIES[name])
    model = AutoModel.from_config(config, attn_implementation="eager").double().eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, dtype=parameter.dtype)
    tokens = torch.randint(3, 90, (8, 20))
    inputs = {}

    def keep(module):
        def hook(_, args, kwargs):
            x = args[0] if args else kwargs["hidden_states"]
            inputs.setdefault(module, []).append(x.numpy())

        return hook

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        modules = inspect(folder).module.values
        for module in modules:
            model.get_submodule(module).register_forward_pre_hook(keep(module), with_kwargs=True)
        attentions = model(tokens, output_attentions=True).attentions
        passes = {m: x[0] for m, x in inputs.items()}
        if len(attentions) > len(modules) == 1:
            passes = {f"{modules[0]}#{i}": x for i, x in enumerate(inputs[modules[0]])}
        found = inspect(folder, activations=passes).typical_effective_keys.values
    weights = [w.numpy() for w in attentions if w is not None]
    keys = [np.median(1 / (w**2).sum(-1), -1).mean() for w in weights]
    print(f"{name:20s} {found.round(3)} {np.round(keys, 3)}")
    return float(np.abs(found / keys - 1).max())


if __name__ == "__main__":
    torch.manual_seed(0)
    worst = {name: compare(name) for name in FAMILIES}
    assert max(worst.values()) < 1e-6, worst
