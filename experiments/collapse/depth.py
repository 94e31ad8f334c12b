"""Residuals layer by layer, kept apart from the mean token; and one layer near collapse."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sims.attention.attention import causal_mask, distance_bias, rms_norm, softmax
from sims.attention.hidden import Stream, split, split_layer, split_rms_norm
from sims.montecarlo import Draw, HostBatches

from .cases import near_collapse

Array = np.ndarray


def fixed_bias(regime: Mapping[str, Any], n: int) -> Array | None:
    """The score bias of a regime, −∞ where it masks."""
    if "slope" in regime:
        return distance_bias(n, regime["slope"])
    return np.where(causal_mask(n), 0.0, -np.inf) if regime.get("causal") else None


def layers(regime: Mapping[str, Any], settings: Mapping[str, Any]) -> HostBatches:
    """Mean log-odds and log-residuals after every layer, and how many draws have collapsed.

    Args:
        regime: ``depth``, and where they are not 0, 1 or absent: ``scale`` of scores, ``variance``
            σ² of values, ``skip``, ``branch``, ``slope``, ``causal``, ``positions``, ``norm``,
            ``uniform`` (scores of 0).
        settings: ``n``, ``d``, ``width`` of the score matrix.
    """
    dims = dict.fromkeys(("log_odds", "log_residual", "collapsed"), ("layer",))
    return HostBatches(partial(_layers, dict(settings) | dict(regime)), dims=dims)


COLLAPSED = np.log(1e-6)
"""A draw with ρ below 10⁻⁶ has collapsed."""


def _layers(p: dict[str, Any], draw: Draw, replicates: int, _: None) -> Mapping[str, Any]:
    rng, n, d, width = draw.rng(), p["n"], p["d"], p["width"]
    tokens = rng.normal(size=(replicates, n, d))
    if p.get("positions"):
        place, wave = np.arange(n)[:, None], np.exp(-np.arange(d) / d * np.log(100.0))
        tokens = tokens + np.sin(place * wave + np.pi / 2 * (np.arange(d) % 2))
    states, bias = [split(tokens)], fixed_bias(p, n)
    for _layer in range(p["depth"]):
        states.append(_next(states[-1], rng, p, bias, (replicates, d, width)))
    odds, residuals = (
        np.array([getattr(state, name) for state in states])
        for name in ("log_odds", "log_residual")
    )
    return {
        "log_odds": odds.mean(1),
        "log_residual": residuals.mean(1),
        "collapsed": (residuals < COLLAPSED).mean(1),
    }


def _next(
    tokens: Stream,
    rng: np.random.Generator,
    p: Mapping[str, Any],
    bias: Array | None,
    shape: tuple[int, int, int],
) -> Stream:
    """Tokens after one layer of new weights."""
    replicates, d, width = shape
    query, key = rng.normal(size=(2, *shape)) / d**0.5
    scale = 0.0 if p.get("uniform") else p.get("scale", 1.0)
    score = scale * query @ key.swapaxes(1, 2) / width**0.5
    value = rng.normal(size=(replicates, d, d)) * (p.get("variance", 1.0) / d) ** 0.5
    skip, branch = p.get("skip", 0.0), p.get("branch", 1.0)
    after = split_layer(tokens, score, value, 0.0, skip, 1.0, branch, bias)
    return split_rms_norm(after) if p.get("norm") else after


def one_layer(settings: Mapping[str, Any]) -> HostBatches:
    """What a layer leaves of the residual of drawn tokens, by ρ, to all digits."""
    return HostBatches(
        partial(_one_layer, dict(settings)),
        dims={"after": ("residual", "token", "feature")},
        coords={"residual": list(settings["residual"])},
    )


def _one_layer(p: dict[str, Any], draw: Draw, _: int, __: None) -> Mapping[str, Any]:
    after = []
    for size in p["residual"]:
        own = near_collapse(size, p["n"], p["d"], int(draw.seed), draw.batch)
        tokens = split_layer(split(own.mean + own.centred), own.score, own.value, 0.0, 0.0, 1.0)
        after.append(np.exp(tokens.log_scale) * tokens.centred)
    return {"after": np.array(after)}


def simplex(settings: Mapping[str, Any], value: float | None) -> HostBatches:
    """Size of simplex tokens beside their mean, layer by layer, in plain arithmetic.

    Args:
        settings: ``n``, ``scale`` β, ``size`` a, ``layers``.
        value: w of ``X + AX·w`` under a norm; None for attention alone, whose a is returned.
    """
    return HostBatches(partial(_simplex, dict(settings), value), dims={"ratio": ("layer",)})


def _simplex(
    p: dict[str, Any], value: float | None, _: Draw, __: int, ___: None
) -> Mapping[str, Any]:
    n = p["n"]
    # One feature more than tokens, for the mean.
    tokens = np.hstack([p["size"] * (np.eye(n) - 1 / n), np.ones((n, 1))])
    sizes = [tokens]
    for _layer in range(p["layers"]):
        tokens = tokens if value is None else rms_norm(tokens)
        mixed = softmax(p["scale"] * tokens @ tokens.T) @ tokens
        tokens = mixed if value is None else tokens + value * mixed
        sizes.append(tokens)
    return {"ratio": np.array([t[0, 0] - t[1, 0] for t in sizes]) / [t[0, -1] for t in sizes]}
