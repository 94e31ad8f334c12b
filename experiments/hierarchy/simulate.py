"""Scores on scales by simulation: errors of levels and ranks, and of block means."""

import numpy as np
from scipy.stats import ortho_group

from sims.attention import hierarchy
from sims.montecarlo import Draw, HostBatches

from .problems import Problem

BLOCKS = 64
"""Blocks for every replicate of tokens."""


def batch(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Mean squared errors of scores, and remainders of blocks."""
    rng = draw.rng()
    return {
        "error": np.mean([errors(rng, problem) for _ in range(replicates)], axis=0),
        "remainder": remainders(rng, BLOCKS * replicates, problem),
    }


def sampler(problem: Problem) -> HostBatches:
    """Errors of scores and of blocks."""
    dims = {"error": ("part", "kept"), "remainder": ("order",)}
    return HostBatches(batch, constants=problem, dims=dims)


def errors(rng: np.random.Generator, problem: Problem) -> np.ndarray:
    """Squared errors of the scores of one draw of tokens and forms, (part, kept).

    Parts are the truncation of levels, the rank of the heads' forms, and both together.
    """
    width = problem["width"]
    levels = problem.levels
    tokens = rng.normal(size=(problem["tokens"], width))
    coarse = hierarchy.levels(tokens, problem.taps, levels)
    left, right = ortho_group.rvs(width, 2 * levels, rng).reshape(2, levels, 1, width, width)
    kept = np.arange(width) < problem["head_width"]
    sizes = problem.singular_values * np.stack([kept, ~kept])[:, None]
    model = problem.models
    lost = problem.spectrum - model
    # Weights of what a head keeps, and of the rest, in the error by each part.
    share = np.array([[lost, 0 * lost, lost], [lost, model, lost + model]])
    product = products(coarse, left * sizes @ right)
    return np.einsum("xpkl,lxmy,ypkm->pk", share, product, share, optimize=True)


def products(coarse: list[np.ndarray], forms: np.ndarray) -> np.ndarray:
    """Frobenius products (level, part, level, part) of the scores ``Z_l M Z_lᵀ``.

    Row i of Z_l is token ⌊i/2^l⌋ of level l, so that ``Z_lᵀZ_m`` is 2^l times the product of sums
    over blocks of level l's tokens with level m's.

    Args:
        coarse: tokens of the levels.
        forms: (level, part, d, d).
    """
    levels, _, width, _ = forms.shape
    gram = np.empty((levels, levels, width, width))
    for low in range(levels):
        sums = 2.0**low * coarse[low]
        for high in range(low, levels):
            gram[low, high] = sums.T @ coarse[high]
            gram[high, low] = gram[low, high].T
            sums = sums[::2] + sums[1::2]
    turned = gram[:, :, None] @ forms @ gram.swapaxes(-1, -2)[:, :, None]
    return np.einsum("lxab,lmyab->lxmy", forms, turned)


def remainders(rng: np.random.Generator, count: int, problem: Problem) -> np.ndarray:
    """Mean size of what is left of a block's log mean of e^{q·k} after its cumulants, by order.

    The first is that of the block's mean key; the second has the Gaussian term, too.
    """
    scores = getattr(rng, problem["keys"])(size=(count, problem["block"]))
    if problem["keys"] == "uniform":
        scores *= 12**0.5  # to standard deviation 1, as the others
    off = problem["spread"] * (scores - scores.mean(1, keepdims=True))
    second, third, fourth = ((off**k).mean(1) for k in (2, 3, 4))
    rest = np.log(np.exp(off).mean(1))
    terms = [0 * rest, second / 2, third / 6, (fourth - 3 * second**2) / 24]
    return np.abs(rest - np.cumsum(terms, axis=0)).mean(1)
