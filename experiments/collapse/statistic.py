"""What becomes of tokens with depth, and what can be told of heads: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.judgement import house
from sims.judgement.answers import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

from .problems import ALONE

SOON, SMALL = 6, -6.0
"""Layers after which log₁₀ ρ is to be below that."""
NEAR = np.log(0.03)
"""log ρ below which tokens are near collapse."""


def effects(results: Results) -> Mapping[str, Effects]:
    """Effects by name; of stacks they are NaN where the block is another."""
    law, path, ends, lost = (
        results.predictions["law"],
        *(stacked(results, name) for name in ("path", "ends", "lost")),
    )
    alone = law["block"].values == ALONE
    order, tolerance = law["order"].values, house.TOLERANCES["slope"]
    orders, powers = ratio(np.diff(path[..., -3:])), exponents(ends)
    side = np.sign(orders.mean(1, keepdims=True) - 3)
    fell = (ends[..., 1] - ends[..., 0]) / law["depth"].values[:, None]
    claimed, opened = law["claimed"].values, stacked(results, "open")
    found = {
        "order": (tolerance - side * (orders - 3), tolerance - abs(order - 3), alone),
        "soon": (SMALL - path[..., SOON] / np.log(10), None, alone),
        "depth": (tolerance - powers, None, ~alone),
        "open": (
            0.5 - abs(opened - claimed[:, None]),
            0.5 - abs(law["open"].values - claimed),
            None,
        ),
    }
    least, (without, gated) = house.TOLERANCES["roads"], law["lost"].values.T
    found |= {
        "lost": (lost[..., 0] - least, without - least, None),
        "gates": (lost[..., 0] - lost[..., 1], without - gated, without >= least),
    }
    return {
        k: of_batches(asked(v, of), predicted=asked(p, of)) for k, (v, p, of) in found.items()
    } | {
        "rate": gap(fell, law["rate"].values, alone & (ends[..., 0].mean(1) < NEAR)),
        "recovered": gap(lost[..., 1], gated, gated >= least),
    }


def asked(values: np.ndarray | None, where: np.ndarray | None) -> np.ndarray | None:
    """Values of the problems that are asked, NaN of the others."""
    if values is None or where is None:
        return values
    return np.where(where.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)


def stacked(results: Results, name: str) -> np.ndarray:
    """A simulated variable of all problems, (problem, batch, …)."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def ratio(steps: np.ndarray) -> np.ndarray:
    """Second over first steps, as batches with the mean and spread of the ratio, (N, batch)."""
    first, second = np.moveaxis(steps, -1, 0)
    scale = first.mean(1, keepdims=True)
    found = second.mean(1, keepdims=True) / scale
    return np.asarray(found + (second - found * first) / scale)


def exponents(ends: np.ndarray) -> np.ndarray:
    """p of ρ ~ L^−p between the depths L and 2L."""
    return np.asarray((ends[..., 0] - ends[..., 1]) / np.log(2))


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem."""
    law = results.predictions["law"]
    columns = {k: v.values for k, v in law.items() if v.dims == ("number",)}
    return pd.DataFrame(columns).drop(columns=["weights", "order", "rate", "claimed", "open"])
