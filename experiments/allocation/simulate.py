"""Whole splits of some regimes by simulation: one head and a pair give every number of heads."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sims.problem import Heads, Task
from sims.problem.design_laws import GaussianDesign
from sims.simulation.engine import sampler_of
from sims.simulation.many import ProblemsSampler

from .grids import LATENT, splits
from .problems import Drawn, curve, sampled

DIMENSION = 2 * LATENT
"""Of the keys: coordinates of the target, noise of the views, and columns that no head sees."""


def splits_sampler(drawn: Drawn, seeds: Sequence[Sequence[int]], precision: str) -> ProblemsSampler:
    """The whole splits of a regime, for a target of each seed.

    The dimension ``problem`` is that of splits and, within each, of targets with queries of their
    own; all splits of a target share its keys.
    """
    options: dict[str, Any] = {"raw_labels": False, "keep_queries": False}
    bandwidth = curve(drawn, drawn["keys"], drawn["budget"]).bandwidth[0]
    pairs = [heads(drawn, width, bandwidth[width - 1]) for width in splits(drawn["budget"])]
    design, tasks = GaussianDesign(np.eye(DIMENSION)), []
    for seed in seeds:
        target, queries = sampled(drawn, seed)
        rest = DIMENSION - target.dimension
        wide = Task(design, target.padded(rest), drawn["noise_sd"])
        tasks.append((wide, np.pad(queries, ((0, 0), (0, rest)))))
    members = [
        sampler_of(wide, pair, drawn["keys"], queries, precision=precision, **options)[0]
        for pair in pairs
        for wide, queries in tasks
    ]
    return ProblemsSampler(members, [(k,) for k in range(len(tasks))] * len(pairs))


def heads(drawn: Drawn, width: int, bandwidth: float) -> Heads:
    """Two heads of that width, or one head twice where it takes the whole budget."""
    frames, place = np.zeros((2, DIMENSION, LATENT)), np.arange(width)
    for head, frame in enumerate(frames):
        coordinates = place + head * width * (width < drawn["budget"])
        frame[coordinates if drawn["decay"] == "even" else place, place] = 1
        frame[LATENT + coordinates, place] += drawn["view_noise"]
    return Heads(frames, drawn["kernel"], bandwidth)
