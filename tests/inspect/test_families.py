"""What a key of a config means for attention: it is used, or refused by name."""

import pytest

from sims.base.errors import InputError
from sims.inspect.patterns import rule_of

REFUSED = {
    "llama": {
        "alibi": True, "attention_multiplier": 0.1, "attn_logit_softcapping": 50.0, "clip_qkv": 8,
        "is_causal": False, "layer_scale": 2, "no_rope_layers": [1, 0], "num_sink_tokens": 4,
        "position_embedding_type": "relative_key", "query_pre_attn_scalar": 8,
        "rope_parameters": {"rope_type": "default", "attention_factor": 1.2},
        "rope_scaling": {"type": "yarn", "factor": 4, "mscale": 0.7}, "rope_theta": "1e4",
        "scale_attn_weights": False, "sliding_window": "all", "use_attn_gate": True,
        "use_rope": False,
    },
    "gpt2": {"rope_theta": 1e4, "scale_attn_by_inverse_layer_idx": True},
    "bert": {"is_decoder": True, "relative_attention_num_buckets": 32, "sliding_window": 9},
    "stablelm": {"rope_theta": None},
}  # fmt: skip
NEUTRAL = {
    "gpt2": {"scale_attn_by_inverse_layer_idx": False, "reorder_and_upcast_attn": True},
    "bert": {"position_embedding_type": "absolute", "is_decoder": False, "attention_dropout": 0.1},
    "llama": {"alibi": False, "clip_qkv": None, "rope_scaling": None, "is_causal": True},
}
SETTINGS = [(*row, True) for row in REFUSED.items()] + [(*row, False) for row in NEUTRAL.items()]


@pytest.mark.parametrize(("family", "keys", "refused"), SETTINGS)
def test_a_key_about_attention_is_understood_or_refused_by_name(family, keys, refused):
    for key, value in keys.items():
        config = {"model_type": family, key: value}
        if refused:
            with pytest.raises(InputError, match=rf"config\.{key}: "):
                rule_of(config)
        else:
            assert rule_of(config) == rule_of({"model_type": family})
