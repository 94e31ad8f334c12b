"""What a family's config and tensors mean for attention: a plain forward pass, or a refusal."""

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.inspect import inspect
from sims.inspect.patterns import rule_of
from tests.inspect.models import LAYOUTS, LLAMA, WIDTH, D, H, inputs, matrices, write

DRAW = np.random.default_rng(5)
GAINS, SHIFTS = DRAW.normal(1, 0.5, size=(2, 2, H, WIDTH))
ONE, FLAT = GAINS[:, :1], GAINS.reshape(2, -1)


def effective_keys(rows, x, norms=None, scale=WIDTH**-0.5, turned=0, base=1e4, slopes=(0,) * H):
    """Of causal softmax: median over the tokens x (T, d), mean over heads."""
    q, k = (x @ r[..., :D].swapaxes(1, 2) + r[:, None, :, D] for r in rows[:2])
    if norms:
        q, k = (normalise(vectors, *norms) for vectors, norms in zip((q, k), norms, strict=True))
    places, half = np.arange(len(x)), turned // 2
    turns = np.exp(1j * places[:, None] * base ** (-np.arange(half) / (half or 1)))
    q, k = (
        np.concatenate([turns * (v[..., :half] + 1j * v[..., half:turned]), v[..., turned:]], -1)
        for v in (q, k)
    )
    distance = places[:, None] - places
    scores = scale * (q @ k.conj().swapaxes(1, 2)).real - np.multiply.outer(slopes, distance)
    w = np.exp(np.where(distance < 0, -np.inf, scores))
    return np.median(w.sum(-1) ** 2 / (w**2).sum(-1), axis=1).mean()


def normalise(x, gain, shift=0.0, centred=False, axes=-1, epsilon=1e-6):
    x = x - centred * x.mean(-1, keepdims=True)
    scale = np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    return x / scale * gain[:, None] + np.multiply(shift, np.ones_like(gain))[:, None]


def named(name, values, kind="weight"):
    letters = zip("qk", values, strict=True)
    return {f"{LLAMA}.{letter}_{name}.{kind}": value for letter, value in letters}


BY_HEAD = [named(f"layernorm.norms.{h}", GAINS[:, h]) for h in range(H)]
FAMILIES = {
    "gpt2": ("gpt2", {}, {}, {}),
    "gpt2 without scale": ("gpt2", {"scale_attn_weights": False}, {}, {"scale": 1}),
    "bloom": ("bloom", {}, {}, {"slopes": 2.0 ** -np.array([2, 4, 6, 8])}),
    "jamba": ("llama", {"attn_layer_period": 8}, {}, {}),
    "llama": ("llama", {"rope_theta": 9.0}, {}, {"turned": 6, "base": 9}),
    "gpt_neox": ("neox", {"rotary_pct": 0.67}, {}, {"turned": 4}),
    "qwen3": (
        "llama",
        {"rms_norm_eps": 0.3},
        named("norm", ONE[:, 0]),
        {"turned": 6, "norms": [(g, 0, False, -1, 0.3) for g in ONE]},
    ),
    "gemma3_text": (
        "llama",
        {"query_pre_attn_scalar": 4},
        named("norm", ONE[:, 0]),
        {"scale": 0.5, "norms": [(1 + g,) for g in ONE]},
    ),
    "olmo2": (
        "llama",
        {},
        named("norm", FLAT),
        {"norms": [(g, 0, False, (0, 2), 1e-5) for g in GAINS]},
    ),
    "chameleon": (
        "llama",
        {"rope_theta": 1e4},
        named("norm", GAINS) | named("norm", SHIFTS, "bias"),
        {"turned": 6, "norms": [(*gs, True, -1, 1e-5) for gs in zip(GAINS, SHIFTS, strict=True)]},
    ),
    "stablelm": (
        "llama",
        {"qk_layernorm": True, "rope_theta": 9, "partial_rotary_factor": 0.4},
        {k: v for tensors in BY_HEAD for k, v in tensors.items()},
        {"turned": 2, "base": 9, "norms": [(g, 0, True, -1, 1e-5) for g in GAINS]},
    ),
    "phi": (
        "llama",
        {"qk_layernorm": True, "layer_norm_eps": 0.1, "partial_rotary_factor": 0.7},
        named("layernorm", ONE[:, 0]),
        {"turned": 4, "norms": [(g, 0, True, -1, 0.1) for g in ONE]},
    ),
}
"""Layout, config, further tensors, and what the forward pass is given."""


@pytest.mark.parametrize("name", FAMILIES)
def test_effective_keys_are_those_of_a_plain_forward_pass(tmp_path, name):
    layout, config, tensors, how = FAMILIES[name]
    rows, x = matrices(), inputs(5, 14)
    config = {"model_type": name.split()[0], "num_attention_heads": H} | config
    folder = write(tmp_path / "model", LAYOUTS[layout](*rows) | tensors, config)
    kind = "causal" if name in ("gemma3_text", "olmo2") else None
    data = inspect(folder, activations={"0": x}, attention=kind)
    expected = np.mean([effective_keys(rows, sequence, **how) for sequence in x])
    assert data.typical_effective_keys.item() == pytest.approx(expected, rel=1e-9)
    assert ("positions are left out" in data.attrs["notes"]) == (kind is not None)


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
