"""Four symmetries of a layer, what each leaves fixed, and what is left of collapse without it.

Depth: tokens may be relabelled. Width: keys may be permuted with their values. Head channels: a
head's values may be mixed if its rows of W_O are unmixed. Entropy: queries may be mixed if keys are
unmixed, so that scores may grow without limit.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sims.attention.attention import (
    HeadMatrices,
    attend,
    attention_scores,
    causal_mask,
    head_outputs,
    rms_norm,
    softmax,
)
from sims.montecarlo import Draw, HostBatches

Array = np.ndarray
GAUGES = ("depth", "width", "head channels", "entropy")


def gauges(settings: Mapping[str, Any]) -> HostBatches:
    """By how much each transformation moves a layer's output, as a share of it."""
    return HostBatches(partial(_gauges, dict(settings)), dims={"gap": ("gauge",)})


def _drawn(rng: np.random.Generator, p: Mapping[str, Any]) -> tuple[Array, HeadMatrices]:
    heads, d, width = p["heads"], p["d"], p["width"]
    shapes = [(heads, d, width)] * 3 + [(heads, width, d)]
    matrices = HeadMatrices(*(rng.normal(size=shape) / d**0.5 for shape in shapes))
    return rng.normal(size=(p["n"], d)), matrices


def _gauges(p: dict[str, Any], draw: Draw, _: int, __: None) -> Mapping[str, Any]:
    rng = draw.rng()
    tokens, own = _drawn(rng, p)
    out, order = attend(tokens, own), rng.permutation(p["n"])
    mix = np.eye(p["width"]) + 0.3 * rng.normal(size=(p["heads"], p["width"], p["width"]))
    back = np.linalg.inv(mix)
    weights = softmax(attention_scores(tokens, own.query, own.key))
    permuted = head_outputs(weights[..., order], tokens[order], own.value) @ own.output
    moved = (
        attend(tokens[order], own) - out[order],
        permuted.sum(0) - out,
        attend(tokens, own._replace(value=own.value @ mix, output=back @ own.output)) - out,
        attend(tokens, own._replace(query=own.query @ mix, key=own.key @ back.swapaxes(1, 2)))
        - out,
    )
    return {"gap": np.array([np.linalg.norm(m) for m in moved]) / np.linalg.norm(out)}


def spectra(settings: Mapping[str, Any]) -> HostBatches:
    """log σ₂/σ₁ of attention of iid N(0, s²) scores by the number of tokens, with a mask or not."""
    return HostBatches(
        partial(_spectra, dict(settings)),
        dims={"log_ratio": ("mask", "tokens")},
        coords={"mask": ["none", "causal"], "tokens": list(settings["tokens"])},
    )


def _spectra(p: dict[str, Any], draw: Draw, replicates: int, _: None) -> Mapping[str, Any]:
    rng = draw.rng()
    logs = np.empty((2, len(p["tokens"])))
    for column, n in enumerate(p["tokens"]):
        scores = p["score_sd"] * rng.normal(size=(replicates, n, n))
        for row, mask in enumerate((None, causal_mask(n))):
            values = np.linalg.svd(softmax(scores, mask=mask), compute_uv=False)
            logs[row, column] = np.log(values[:, 1] / values[:, 0]).mean()
    return {"log_ratio": logs}


def channels(settings: Mapping[str, Any]) -> HostBatches:
    """Directions in which free heads may move while the output stays, without gates and with."""
    return HostBatches(partial(_channels, dict(settings)), dims={"open": ("gates",)})


def _channels(p: dict[str, Any], draw: Draw, _: int, __: None) -> Mapping[str, Any]:
    rng = draw.rng()
    n, heads, width = p["n"], p["heads"], p["width"]
    output = rng.normal(size=(width, width))
    found = []
    for gates in (np.ones((n, heads)), rng.uniform(0.1, 0.9, size=(n, heads))):
        # A token's output is its gated heads, side by side, through one matrix repeated.
        maps = [np.kron(gate[None, :], output.T) for gate in gates]
        found.append(sum(heads * width - np.linalg.matrix_rank(each) for each in maps))
    return {"open": np.array(found, float)}


def entropies(settings: Mapping[str, Any]) -> HostBatches:
    """Mean log n less the entropy of a row, at growing scores: plain, and of normed queries."""
    return HostBatches(
        partial(_entropies, dict(settings)),
        dims={"deficit": ("scores", "scale")},
        coords={"scores": ["plain", "normed"], "scale": list(settings["scale"])},
    )


def _entropies(p: dict[str, Any], draw: Draw, replicates: int, _: None) -> Mapping[str, Any]:
    rng, deficit = draw.rng(), np.zeros((2, len(p["scale"])))
    for _replicate in range(replicates):
        tokens, own = _drawn(rng, p)
        for column, scale in enumerate(p["scale"]):
            scores = attention_scores(tokens, scale * own.query, own.key)
            queries, keys = (rms_norm(tokens @ m) for m in (scale * own.query, own.key))
            normed = queries @ keys.swapaxes(1, 2) / p["width"] ** 0.5
            for row, each in enumerate((scores, normed)):
                weights = softmax(each)
                entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(-1).mean()
                deficit[row, column] += (np.log(p["n"]) - entropy) / replicates
    return {"deficit": deficit}
