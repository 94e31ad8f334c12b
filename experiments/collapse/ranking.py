"""Ranks of sets of tokens after norms, layers and MLPs, and the search for a changed rank."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sims.attention.attention import (
    HeadMatrices,
    attend,
    layer_norm,
    rms_norm,
    softmax,
    token_mlp,
)
from sims.montecarlo import Draw, HostBatches

from .cases import token_sets

Array = np.ndarray
KEPT, GAP = 1e-9, 1e3
"""A singular value below this share of the tokens' size is none; the least that is kept has to be
so many times the largest that is not, or the rank is open (NaN)."""


def rank(matrix: Array, size: float) -> float:
    """Numerical rank of a matrix that was computed from numbers of that size; NaN if open."""
    values = np.linalg.svd(matrix, compute_uv=False)
    kept = values[values > KEPT * size]
    least, rest = kept[-1] if len(kept) else size, values[len(kept) :]
    return float(len(kept)) if not rest.size or least >= GAP * rest[0] else np.nan


def affine_rank(tokens: Array) -> float:
    """Rank of tokens less their mean."""
    return rank(tokens - tokens.mean(0), float(np.linalg.norm(tokens)))


def normed_ranks(regime: str) -> HostBatches:
    """Affine ranks of a regime's sets before and after LayerNorm and RMSNorm; matrix ranks, too."""
    outputs = ("before", "layer", "rms", "matrix", "matrix_layer")
    return HostBatches(partial(_normed, regime), dims={name: ("case",) for name in outputs})


def _normed(regime: str, draw: Draw, _: int, __: None) -> Mapping[str, Any]:
    rows = []
    for tokens in token_sets(regime, int(draw.seed), draw.batch):
        after = layer_norm(tokens)
        rows.append(
            (
                affine_rank(tokens),
                affine_rank(after),
                affine_rank(rms_norm(tokens)),
                rank(tokens, float(np.linalg.norm(tokens))),
                rank(after, float(np.linalg.norm(after))),
            )
        )
    names = ("before", "layer", "rms", "matrix", "matrix_layer")
    return dict(zip(names, np.transpose(rows), strict=True))


def search(space: Mapping[str, Any]) -> HostBatches:
    """Whole-numbered tokens of every size of a space: was a rank lost, was one gained, by batch."""
    dims = dict.fromkeys(("lost", "gained"), ("space",))
    return HostBatches(partial(_search, dict(space)), dims=dims)


def _search(space: dict[str, Any], draw: Draw, _: int, __: None) -> Mapping[str, Any]:
    rng, found = draw.rng(), []
    for n, d in space["sizes"]:
        reach = space["largest"]
        tokens = rng.integers(-reach, reach + 1, size=(space["budget"], n, d)).astype(float)
        tokens = tokens[(tokens.std(2) > 0).all(1)]
        before, after = (_many_ranks(each) for each in (tokens, layer_norm(tokens)))
        found.append((np.any(after < before), np.any(after > before)))
    lost, gained = np.transpose(np.array(found, float))
    return {"lost": lost, "gained": gained}


def _many_ranks(tokens: Array) -> Array:
    """Affine ranks of many sets of one size, NaN where open."""
    values = np.linalg.svd(tokens - tokens.mean(1, keepdims=True), compute_uv=False)
    size = np.linalg.norm(tokens, axis=(1, 2))[:, None]
    kept = values > KEPT * size
    least = np.where(kept, values, np.inf).min(1, keepdims=True)
    open_ = (~kept & (np.where(np.isinf(least), size, least) < GAP * values)).any(1)
    return np.where(open_, np.nan, kept.sum(1))


def kept_ranks(settings: Mapping[str, Any]) -> HostBatches:
    """Affine rank lost in one layer, with and without the residual, by the rank of W."""
    return HostBatches(partial(_kept, dict(settings)), dims={"loss": ("stream", "value")})


STREAMS, VALUES = ("residual", "attention alone"), ("full", "narrow")


def _kept(settings: dict[str, Any], draw: Draw, replicates: int, _: None) -> Mapping[str, Any]:
    """The worst of a batch: NaN if a rank is open, else the largest loss."""
    rng, n, d, width = draw.rng(), settings["n"], settings["d"], settings["width"]
    lost = np.zeros((len(STREAMS), len(VALUES)))
    for _replicate in range(replicates):
        tokens, score = rng.normal(size=(n, d)), rng.normal(size=(d, d)) / d
        mixed = softmax(tokens @ score @ tokens.T) @ tokens
        narrow = rng.normal(size=(d, width)) @ rng.normal(size=(width, d)) / d
        for column, value in enumerate((rng.normal(size=(d, d)) / d**0.5, narrow)):
            for row, skip in enumerate((1.0, 0.0)):
                after = skip * tokens + mixed @ value
                loss = affine_rank(tokens) - affine_rank(after)
                lost[row, column] = np.maximum(lost[row, column], loss)
    return {"loss": lost}


