"""Attention as a model computes it from a layer's inputs: masks, positions, softmax.

Only rules that a config documents are applied; a model with another rule is refused rather than
approximated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.attention.attention import causal_mask, distance_bias, softmax
from sims.base.errors import InputError, one_of
from sims.inspect.families import FAMILIES, Family, check_keys, read_number
from sims.inspect.layer import Layer
from sims.inspect.reader import count

KINDS = ("causal", "full")
LAYER_TYPES = ("full_attention", "sliding_attention")
PLAIN_ROTATION = ("rope_theta", "partial_rotary_factor")
"""Rotary settings that do not scale positions."""


@dataclass(frozen=True)
class Rule:
    """Rule that turns scores into weights.

    Attributes:
        causal: whether a token sees only earlier tokens.
        base: base of the rotary wavelengths; None without rotation.
        rotated: share of a head's coordinates that rotate.
        linear: whether scores fall linearly with distance (ALiBi).
        window: maximum number of tokens in a sequence.
        scale: factor of products of queries and keys; None for 1/√d_k.
    """

    causal: bool
    base: float | None = None
    rotated: float = 1.0
    linear: bool = False
    window: float = math.inf
    scale: float | None = None

    def factor(self, width: int) -> float:
        """Factor of products of queries and keys of width d_k."""
        return width**-0.5 if self.scale is None else self.scale


def rule_of(config: Mapping[str, Any], kind: str | None = None, layer: int = 0) -> Rule:
    """Rule of a layer by the config, or plain softmax of the given kind.

    Raises:
        InputError: neither gives a rule, or the config's rule is not supported.
    """
    family = _family(config, kind)
    check_keys(config, family)
    config = {**family.defaults, **config}
    sliding = _slides(config, layer)
    base, rotated = _rotation(config, family, kind, LAYER_TYPES[sliding])
    window = math.inf
    if sliding and config.get("use_sliding_window", True):
        window = read_number(config, "sliding_window", math.inf)
    return Rule(family.causal, base, rotated, family.linear, window, _scale(config, family))


def _slides(config: Mapping[str, Any], layer: int) -> bool:
    """True if the sliding window of a config, if it has one, applies in a layer."""
    kinds = config.get("layer_types")
    if kinds is None:
        if period := count(config, ("sliding_window_pattern",)):
            return bool((layer + 1) % period)
        return layer >= (count(config, ("max_window_layers",)) or 0)
    if isinstance(kinds, list) and layer < len(kinds) and kinds[layer] in LAYER_TYPES:
        return kinds[layer] == LAYER_TYPES[1]
    raise InputError("config.layer_types", kinds, f"{' or '.join(LAYER_TYPES)} for each layer")


def _scale(config: Mapping[str, Any], family: Family) -> float | None:
    """Factor of the scores; None for 1/√d_k."""
    if family.scale:
        return read_number(config, family.scale) ** -0.5
    return 1.0 if family.scaled and config.get(family.scaled) is False else None


def _family(config: Mapping[str, Any], kind: str | None) -> Family:
    """The family of a config, or one without positions of the kind that is given.

    Raises:
        InputError: neither says it, or they disagree.
    """
    if kind is not None and kind not in KINDS:
        raise InputError("--attention", kind, one_of(KINDS, kind))
    name = config.get("model_type")
    family = FAMILIES.get(str(name))
    if kind is None:
        if family is None:
            allowed = f"{', '.join(sorted(FAMILIES))}; or --attention causal or full"
            raise InputError("config.model_type", name, allowed)
        return family
    causal = kind == "causal"
    if family is not None and family.causal != causal:
        raise InputError("--attention", kind, f"as config.model_type {name} has it")
    return family or Family(causal=causal)


def _rotation(
    config: Mapping[str, Any], family: Family, kind: str | None, layer_type: str
) -> tuple[float | None, float]:
    """Base of the rotary wavelengths, or None, and the share of a head that rotates."""
    if family.rotated is None:
        return None, 1.0
    if layer_type == LAYER_TYPES[1] and config.get("rope_local_base_freq") is not None:
        return read_number(config, "rope_local_base_freq"), family.rotated
    settings = {**config, **_plain_rotation(config, "rope_parameters", layer_type)}
    settings |= _plain_rotation(config, "rope_scaling", layer_type)
    default = read_number(settings, "rotary_emb_base", family.base or math.nan)
    base = read_number(settings, "rope_theta", default)
    if math.isnan(base):
        if kind is None:
            missing = "not there: give it, or --attention for plain softmax without positions"
            raise InputError("config.rope_theta", missing)
        return None, 1.0
    share = read_number(settings, "rotary_pct", family.rotated)
    return base, read_number(settings, "partial_rotary_factor", share)


def _plain_rotation(config: Mapping[str, Any], key: str, layer_type: str) -> dict[str, Any]:
    """Rotary settings of a config; empty without any.

    Raises:
        InputError: they scale positions.
    """
    settings = config.get(key) or {}
    if isinstance(settings, dict) and layer_type in settings:
        settings = settings[layer_type]
    plain = isinstance(settings, dict) and all(
        name in PLAIN_ROTATION or value in (None, "default") for name, value in settings.items()
    )
    if not plain:
        raise InputError(f"config.{key}", settings, "rotary positions that are not scaled")
    return dict(settings)


def projections(layer: Layer, x: np.ndarray, rule: Rule) -> tuple[np.ndarray, ...]:
    """Queries (H, T, d_k), keys (H_kv, T, d_k) and values (H_kv, T, d_v) of tokens (T, d).

    Tokens (…, 1, T, d) of several sequences keep their first axes. Queries and keys are normalised,
    then rotated, if the model does so. Keys are then centred by key head, which changes no weight:
    softmax ignores a constant on all keys.
    """
    stacks = zip(layer.matrices[:3], layer.biases, strict=True)
    query, key, value = (x @ matrix + bias[:, None, :] for matrix, bias in stacks)
    if layer.norms:
        query = layer.norms[0](query)
        key = layer.norms[1](key)
    if rule.base is not None:
        query = rotated(query, rule.base, rule.rotated)
        key = rotated(key, rule.base, rule.rotated)
    return query, key - key.mean(-2, keepdims=True), value


def rotated(
    x: np.ndarray, base: float, share: float = 1.0, positions: np.ndarray | None = None
) -> np.ndarray:
    """Rotary embedding of heads (…, T, d_k): coordinates i and i + r/2 rotate by ``t/base^{2i/r}``.

    The first ``r = share·d_k`` coordinates rotate; pairs are those of transformers' files.
    Positions t are 0 … T − 1, or an array that broadcasts to (…, T).

    Raises:
        InputError: r is odd, or above d_k.
    """
    turned = int(share * x.shape[-1])
    if turned % 2 or turned > x.shape[-1]:
        raise InputError("rotary coordinates", turned, f"an even number up to {x.shape[-1]}")
    half = turned // 2
    place = np.arange(x.shape[-2]) if positions is None else positions
    angle = place[..., None] / base ** (np.arange(half) * 2 / turned)
    first = x[..., :half]
    second = x[..., half:turned]
    cosine = np.cos(angle).astype(x.dtype)
    sine = np.sin(angle).astype(x.dtype)
    turned_first = first * cosine - second * sine
    turned_second = second * cosine + first * sine
    return np.concatenate([turned_first, turned_second, x[..., turned:]], axis=-1)


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
    """Attention weights (…, H, rows, T) of queries (…, H, T, d_k) and keys (…, H_kv, T, d_k)."""
    tokens = query.shape[-2]
    scores = query[..., rows, :] @ key[..., layer.key_head, :, :].swapaxes(-1, -2)
    scores *= rule.factor(query.shape[-1])
    if rule.linear:
        scores += distance_bias(tokens, 1.0)[rows] * slopes(query.shape[-3])[:, None, None]
    return softmax(scores, causal_mask(tokens)[rows] if rule.causal else None)
