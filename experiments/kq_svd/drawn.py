"""Whole and compressed heads on problems that every batch draws anew, by plain NumPy."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from sims.montecarlo import Draw

from .problems import compressed_heads


@cache
def blas() -> ThreadpoolController:
    """The libraries of linear algebra at work."""
    return ThreadpoolController()


def drawn_heads(
    draw: Draw, replicates: int, shared: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """MSE by rank of a head, ``head``, and of the heads' average, ``pool``, of one drawn problem.

    Frames, target and queries are a batch's own, and the replicates are its keys. Label noise is
    integrated out: with weights w an error is ``(Σ w_i m(X_i) − m(x))² + σ² Σ w_i²``.
    """
    own, regime = shared
    rng = draw.rng()
    problem = compressed_heads(own, regime, int(rng.integers(2**31)))
    task, _, n, queries = problem[own["d"]]
    target: Any = task.target
    design: Any = task.design
    truth, spread = np.asarray(target(queries)), np.asarray(design.factor)
    errors = np.zeros((2, len(own["ranks"])))
    with blas().limit(limits=1):
        for _ in range(replicates):
            keys = rng.standard_normal((n, own["d"])) @ spread
            values = np.asarray(target(keys))
            for place, rank in enumerate(own["ranks"]):
                heads = problem[rank].heads
                asks, keeps = (np.asarray(f) for f in (heads.frames, heads.of_keys))
                scores = (queries @ asks) @ (keys @ keeps).swapaxes(-1, -2)
                scores /= float(np.ravel(heads.bandwidth)[0]) ** 2
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                weights /= weights.sum(-1, keepdims=True)
                for row, w in enumerate((weights, weights.mean(0))):
                    noise = float(task.noise_sd) ** 2 * (w**2).sum(-1)
                    errors[row, place] += ((w @ values - truth) ** 2 + noise).mean()
    return dict(zip(("head", "pool"), errors / replicates, strict=True))
