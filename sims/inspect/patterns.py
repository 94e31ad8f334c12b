"""Attention as a model computes it from a layer's inputs: masks, positions, softmax.

Only rules that a config documents are applied; a model with another rule is refused rather than
approximated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.attention.attention import causal_mask, distance_bias, softmax
from sims.errors import InputError, one_of
from sims.inspect.layouts import Layer

FULL = ("albert", "bert", "deit", "distilbert", "electra", "roberta", "vit")
ROTARY = ("falcon", "gemma", "gpt_neox", "llama", "mistral", "phi", "phi3", "qwen2", "qwen3")
CAUSAL = ("bloom", "gpt2", "opt", *ROTARY)
PARTIAL = {"gpt_neox": 0.25, "phi": 0.5}
"""Share of a head that turns where the config does not say it."""
KINDS = ("causal", "full")
REFUSED = (
    "alibi", "attn_logit_softcapping", "attention_chunk_size", "is_decoder", "qk_layernorm",
    "rope_scaling",
    "scale_attn_by_inverse_layer_idx",
)  # fmt: skip
"""Keys of a config that change scores in a way that is not computed here."""

EPSILON = 1e-6
"""Added to the mean square of a query or key before it divides (Qwen3)."""


@dataclass(frozen=True)
class Rule:
    """How scores become weights.

    Attributes:
        causal: whether a token sees earlier tokens alone.
        base: of the rotary wavelengths; None without rotation.
        rotated: share of a head's coordinates that turn.
        linear: whether scores fall linearly with distance (ALiBi).
        window: the most tokens a sequence may have.
    """

    causal: bool
    base: float | None = None
    rotated: float = 1.0
    linear: bool = False
    window: int | None = None


def rule_of(config: Mapping[str, Any], kind: str | None = None) -> Rule:
    """The rule of a config, or plain softmax of the kind that is given.

    Raises:
        InputError: neither says it, or the config has a rule that is not computed here.
    """
    if kind is not None and kind not in KINDS:
        raise InputError("--attention", kind, one_of(KINDS, kind))
    name = config.get("model_type")
    if name not in CAUSAL + FULL:
        if kind is None:
            allowed = f"{', '.join(sorted(CAUSAL + FULL))}; or --attention causal or full"
            raise InputError("config.model_type", name, allowed)
        return Rule(kind == "causal")
    if kind is not None and (kind == "causal") != (name in CAUSAL):
        raise InputError("--attention", kind, f"as config.model_type {name} has it")
    rotary = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling") or rotary
    refused = {key: config.get(key) for key in REFUSED if config.get(key)}
    if scaling.get("rope_type", scaling.get("type", "default")) == "default":
        refused.pop("rope_scaling", None)
    else:
        refused["rope_scaling"] = scaling
    if config.get("position_embedding_type", "absolute") != "absolute":
        refused["position_embedding_type"] = config["position_embedding_type"]
    for key, value in refused.items():
        raise InputError(f"config.{key}", value, "none: weights under it are not computed here")
    settings = {**config, **rotary}
    base = settings.get("rope_theta", settings.get("rotary_emb_base", 1e4))
    usual = settings.get("rotary_pct", PARTIAL.get(name, 1.0))
    share = settings.get("partial_rotary_factor", usual)
    windowed = config.get("use_sliding_window", True)
    return Rule(
        name in CAUSAL,
        float(base) if name in ROTARY else None,
        float(share),
        name == "bloom",
        config.get("sliding_window") if windowed else None,
    )


def projections(layer: Layer, x: np.ndarray, rule: Rule) -> tuple[np.ndarray, ...]:
    """Queries (H, T, d_k), keys (H_kv, T, d_k) and values (H_kv, T, d_v) of tokens (T, d).

    Queries and keys are as scores see them: normalised, then rotated, where the model does so.
    """
    stacks = zip(layer.matrices[:3], layer.biases, strict=True)
    query, key, value = (x @ matrix + bias[:, None, :] for matrix, bias in stacks)
    if layer.norms is not None:
        query, key = (
            vectors * gain / np.sqrt((vectors**2).mean(-1, keepdims=True) + EPSILON)
            for vectors, gain in zip((query, key), layer.norms, strict=True)
        )
    if rule.base is not None:
        query, key = (rotated(vectors, rule.base, rule.rotated) for vectors in (query, key))
    return query, key, value


def rotated(
    x: np.ndarray, base: float, share: float = 1.0, positions: np.ndarray | None = None
) -> np.ndarray:
    """Rotary embedding of heads (…, T, d_k): coordinates i and i + r/2 turn by ``t/base^{2i/r}``.

    The first ``r = share·d_k`` coordinates turn; pairs are those of transformers' files. Positions
    t are 0 … T − 1, or an array that broadcasts to (…, T).
    """
    turned = int(share * x.shape[-1])
    half = turned // 2
    place = np.arange(x.shape[-2]) if positions is None else positions
    angle = place[..., None] / base ** (np.arange(half) * 2 / turned)
    first, second = x[..., :half], x[..., half:turned]
    cosine, sine = np.cos(angle), np.sin(angle)
    parts = first * cosine - second * sine, second * cosine + first * sine, x[..., turned:]
    return np.concatenate(parts, axis=-1)


def slopes(heads: int) -> np.ndarray:
    """ALiBi's slope of each head: ``2^{−8h/n}`` for n the largest power of 2 up to H, then between.

    Source: Press, Smith & Lewis (2022), arXiv 2108.12409.
    """
    power = 2 ** (heads.bit_length() - 1)
    first = 2.0 ** (-8 / power * np.arange(1, power + 1))
    between = 2.0 ** (-4 / power * np.arange(1, 2 * (heads - power), 2))
    return np.concatenate([first, between])


def weights(
    layer: Layer, query: np.ndarray, key: np.ndarray, rule: Rule, rows: slice = slice(None)
) -> np.ndarray:
    """Attention weights (H, rows, T) of queries (H, T, d_k) and keys (H_kv, T, d_k)."""
    tokens = query.shape[-2]
    scores = query[:, rows] @ key[layer.key_head].swapaxes(-1, -2)
    scores /= np.sqrt(query.shape[-1])
    if rule.linear:
        scores += distance_bias(tokens, 1.0)[rows] * slopes(len(query))[:, None, None]
    return softmax(scores, causal_mask(tokens)[rows] if rule.causal else None)