def tails(n: int, d: int, skip: float, settings: Mapping[str, Any]) -> HostBatches:
    """Shares of draws whose least singular value of centred X + AXW is below t.

    Of AXW alone it is measured by that of centred AX, whose own small values are not W's doing.
    """
    return HostBatches(
        partial(_tails, n, d, skip, tuple(settings["below"])),
        dims={"share": ("below",)},
        coords={"below": list(settings["below"])},
    )


def _tails(
    n: int, d: int, skip: float, below: tuple[float, ...], draw: Draw, replicates: int, _: None
) -> Mapping[str, Any]:
    rng = draw.rng()
    tokens = rng.normal(size=(replicates, n, d))
    mixed = softmax(tokens @ tokens.swapaxes(1, 2) / d**0.5) @ tokens
    after = skip * tokens + mixed @ rng.normal(size=(replicates, d, d))
    values = np.linalg.svd(after - after.mean(1, keepdims=True), compute_uv=False)
    least = values[:, min(n - 1, d) - 1]
    if not skip:
        own = np.linalg.svd(mixed - mixed.mean(1, keepdims=True), compute_uv=False)
        least = least / own[:, min(n - 1, d) - 1]
    return {"share": np.mean(least[:, None] < np.array(below), axis=0)}


def spans(settings: Mapping[str, Any]) -> HostBatches:
    """Ranks after a layer and after an MLP by size, and energy outside the tokens' row space."""
    dims = {"layer_rank": ("sizes", "stream"), "mlp": ("inner",), "equal": ("inner",)}
    return HostBatches(partial(_spans, dict(settings)), dims=dims)


def _spans(settings: dict[str, Any], draw: Draw, replicates: int, _: None) -> Mapping[str, Any]:
    rng = draw.rng()
    layer = [[_layer_rank(rng, size, skip) for skip in (1.0, 0.0)] for size in settings["sizes"]]
    n, d, few = settings["n"], settings["d"], settings["rank"]
    mlp, equal = [], []
    for inner in settings["inner"]:
        tokens = rng.normal(size=(n, few)) @ rng.normal(size=(few, d))
        # Of the usual scale: at unit variance a unit's tanh may be 1 to rounding at all tokens, and
        # a numerical rank is lost that the formula has.
        first = rng.normal(size=(d, inner)) / d**0.5
        weights = first, rng.normal(size=inner), rng.normal(size=(inner, d))
        after = token_mlp(tokens, *weights)
        mlp.append(rank(after, float(np.linalg.norm(after))))
        twins = token_mlp(np.repeat(tokens[:1], n, axis=0), *weights)
        equal.append(affine_rank(twins))
    outside = {"generic": [], "scalar": []}  # type: dict[str, list[float]]
    for _replicate in range(replicates):
        tokens = rng.normal(size=(n, few)) @ rng.normal(size=(few, d))
        mixed = softmax(tokens @ tokens.T / d) @ tokens
        basis = np.linalg.svd(tokens, full_matrices=False)[2][:few]
        for name, value in {"generic": rng.normal(size=(d, d)), "scalar": np.eye(d)}.items():
            after = mixed @ value
            left = after - after @ basis.T @ basis
            outside[name].append(float(np.sum(left**2) / np.sum(after**2)))
    return {
        "layer_rank": np.array(layer),
        "mlp": np.array(mlp),
        "equal": np.array(equal),
        **{name: np.mean(shares) for name, shares in outside.items()},
    }


def _layer_rank(rng: np.random.Generator, size: Sequence[int], skip: float) -> float:
    """Rank of the output of generic heads, by n, d, rank of the tokens, H and d_k."""
    n, d, few, heads, width = size
    tokens = rng.normal(size=(n, few)) @ rng.normal(size=(few, d))
    shapes = [(heads, d, width)] * 3 + [(heads, width, d)]
    matrices = HeadMatrices(*(rng.normal(size=shape) / d**0.5 for shape in shapes))
    after = skip * tokens + attend(tokens, matrices)
    return rank(after, float(np.linalg.norm(after)))
