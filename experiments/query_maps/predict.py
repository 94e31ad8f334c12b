"""The law of query and key maps, at the maps of every problem of a population."""

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment, Point
from sims.study.population import PROBLEM, members
from sims.theory import softmax_overlap_of_maps


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """``pair_overlap`` and ``own_overlap`` (problem): of two heads, and of a head with itself.

    Noise covariance and variance are these times σ²/n, averaged over queries.
    """
    seed = experiment.simulation.seed
    return {point.name: _overlaps(point, seed) for point in experiment.points}


def _overlaps(point: Point, seed: int) -> xr.Dataset:
    heads = [problem.heads for problem in members(point, seed)]
    frames, of_keys = (
        np.stack([np.asarray(part) for part in parts])
        for parts in zip(*((own.frames, own.of_keys) for own in heads), strict=True)
    )
    spec = point.spec
    overlap = np.asarray(
        softmax_overlap_of_maps(frames, of_keys, spec.heads.bandwidth, spec.queries.scale)
    )
    own = np.diagonal(overlap, axis1=1, axis2=2).mean(1)
    return xr.Dataset({"pair_overlap": (PROBLEM, overlap[:, 0, 1]), "own_overlap": (PROBLEM, own)})
