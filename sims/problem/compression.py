"""Softmax heads with low-rank scores: a problem like any other, for either road."""

import numpy as np
from numpy.typing import ArrayLike

from sims.attention.low_rank import kq_svd
from sims.checks import as_floats, check_covariance
from sims.errors import InputError
from sims.problem.task import Heads


def compressed(heads: Heads, rank: int, key_moment: ArrayLike, query_moment: ArrayLike) -> Heads:
    """The heads with scores of rank r by KQ-SVD: frames U_hB_h of queries and V_hA_h of keys.

    The maps are those of a calibration without end, on the second moments alone; a softmax head
    keeps its temperature.

    Args:
        heads: softmax heads of width d_k ≥ r.
        rank: r.
        key_moment: Σ = E XXᵀ of the keys, (d, d).
        query_moment: E xxᵀ of the queries, (d, d).

    Raises:
        InputError: the heads are not softmax heads, or an argument cannot be used.
    """
    if heads.rule.name != "softmax":
        allowed = "softmax: other kernels see more of a key than its scores"
        raise InputError("heads.kernel", heads.rule.name, allowed)
    roots = []
    for field, moment in (("key_moment", key_moment), ("query_moment", query_moment)):
        matrix = as_floats(field, moment)
        check_covariance(field, matrix)
        values, vectors = np.linalg.eigh(np.asarray(matrix))
        roots.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
    frames, key_frames = np.asarray(heads.frames), np.asarray(heads.of_keys)
    # Rows of these have the second moments of the projected keys and queries.
    maps = kq_svd(roots[0] @ key_frames, roots[1] @ frames, rank)
    return Heads(frames @ maps.query_map, heads.rule, heads.bandwidth, key_frames @ maps.key_map)
