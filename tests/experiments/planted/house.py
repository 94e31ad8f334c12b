"""The error falls by a tenth at every rung, or rises; so do the variance kept and the gain."""

from dataclasses import replace

import numpy as np

from experiments.house.sets import READINGS, TEMPERATURES
from tests.experiments.planted.made import assigned, batches

FIXED = {"mse": 1.0, "bias": 0.6, "variance": 0.4, "head_variance": 0.8}
RUNGS = ([1, 0.9, 0.81, 0.729, 0.6561, 0.65, 0.5, 2, 2], [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 2, 2])
"""Errors of the ladder, the third random set, the orthogonal one, and halves of both ends."""


def plant(results):
    """The error falls by a tenth at every rung, or rises; so do the variance kept and the gain."""
    law = results.predictions["law"].isel(number=[0, 1])
    one = next(iter(results.estimates.values())).isel(batch=np.zeros(16, int)).drop_dims("round")
    estimates = {}
    for number, rung in enumerate(np.array(RUNGS)):
        terms = {"bias": 0.6 * rung, "variance": 0.4 * rung, "head_bias": 0 * rung + 0.6}
        terms |= {"head_variance": 0 * rung + 0.8}
        terms |= {"noise": 0 * rung + [0.6, 0.9][number], "head_noise": 0 * rung + 1}
        terms = {
            name: values[None, :, None] + np.zeros((2, 9, 2)) for name, values in terms.items()
        }
        terms |= {"gain_error": rung}
        made = {k: (one[k].dims, batches(v)) for k, v in terms.items()}
        made |= {f"fixed_{k}": ("round", batches(v)) for k, v in FIXED.items()}
        estimates[f"{number:04d}"] = one.assign(made)
    stated = {f"theory_{name}": [value, 0.8 * value] for name, value in FIXED.items()}
    stated |= {f"theory_{name}_error": [1e-4, 1e-4] for name in FIXED}
    stated |= {"query_first": np.ones((2, 8))}
    law = assigned(law, stated | {"heads": [2, 2], "by_angles": [0.2, 0.9], "fits": [1, 1]})
    results = replace(results, estimates=estimates, predictions={"law": law})
    steps = [[0.1] * 4, [-0.1, -1 / 11, -1 / 12, -1 / 13]]
    ends = [[0.3439], [-0.4]]
    falls = {"hdi-monotone": steps, "hdi": steps, "not-heads-alone": ends, "random-aligned": ends}
    falls |= {"extremes": [[1 - 0.5 / 0.6561], [1 - 1.6 / 1.4]]}
    falls |= {"chance": [[1 - 0.65 / 0.6561], [1 - 1.5 / 1.4]]}
    expected = {"random-aligned, with a gain": ends}
    for reading, labels in zip(READINGS, TEMPERATURES, strict=True):
        expected[f"adding-heads, {reading}"] = [[0.3439 / 2], [-0.2]]
        for label in labels:
            expected |= {f"{name}, {reading}, {label}": value for name, value in falls.items()}
    expected |= {name: [0, 0.25] for name in ("mse", "variance", "head_variance", "first order")}
    return results, expected | {"bias": [0, 0.15], "angles": [0, 1]}
