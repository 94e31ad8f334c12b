"""Attention weights of a layer on Gaussian tokens ``x ~ N(μ, Σ)``.

Keys and queries are linear in the token, so that angles and score forms depend on Σ. With many
keys, the label noise of two softmax heads at a query x has the correlation::

    ρ_hg(x) = exp(−½ ‖Σ^{1/2}(M_h − M_g)ᵀx‖²)

Biases of queries count; biases of keys cancel in softmax. Rotary positions use Δ = 0.
"""

import numpy as np
from numpy.linalg import LinAlgError, cholesky, slogdet, solve

from sims.base.errors import InputError
from sims.inspect.geometry import (
    Arrays,
    alignment,
    correlation,
    form_products,
    form_spectrum,
    mean_of_pairs,
    subspaces,
)
from sims.inspect.layer import Layer
from sims.inspect.patterns import Rule
from sims.inspect.profiles import k_profile, kq_profile

ROUNDING = 1e-12
"""Share of tr Σ that is added to the diagonal, so that a singular Σ has a root."""


def covariance_root(name: str, covariance: np.ndarray, d: int) -> np.ndarray:
    """Factor R of ``Σ = RᵀR``, (d, d).

    Raises:
        InputError: Σ is not a covariance matrix (d, d) of floating-point numbers.
    """
    allowed = f"a positive semidefinite matrix ({d}, {d}) of floating-point numbers"
    if covariance.dtype.kind != "f" or covariance.shape != (d, d):
        raise InputError(name, f"{covariance.dtype} of shape {covariance.shape}", allowed)
    matrix = covariance.astype(float)
    ridge = max(ROUNDING, float(np.finfo(covariance.dtype).eps)) * np.trace(matrix)
    if not (ridge > 0 and np.abs(matrix - matrix.T).max() <= 1e-6 * np.abs(matrix).max()):
        raise InputError(name, "a matrix that is not symmetric, finite and positive", allowed)
    matrix[np.diag_indices(d)] += ridge
    try:
        return np.asarray(cholesky(matrix).T)
    except LinAlgError:
        raise InputError(name, "a matrix with a negative eigenvalue", allowed) from None


def on_gaussian_tokens(layer: Layer, mean: np.ndarray, root: np.ndarray, rule: Rule) -> Arrays:
    """Angles, score forms, noise correlations and cache errors on Gaussian tokens, by name.

    Heads that normalise keys and queries have angles only, because their scores are not bilinear.

    Args:
        layer: the heads.
        mean: μ of the tokens, (d).
        root: R of their covariance RᵀR, (d, d).
        rule: attention rule, which gives the factor of scores.
    """
    group = layer.key_head
    width = layer.matrices.key.shape[-1]
    keys = root @ layer.normed.key
    cosines, kernel, _ = subspaces(keys)
    random = root @ layer.unfold(np.random.default_rng(0).normal(size=keys.shape))
    baseline = mean_of_pairs(subspaces(random)[1])
    angles: Arrays = {
        "input_principal_angle": (("key_head", "key_head2", "angle"), np.arccos(cosines)),
        "input_projection_kernel": (("key_head", "key_head2"), kernel),
        "input_overlap_baseline": baseline,
        "input_overlap_excess": mean_of_pairs(kernel) - baseline,
        **alignment(root @ layer.matrices.value[group], layer.matrices.output, "input_"),
    }
    if layer.norms:
        return angles
    scale = rule.factor(width)
    queries = root @ layer.matrices.query
    still = np.eye(width)[None]
    spectrum = form_spectrum(queries, keys[group]) * scale
    centre = mean @ layer.matrices.query + layer.biases[0]
    expected = noise_correlation(queries, keys, centre, group, scale)
    squares = queries.mT @ queries + centre[:, :, None] * centre[:, None]
    moments = {
        "queries": squares.reshape(len(keys), -1, width, width).sum(1),
        "keys": keys.mT @ keys,
    }
    pairs = ("head", "head2")
    ranks = ("key_head", "rank_kept")
    return {
        **angles,
        "input_qk_singular_value": (("head", "rank"), spectrum),
        "input_score_correlation": (
            pairs,
            correlation(form_products(queries, keys[group], still))[0],
        ),
        "predicted_noise_correlation": (pairs, expected),
        "kq_svd_error": (ranks, kq_profile(moments)),
        "k_svd_error": (ranks, k_profile(moments)),
    }


def noise_correlation(
    queries: np.ndarray, keys: np.ndarray, centre: np.ndarray, group: np.ndarray, scale: float
) -> np.ndarray:
    """``E ρ_hg`` over Gaussian queries, (H, H).

    With stacked queries ``(q_h, −q_g) ~ N(m, S)`` and keys of covariance C, and ``A = s²C``,
    it is ``|I + AS|^{−1/2} exp(−½ mᵀ(I + AS)⁻¹Am)``.

    Args:
        queries: RW_Q, (H, d, d_k), of the tokens' covariance RᵀR.
        keys: RW_K, (H_kv, d, d_k).
        centre: mean of the queries, (H, d_k).
        group: key head of each query head, (H,).
        scale: s, factor of scores, usually 1/√d_k.
    """
    heads, _, width = queries.shape
    expected = np.ones((heads, heads))
    query_self = queries.mT @ queries
    key_self = keys.mT @ keys
    for h in range(heads - 1):
        query_pairs = queries[h].T @ queries
        key_pairs = keys[group[h]].T @ keys
        for g in range(h + 1, heads):
            i = group[h]
            j = group[g]
            s = [[query_self[h], -query_pairs[g]], [-query_pairs[g].T, query_self[g]]]
            c = [[key_self[i], key_pairs[j]], [key_pairs[j].T, key_self[j]]]
            m = np.concatenate([centre[h], -centre[g]])
            a = np.block(c) * scale**2
            product = a @ np.block(s)
            inside = np.eye(2 * width) + product
            exponent = slogdet(inside)[1] + m @ solve(inside, a @ m)
            expected[h, g] = expected[g, h] = np.exp(-exponent / 2)
    return expected
