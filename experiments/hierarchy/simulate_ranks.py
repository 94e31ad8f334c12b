"""Scores on scales by heads that are narrower than the tokens: what their rank leaves out."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sims.attention import hierarchy
from sims.montecarlo import Draw

from .simulate_searches import EPS, copies


def narrowed(
    settings: Mapping[str, Any], kept: int, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Forms M_l of which the ``kept`` leading singular values are left, in the Frobenius norm.

    ``squared``: mean square of the error of scores. By draw, ``excess``: the error of fewer levels
    of that rank over the truncation's and the ranks' parts together, less 1; ``least``: the gap of
    the best forms' error to the tail of a level's own singular values, in units of rounding of its
    scores; ``gain``: the share by which the best forms err less than leading singular vectors.
    """
    rng, tokens, width = draw.rng(), settings["tokens"], settings["width"]
    weights, sizes = np.array(settings["weights"]), settings["decay"] ** np.arange(width)
    levels = settings["levels"]
    head = weights[:levels] / weights[:levels].sum()
    squared, out = [], []
    for _one in range(settings["draws"] * replicates):
        x = rng.normal(size=(tokens, width))
        z = np.array(copies(x, np.array(settings["taps"]), len(weights)))
        # Both sides' vectors of normal matrices: uniform on the rotations, and independent.
        left, _own, right = np.linalg.svd(rng.normal(size=(len(z), width, width)))
        rest = left[..., kept:] * sizes[kept:] @ right[:, kept:]
        turned = z.swapaxes(1, 2)
        parts, lost = z @ (left * sizes @ right) @ turned, z @ rest @ turned
        squared.append(np.sum(hierarchy.mixed(lost, weights) ** 2))
        fewer = hierarchy.mixed(parts[:levels], head)
        target = hierarchy.mixed(parts, weights)
        error = np.linalg.norm(target - fewer + hierarchy.mixed(lost[:levels], head))
        each = np.linalg.norm(lost, axis=(1, 2))
        bound = np.linalg.norm(target - fewer) + head @ each[:levels]
        # Z_l = QR with orthonormal Q: the singular values of the scores are those of R M_l Rᵀ.
        r = np.asarray(np.linalg.qr(z, mode="r"))
        u, values, v = np.linalg.svd(r @ (left * sizes @ right) @ r.swapaxes(1, 2))
        inverse = np.linalg.inv(r)
        leading = u[..., :kept] * values[:, None, :kept] @ v[:, :kept]
        best = inverse @ leading @ inverse.swapaxes(1, 2)
        found = np.linalg.norm(parts - z @ best @ turned, axis=(1, 2))
        gaps = abs(found - np.linalg.norm(values[:, kept:], axis=1)) / values[:, 0] / EPS
        out.append((error / bound - 1, gaps.max(), (1 - found / each).max()))
    excess, least, gain = np.array(out).T
    return {"squared": np.mean(squared), "excess": excess, "least": least, "gain": gain}


def semidefinite(
    width: int, head_width: int, settings: Mapping[str, Any], draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Shares of draws with M^s ⪰ 0, at one level and at two, and numbers of eigenvalues by sign."""
    count = settings["draws"] * replicates
    query, key = draw.rng().normal(size=(2, count, width, head_width))
    matrix = query @ np.swapaxes(key, -1, -2)
    values = np.linalg.eigvalsh(matrix + np.swapaxes(matrix, -1, -2))
    least = values[:, 0] >= -1e-9 * np.abs(values).max(1)
    scaled = values / np.abs(values).max(1)[:, None]
    positive, negative = ((sign * scaled > 1e-13).sum(1) for sign in (1, -1))
    return {
        "one": least.mean(),
        "two": (least[0::2] & least[1::2]).mean(),
        "positive": np.abs(positive - head_width).max(),
        "negative": np.abs(negative - head_width).max(),
    }
