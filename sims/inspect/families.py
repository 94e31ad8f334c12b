"""Model families: config keys, norms and positions that concern attention, one record each.

A key whose name concerns attention is used, is listed here as irrelevant for attention weights, or
is refused; it is never ignored.
"""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from sims.base.documents import mapping
from sims.base.errors import InputError


class Norm(BaseModel, frozen=True):
    """Normalisation of queries and keys before scores in a family.

    Attributes:
        names: names of the modules.
        centred: whether the mean is removed first (LayerNorm).
        joint: whether all heads are normalised together.
        epsilon: config key of ε, which is added to the mean square.
        default: ε if the config does not give it.
        switch: config key that turns the norm on; empty if it is always on.
    """

    names: tuple[str, str] = ("q_norm", "k_norm")
    centred: bool = False
    joint: bool = False
    epsilon: str = "rms_norm_eps"
    default: float = 1e-6
    switch: str = ""


class Family(BaseModel, frozen=True):
    """Attention of the models of one ``model_type``.

    Attributes:
        causal: whether a token sees only earlier tokens.
        rotated: share of a head's coordinates that rotate; None without rotary positions.
        base: base of the rotary wavelengths, if the config does not give it.
        linear: whether scores fall linearly with distance (ALiBi).
        gain: modules that may hold the normalisation before attention.
        before: config keys, and the values with which that normalisation precedes attention.
        after: names of the other normalisations of a block, which follow attention.
        centred: whether that normalisation removes the mean.
        offset: number added to stored gains.
        norm: norm of queries and keys.
        scale: config key whose power −½ multiplies scores, in place of 1/√d_k.
        scaled: config key that turns off the factor 1/√d_k by ``false``.
        keys: further supported keys of the config.
        defaults: settings of windows that a config may leave out.
    """

    causal: bool = True
    rotated: float | None = None
    base: float | None = None
    linear: bool = False
    gain: tuple[str, ...] = ()
    before: dict[str, bool] = {}
    after: tuple[str, ...] = ()
    centred: bool = False
    offset: float = 0.0
    norm: Norm | None = None
    scale: str = ""
    scaled: str = ""
    keys: tuple[str, ...] = ()
    defaults: dict[str, int] = {}

    @property
    def known_keys(self) -> set[str]:
        """Supported config keys that concern attention."""
        known = {*USED.split(), *UNRELATED.split(), *self.keys}
        known |= {self.scale, self.scaled, (self.norm or Norm()).switch, *self.before}
        if self.causal:
            known.update(WINDOWS.split())
        if self.rotated is not None:
            known.update(ROTARY.split())
        return known

    def norms_first(self, config: Mapping[str, Any]) -> bool:
        """True if a model with this config normalises the residual stream before attention."""
        return bool(self.gain) and all(config.get(k, v) is v for k, v in self.before.items())


RECORDS = """
bert electra roberta: {causal: false}
albert: {causal: false, after: [attention.LayerNorm, full_layer_layer_norm]}
distilbert: {causal: false, after: [sa_layer_norm]}
deit vit: {causal: false, gain: [layernorm_before], centred: true}
llama mistral phi3: {rotated: 1, base: 10000, gain: [input_layernorm]}
qwen2: &qwen
  rotated: 1
  base: 10000
  gain: [input_layernorm]
  defaults: {use_sliding_window: 0, max_window_layers: 28}
qwen3:
  <<: *qwen
  norm: {}
gemma: {rotated: 1, base: 10000, gain: [input_layernorm], offset: 1}
falcon: {rotated: 1, base: 10000, gain: [input_layernorm, ln_attn], centred: true}
gpt_neox: {rotated: 0.25, base: 10000, gain: [input_layernorm], centred: true}
bloom: {linear: true, gain: [input_layernorm], centred: true}
opt: {gain: [self_attn_layer_norm], before: {do_layer_norm_before: true}, centred: true}
gpt2: {gain: [ln_1], after: [ln_2], centred: true, scaled: scale_attn_weights}
phi:
  rotated: 0.5
  base: 10000
  gain: [input_layernorm]
  centred: true
  norm: &layernorm
    names: [q_layernorm, k_layernorm]
    centred: true
    epsilon: layer_norm_eps
    default: 1.0e-5
    switch: qk_layernorm
stablelm:
  rotated: 0.25
  gain: [input_layernorm]
  centred: true
  norm: *layernorm
gemma3_text:
  rotated: 1
  gain: [input_layernorm]
  offset: 1
  norm: {}
  scale: query_pre_attn_scalar
  keys: [rope_local_base_freq, sliding_window_pattern, _sliding_window_pattern]
  defaults: {sliding_window_pattern: 6}
olmo2: {rotated: 1, norm: {joint: true, default: 1.0e-5}}
chameleon:
  rotated: 1
  gain: [input_layernorm]
  before: {swin_norm: false}
  norm: {centred: true, epsilon: fixed, default: 1.0e-5}
jamba: {gain: [input_layernorm], keys: [attn_layer_offset, attn_layer_period]}
"""
FAMILIES = {
    name: Family.model_validate(record)
    for names, record in mapping(RECORDS, "families").items()
    for name in names.split()
}
"""Families by ``model_type``; each has a forward pass of transformers in tests/inspect."""
REFUSED = {"gpt_bigcode": "not supported: its fused queries, keys and values have another order"}
"""Families whose tensors have the names of another layout, and what is said of them."""

