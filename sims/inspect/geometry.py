"""Diversity of a layer's heads from their weights alone.

Key heads are compared by their subspaces, query heads by the bilinear forms of their scores
``M_h = W_Q,h W_K,hᵀ/√d_k`` and of their values ``W_V,h W_O,h``. The forms are never built:
products of d × d_k matrices suffice.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sims.inspect.layer import CUTOFF, Layer
from sims.inspect.patterns import Rule, rotated
from sims.problem.diversity import DEFINITIONS, effective_rank

DISTANCES = (0, 1, 4, 16, 64, 256, 1024)
"""Distances Δ between a query and a key at which rotary score forms are compared."""

Arrays = Mapping[str, Any]
"""Name to a number, or to dimensions and values, as :class:`xarray.Dataset` takes them."""


def overlaps(frames: np.ndarray) -> np.ndarray:
    """Cosines of the principal angles of every pair of subspaces, descending, (H, H, d_k).

    They are the singular values of ``U_hᵀU_g``.

    Args:
        frames: U, (H, d, d_k): orthonormal columns, or zeros beyond the rank.
    """
    heads = len(frames)
    cosines = np.empty((heads, heads, frames.shape[2]))
    for h, frame in enumerate(frames):
        cosines[h, h:] = np.linalg.svd(frame.T @ frames[h:], compute_uv=False)
        cosines[h:, h] = cosines[h, h:]
    return np.minimum(cosines, 1.0)


def projection_kernel(cosines: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """``‖U_hᵀU_g‖_F²/√(r_h r_g)``, (H, H): 1 for equal subspaces, 0 for orthogonal ones.

    It is NaN without a subspace. With equal ranks it is the geometric Gram matrix of
    :mod:`sims.problem.diversity`. Name and normalisation are those of TransformerLens (arXiv
    2601.10266).
    """
    scale = np.sqrt(ranks[:, None] * ranks)
    return np.asarray((cosines**2).sum(-1) / np.where(scale > 0, scale, np.nan))


def frames_of(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases (H, d, d_k) of column spaces, 0 beyond the rank, and ranks (H,)."""
    vectors, values, _ = np.linalg.svd(matrices, full_matrices=False)
    nonzero = values > CUTOFF * values[:, :1]
    return vectors * nonzero[:, None, :], nonzero.sum(-1)


