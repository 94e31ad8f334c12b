"""What becomes of tokens with depth, and what can be told of heads: one number a problem."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

from .problems import ALONE

SOON, SMALL = 6, -6.0
"""Layers after which log₁₀ ρ is to be below that."""
NEAR = np.log(0.03)
"""log ρ below which tokens are near collapse."""


def effects(results: Results) -> Mapping[str, Effects]:
    """Effects by name; of stacks they are NaN where the block is another."""
    law, tolerance = results.predictions["law"], house.TOLERANCES["slope"]
    names = ("path", "ends", "lost", "open")
    path, ends, lost, opened = (stacked(results, name) for name in names)
    alone, order, claimed = (law[k].values for k in ("block", "order", "claimed"))
    alone, least, (without, gated) = alone == ALONE, house.TOLERANCES["roads"], law["lost"].values.T
    orders, fell = ratio(np.diff(path[..., -3:])), ends[..., 1] - ends[..., 0]
    side = np.sign(orders.mean(1, keepdims=True) - 3)
    free = 0.5 - abs(law["open"].values - claimed)
    parts = {
        "order": (tolerance - side * (orders - 3), tolerance - abs(order - 3), alone),
        "open": (0.5 - abs(opened - claimed[:, None]), free, ...),
        "lost": (lost[..., 0] - least, without - least, ...),
        "gates": (lost[..., 0] - lost[..., 1], without - gated, without >= least),
    }
    near = alone & (ends[..., 0].mean(1) < NEAR)
    return {
        k: of_batches(asked(v, where), predicted=asked(p, where))
        for k, (v, p, where) in parts.items()
    } | {
        "soon": of_batches(asked(SMALL - path[..., SOON] / np.log(10), alone)),
        "depth": of_batches(asked(tolerance - exponents(ends), ~alone)),
        "rate": gap(fell / law["depth"].values[:, None], law["rate"].values, near),
        "recovered": gap(lost[..., 1], gated, gated >= least),
    }


def asked(values: np.ndarray, where: Any) -> np.ndarray:
    """Values of the problems that are asked, NaN of the others."""
    masked = np.full(values.shape, np.nan)
    masked[where] = values[where]
    return masked


def stacked(results: Results, name: str) -> np.ndarray:
    """A simulated variable of all problems, (problem, batch, …)."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def ratio(steps: np.ndarray) -> np.ndarray:
    """Second over first steps, as batches with the mean and spread of the ratio, (N, batch)."""
    first, second = np.moveaxis(steps, -1, 0)
    scale = first.mean(1, keepdims=True)
    quotient = second.mean(1, keepdims=True) / scale
    return np.asarray(quotient + (second - quotient * first) / scale)


def exponents(ends: np.ndarray) -> np.ndarray:
    """p of ρ ~ L^−p between the depths L and 2L."""
    return np.asarray((ends[..., 0] - ends[..., 1]) / np.log(2))


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem."""
    law = results.predictions["law"]
    columns = {k: v.values for k, v in law.items() if v.dims == ("number",)}
    return pd.DataFrame(columns).drop(columns=["weights", "order", "rate", "claimed", "open"])
