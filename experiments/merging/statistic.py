"""What merging does to the error of heads: one number a problem."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from sims.estimates import jackknife
from sims.judgement import house
from sims.judgement.answers import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

from .problems import SAME

SHOWN = ("stride", "alike", "kernel", "gates", "keys", "width", "lengthscale", "noise_sd")
CONDITIONS = ("correlated", "in_range")


def rises(results: Results) -> dict[str, np.ndarray]:
    """By what share merging raises the error, as batches (N, B).

    ``best``: each at its best bandwidth, which the other half of the batches chooses; ``same``:
    both at the drawn bandwidth.
    """
    mse = stacked(results, "mse")
    halves = np.array_split(mse, 2)
    best = [
        np.take_along_axis(judging, choosing.mean(0).argmin(-1)[None, ..., None], -1)[..., 0]
        for judging, choosing in zip(halves, halves[::-1], strict=True)
    ]
    pairs = {"best": np.concatenate(best), "same": mse[..., SAME]}
    return {
        name: jackknife(
            {"plain": pair[..., 0], "merged": pair[..., 1]}, lambda t: t["merged"] / t["plain"]
        ).T
        - 1
        for name, pair in pairs.items()
    }


def stacked(results: Results, name: str) -> np.ndarray:
    """Batches of a term, (B, N, stride, bandwidth): unmerged, merged."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())], 1)


def effects(results: Results) -> Mapping[str, Effects]:
    """Rises of the error below the tolerance, above zero, and gaps to theory of merged heads."""
    law, found = results.predictions["law"], rises(results)
    known = law["in_range"].values.astype(bool)
    error, variance = (
        gap(stacked(results, name)[:, :, 1, SAME].T, law[name].values, known)
        for name in ("mse", "variance")
    )
    return {
        "free": of_batches(house.TOLERANCES["roads"] - found["best"]),
        "free at the same temperature": of_batches(house.TOLERANCES["roads"] - found["same"]),
        "dearer": of_batches(found["best"]),
        "gap of the error": error,
        "gap of the variance": replace(variance, kind="estimate"),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What was drawn, a row a problem."""
    law = results.predictions["law"]
    return pd.DataFrame({name: law[name].values for name in (*SHOWN, *CONDITIONS)})