def subspaces(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines of principal angles, projection kernel, ranks of the column spaces of (H, d, d_k).

    The first two are NaN for pairs with a zero matrix.
    """
    frames, ranks = frames_of(matrices)
    cosines = overlaps(frames)
    cosines[ranks == 0] = np.nan
    cosines[:, ranks == 0] = np.nan
    return cosines, projection_kernel(cosines, ranks), ranks


def form_spectrum(
    first: np.ndarray, second: np.ndarray, rotations: np.ndarray | None = None
) -> np.ndarray:
    """Singular values of forms ``A_hB_hᵀ``, (H, d_k), by two QR decompositions.

    Args:
        first: A, (H, d, d_k).
        second: B, (H, d, d_k).
        rotations: R, (n, d_k, d_k), of forms ``A_hRB_hᵀ``, whose values are (n, H, d_k).
    """
    left = np.linalg.qr(first).R
    right = np.linalg.qr(second).R.swapaxes(-1, -2)
    left = left if rotations is None else left @ rotations[:, None]
    return np.asarray(np.linalg.svd(left @ right, compute_uv=False))


def median_rank(ranks: np.ndarray) -> np.ndarray:
    """Median over heads of effective ranks (…, H), ignoring heads of rank 0; NaN without heads."""
    kept = (ranks > 0).reshape(-1, ranks.shape[-1]).all(0)
    return np.asarray(np.median(ranks[..., kept], -1) if kept.any() else ranks.sum(-1) * np.nan)


def form_products(first: np.ndarray, second: np.ndarray, rotations: np.ndarray) -> np.ndarray:
    """``tr(M_hM_gᵀ)`` of forms ``M_h = A_hRB_hᵀ``, (n, H, H), as for :func:`form_spectrum`."""
    heads = len(first)
    products = np.empty((len(rotations), heads, heads))
    for h in range(heads):
        left = first[h].T @ first[h:]
        right = second[h].T @ second[h:]
        for turn, rotation in enumerate(rotations):
            terms = (rotation.T @ left @ rotation) * right
            products[turn, h, h:] = products[turn, h:, h] = terms.sum((-2, -1))
    return products


def correlation(products: np.ndarray) -> np.ndarray:
    """``p_hg/√(p_hh p_gg)``, (…, H, H); NaN for pairs with a head without a form, p_hh = 0."""
    scale = np.sqrt(np.maximum(np.diagonal(products, axis1=-2, axis2=-1), 0.0))
    scale = np.where(scale > 0, scale, np.nan)
    return np.asarray(products / scale[..., None] / scale[..., None, :])


def share_of_average(products: np.ndarray) -> np.ndarray:
    """``Σ_hg p_hg/(H Σ_h p_hh)``, (…): what an average of heads keeps of their mean square.

    It is 1 for equal heads and 1/H for heads without correlation.
    """
    total = np.trace(products, axis1=-2, axis2=-1)
    total = np.where(total > 0, total, np.nan) * products.shape[-1]
    return np.asarray(products.sum((-2, -1)) / total)


def alignment(value: np.ndarray, output: np.ndarray, prefix: str = "") -> Arrays:
    """Correlations of the OV maps ``W_V,h W_O,h``, and the share that their average keeps.

    The outputs of heads that all attend to one token, with mean square 1 in each direction, have
    these correlations. To each head belongs a matrix of values, (H, d, d_v) and (H, d_v, d).
    """
    products = form_products(value, output.swapaxes(-1, -2), np.eye(value.shape[-1])[None])[0]
    return {
        f"{prefix}value_correlation": (("head", "head2"), correlation(products)),
        f"{prefix}value_kept": share_of_average(products),
    }


def mean_of_pairs(matrix: np.ndarray) -> np.ndarray:
    """Mean of off-diagonal entries of matrices (…, H, H), ignoring NaN; NaN without any."""
    pairs = np.isfinite(matrix) & ~np.eye(matrix.shape[-1], dtype=bool)
    count = pairs.sum((-2, -1))
    total = np.where(pairs, matrix, 0.0).sum((-2, -1))
    return np.asarray(total / np.where(count > 0, count, np.nan))


def indices(r: np.ndarray) -> np.ndarray:
    """Every definition of the diversity index of correlations (…, H, H); NaN for a single head."""
    if r.shape[-1] < 2:
        return np.full((*r.shape[:-2], len(DEFINITIONS)), np.nan)
    return np.stack([definition(r) for definition in DEFINITIONS.values()], axis=-1)


def zero_maps(layer: Layer) -> dict[str, list[int]]:
    """Masks of heads with a zero map, by the name of the map; key and value maps by key head."""
    maps = layer.folded._asdict()
    return {name: np.flatnonzero(~m.any((1, 2))).tolist() for name, m in maps.items()}


def geometry(layer: Layer, rule: Rule) -> Arrays:
    """All numbers from the weights of a layer, by name.

    Overlaps are between key subspaces; query heads repeat the overlaps of their key head. Heads
    with a zero map of keys or queries are excluded: their numbers are NaN. Rotary positions change
    score forms to ``W_Q,h R(Δ) W_K,hᵀ/√d_k``, and not the key subspaces. Forms of heads that
    normalise keys have no scale, so that their singular values are NaN.

    Args:
        layer: the heads.
        rule: attention rule; with rotation, forms are at each of :data:`DISTANCES`, otherwise at 0.
    """
    query, key, value, output = layer.folded
    d, d_k = key.shape[1:]
    group = layer.key_head
    queried = query.any((1, 2))
    cosines, kernel, ranks = subspaces(key * (np.bincount(group, queried) > 0)[:, None, None])
    mean = float(ranks[ranks > 0].mean().round()) / d if ranks.any() else 0.0
    same = np.eye(len(key), dtype=bool)
    defined = np.isfinite(np.diag(kernel))
    read = group[queried & defined[group]]
    by_key = np.ix_(defined, defined)
    by_query = np.ix_(read, read)
    score_key = key[group]
    values = form_spectrum(value[group], output.swapaxes(-1, -2))
    rotations = np.eye(d_k)[None]
    if rule.base is not None:
        distances = np.array(DISTANCES)[:, None]
        identities = rotations.repeat(len(distances), axis=0)
        rotations = rotated(identities, rule.base, rule.rotated, distances)
    factor = np.nan if layer.norms else rule.factor(d_k)
    scores = form_spectrum(query, score_key, rotations)
    correlations = correlation(form_products(query, score_key, rotations))
    by_distance: Arrays = {
        "score_correlation_by_distance": (("distance", "head", "head2"), correlations),
        "qk_effective_rank_by_distance": (("distance", "head"), effective_rank(scores)),
    }
    return {
        **(by_distance if len(rotations) > 1 else {}),
        "principal_angle": (("key_head", "key_head2", "angle"), np.arccos(cosines)),
        "projection_kernel": (("key_head", "key_head2"), kernel),
        "key_rank": ("key_head", ranks),
        "overlap_baseline": mean,
        "overlap_excess": mean_of_pairs(kernel) - mean,
        "largest_overlap_excess": np.fmax.reduce(kernel[~same], initial=np.nan) - mean,
        "index_key_heads": ("definition", indices(kernel[by_key])),
        "index_query_heads": ("definition", indices(kernel[by_query])),
        "qk_singular_value": (("head", "rank"), scores[0] * factor),
        "qk_effective_rank": ("head", effective_rank(scores[0])),
        "ov_effective_rank": ("head", effective_rank(values)),
        "score_correlation": (("head", "head2"), correlations[0]),
        **alignment(value[group], output),
        "gain_folded": layer.gain is not None,
        "width": d_k,
        "passes": layer.passes,
    }
