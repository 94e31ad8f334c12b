"""Merged and unmerged heads on problems that every batch draws anew, by plain NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.signal import lfilter

from sims.montecarlo import Draw
from sims.study.specification import ProblemSpec

from .drawn import Case, cases

Settings = Mapping[str, Any]
BURN_IN = 256
"""Steps after which a sequence of root 0.9 has forgotten its start, to 10⁻¹¹."""


def sequence(normal: np.ndarray, roots: tuple[float, float]) -> np.ndarray:
    """A stationary Gaussian sequence of variance I from normals (n + BURN_IN, d), see
    :class:`~sims.problem.SequenceDesign`."""
    first, second = roots
    product = first * second
    near = (first + second) / (1 + product)
    spread = np.sqrt((1 - near**2) * (1 - product**2))
    whole = lfilter([spread], [1.0, -(first + second), product], normal, axis=0)
    return np.asarray(whole[BURN_IN:])


def drawn_problems(
    draw: Draw, replicates: int, shared: tuple[Settings, ProblemSpec]
) -> dict[str, np.ndarray]:
    """MSE and variance (case,) of two heads' average, means over a batch's problems.

    Target, queries and frames are a problem's own; its replicates are sequences of keys, the same
    for every case. Label noise is integrated out: with weights w of slots an error is
    ``(Σ w_j m̄_j − m(x))² + (σ²/s) Σ w_j²``.
    """
    own, spec = shared
    rng, tried = draw.rng(), cases(own, spec.heads.bandwidth)
    mse, variance = np.zeros((2, len(tried)))
    for _ in range(own["problems"]):
        frames, frequency, phase = problem(rng, spec)
        queries = spec.queries.scale * rng.standard_normal((spec.queries.count, spec.dimension))

        def target(x: np.ndarray, w: np.ndarray = frequency, at: np.ndarray = phase) -> np.ndarray:
            return np.sqrt(2 / len(at)) * np.cos(x @ w.T + at).sum(-1)

        truth = target(queries)
        centre, noise = np.zeros((2, len(tried), replicates, len(queries)))
        for r in range(replicates):
            normal = rng.standard_normal((spec.n + BURN_IN, spec.dimension))
            for design in own["roots"]:
                keys = sequence(normal, own["roots"][design])
                asks, tells, values = queries @ frames, keys @ frames, target(keys)[:, None]
                for stride in {case.stride for case in tried if case.design == design}:
                    slots, means = slot_means(tells, stride), slot_means(values, stride)[:, 0]
                    for place, case in enumerate(tried):
                        if (case.design, case.stride) == (design, stride):
                            w = weights(case, asks, slots).mean(0)
                            centre[place, r] = w @ means
                            noise[place, r] = spec.noise_sd**2 / stride * (w**2).sum(-1)
        mse += ((centre - truth) ** 2 + noise).mean((1, 2))
        variance += (centre.var(1, ddof=1) + noise.mean(1)).mean(-1)
    return {"drawn_mse": mse / own["problems"], "drawn_variance": variance / own["problems"]}


def problem(
    rng: np.random.Generator, spec: ProblemSpec
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames (2, d, d/2) at the file's angle in random planes; frequencies and phases of waves."""
    d, target = spec.dimension, spec.target
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    chosen: Any = spec.heads.frames
    angle = np.radians(chosen.angle)
    first, aside = turn[:, : d // 2], turn[:, d // 2 :]
    frames = np.stack([first, np.cos(angle) * first + np.sin(angle) * aside])
    frequency = rng.standard_normal((target.features, d)) / target.lengthscale
    return frames, frequency, rng.uniform(0, 2 * np.pi, target.features)


def slot_means(x: np.ndarray, stride: int) -> np.ndarray:
    """Means over chunks of ``stride`` rows of x (…, n, d): (…, n/stride, d)."""
    # One place of the chunks after another: a mean over so short an axis takes twice as long.
    means = np.zeros_like(x[..., ::stride, :])
    for place in range(stride):
        means += x[..., place::stride, :] / stride
    return means


def weights(case: Case, queries: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Of every slot (head, query, slot), from projected queries and slots (head, …, d_k)."""
    scores = queries @ slots.swapaxes(1, 2)
    if case.kernel == "gaussian":
        scores -= 0.5 * (slots**2).sum(-1)[:, None]
    scores = scores / case.bandwidth**2
    scores -= scores.max(-1, keepdims=True)
    grown = np.exp(scores, out=scores)
    grown /= grown.sum(-1, keepdims=True)
    return grown
