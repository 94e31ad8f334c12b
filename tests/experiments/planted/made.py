"""Made-up terms in place of those of a run."""

from dataclasses import replace

import numpy as np


def batches(value):
    """16 batches about a mean."""
    wobble = np.random.default_rng(0).normal(size=16)
    return np.multiply.outer(1 + 1e-4 * (wobble - wobble.mean()), value)


def assigned(data, values):
    """Theory's dataset with these values by problem."""
    count = len(next(iter(values.values())))
    few = data.isel(number=np.zeros(count, int))
    if "in_range" in few:
        values = {"in_range": np.ones(few["in_range"].shape, bool)} | values
    return few.assign({k: (few[k].dims, np.asarray(v)) for k, v in values.items()})


def plant_terms(results, law, simulated, expected):
    """The results with these values by problem, and the effects expected."""
    one = next(iter(results.estimates.values()))
    few = one.isel(batch=np.zeros(16, int))
    estimates = {}
    for number in range(len(next(iter(law.values())))):
        made = {}
        for name, values in simulated.items():
            made[name] = (one[name].dims, batches(values[number]))
        estimates[f"{number:04d}"] = few.assign(made)
    theory = results.predictions | {"law": assigned(results.predictions["law"], law)}
    return replace(results, estimates=estimates, predictions=theory), expected