ABOUT_ATTENTION = re.compile(
    r"att|head|rope|rotary|softcap|window|scal|norm|(?:^|_)eps|alibi|bias|clip|sink|position|qk|kv"
    r"|causal|is_decoder|chunk|relative|multiplier|layer_types|query|sparse|lambda|pos_emb|ntk|nope"
    r"|softmax|differential|gate"
)
SWITCHES = re.compile(r"(?<!m)rope|rotary|causal|scale(?!\w*inverse)")
"""Keys of features that ``false`` turns off."""
ROTARY = "rope_theta rope_parameters rope_scaling rotary_emb_base rotary_pct partial_rotary_factor"
WINDOWS = "sliding_window use_sliding_window layer_types max_window_layers"
"""Keys of windows that apply in every layer."""
USED = (
    "num_attention_heads n_head num_heads n_heads num_key_value_heads head_dim pruned_heads"
    " is_causal is_decoder encoder_attention_heads decoder_attention_heads"
)
UNRELATED = (
    "attention_dropout attention_probs_dropout_prob attn_dropout attn_pdrop"
    " attention_softmax_in_fp32 attn_implementation _attn_implementation"
    " _attn_implementation_autoset _flash_attn_2_enabled"
    " use_flash_attn output_attentions add_cross_attention reorder_and_upcast_attn"
    " attention_bias bias qkv_bias mlp_bias use_bias use_qkv_bias enable_bias lm_head_bias row_bias"
    " bias_dropout_fusion skip_bias_add skip_bias_add_qkv masked_softmax_fusion"
    " max_position_embeddings n_positions original_max_position_embeddings"
    " layer_norm_eps layer_norm_epsilon rms_norm_eps norm_eps norm_epsilon"
    " layer_norm_elementwise_affine do_layer_norm_before _remove_final_layer_norm"
    " apply_residual_connection_post_layernorm num_ln_in_parallel_attn parallel_attn"
    " initializer_norm norm_topk_prob final_logit_softcapping logit_scale logits_scaling"
    " scale_embedding embedding_multiplier residual_multiplier down_scale_factor"
    " chunk_size_feed_forward num_kv_heads n_head_kv multi_query"
    " keys_to_ignore_at_inference mamba_conv_bias mamba_proj_bias"
    " mamba_inner_layernorms sinusoidal_pos_embds offset_alibi normalize_before normalize_embedding"
    " static_position_embeddings extra_pos_embeddings"
)
"""Keys that the tensors repeat, or that do not affect attention weights."""


def check_keys(config: Mapping[str, Any], family: Family) -> None:
    """Check the keys of a config.

    Raises:
        InputError: a key concerns attention and is not supported.
    """
    for key in config.keys() - family.known_keys:
        if ABOUT_ATTENTION.search(key) and not _is_off(key, config[key]):
            allowed = "none: attention weights with this setting are not supported"
            raise InputError(f"config.{key}", config[key], allowed)
    neutral = {"is_causal": (None, family.causal), "is_decoder": (None, False, family.causal)}
    for key, values in neutral.items():
        if config.get(key) not in values:
            allowed = f"{family.causal}, or another model_type"
            raise InputError(f"config.{key}", config[key], allowed)


def _is_off(key: str, value: object) -> bool:
    """True if a value turns off the feature of its key."""
    if value is None or (not value and not SWITCHES.search(key)):
        return True
    return (key, value) == ("position_embedding_type", "absolute")


def read_number(config: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """Positive number of a config, or the default.

    Raises:
        InputError: the value is not positive, or is missing without a default.
    """
    value = config.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e300:
        raise InputError(f"config.{key}", value, "a number above 0")
    return float(value)
