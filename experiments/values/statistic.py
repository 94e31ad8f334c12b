"""Effects of values apart: from aligned to random heads, and the identity of label noise."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd

from sims.base.estimates import ratio
from sims.judgement.effects import Effects, gap, outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

from ..house.outcomes import controlled
from .points import NAMES, TEMPERATURES

IDENTITY = ("outputs, 0.5", "values, 0.5")
"""Points at which simulated label noise is held against the identity."""


def falls(results: Results) -> np.ndarray:
    """Relative falls of the error from aligned to random heads as batches, by point.

    Shape (problem, batch, point, temperature); NaN where a problem has no equally good version.
    Heads alone err equally at one temperature, by algebra: the difference of the mean heads is a
    control variate.
    """
    error = stack_batches(results, "bias").astype(float) + stack_batches(results, "variance")
    head = stack_batches(results, "head_error").astype(float)
    fallen = 1 - ratio(error[:, :, 1], error[:, :, 0], axis=1)
    cells = (*fallen.shape[:2], -1)
    control = (head[:, :, 1] - head[:, :, 0]).reshape(cells)
    return controlled(fallen.reshape(cells), control).reshape(fallen.shape)


def effects(results: Results) -> Mapping[str, Effects]:
    """Outcomes at every point and temperature, and gaps of label noise from the identity."""
    fallen = falls(results)
    made = {}
    for (place, name), (at, label) in product(enumerate(NAMES), enumerate(TEMPERATURES)):
        values = fallen[..., place, at]
        made[f"{name}, {label}"] = outcome(values, size=-values.mean(1))
    noise = stack_batches(results, "noise").astype(float)
    simulated = stack_batches(results, "simulated_noise").astype(float)
    ratios = ratio(simulated, noise, axis=1)[..., 0].mean(2)
    for name in IDENTITY:
        values = ratios[..., NAMES.index(name)]
        made[f"noise, {name}"] = gap(values, np.ones(len(values)))
    return made


def parameters(results: Results) -> pd.DataFrame:
    """The population of ``house``, a row a problem."""
    return drawn_values(results, "shift", "features")
