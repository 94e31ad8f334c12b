"""First-order theory of the error at the learned temperatures, at the longest context."""

import numpy as np
import xarray as xr

from sims.problem import DESIGNS, Heads, Task
from sims.study.experiment import Experiment
from sims.theory import predict as theory
from sims.weights import FACTORIES

from .learning import POWERS, Course, held_out_task, keys_of, learned

TERMS = ("mse", "squared_bias")
"""Terms of the decomposition that are predicted: the error, and what of it is bias."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """``each_mse`` and ``each_squared_bias`` (seed) on the simulation's tasks, unit by unit.

    Of softmax, which of distances is the gaussian kernel, and α-entmax; other rules have no theory.
    """
    settings, run = experiment.settings, experiment.simulation
    n = settings["lengths"][-1] * settings["n"]
    courses = {
        f"{stream}, {rule}": Course.of(settings, stream, rule)
        for stream, rules in settings["best"].items()
        for rule in rules
        if rule == "softmax" or rule in POWERS
    }
    found = {}
    for name, course in courses.items():
        rows = [
            of_seed(course, run.seed, batch, n, settings["held_out"])
            for batch in range(run.batches)
        ]
        columns = zip(TERMS, np.transpose(rows), strict=True)
        found[name] = xr.Dataset({f"each_{term}": ("seed", column) for term, column in columns})
    return found


def of_seed(course: Course, seed: int, batch: int, n: int, sizes: dict[str, int]) -> list[float]:
    """Means over held-out tasks and queries of the error and of the squared bias in it."""
    bandwidth = np.exp(learned(course, seed, batch) / 2)
    key = keys_of(seed, range(batch, batch + 1))[0, 1]
    rule = (
        FACTORIES["entmax"](nu=POWERS[course.rule], scores="distance")
        if course.rule in POWERS
        else "gaussian"
    )
    heads = Heads(np.ones((1, 1, 1)), rule, bandwidth)
    errors = []
    for index in range(sizes["tasks"]):
        target, at = held_out_task(
            course.stream(), key, index, sizes["queries"], course.query_scale
        )
        task = Task(DESIGNS["isotropic"](1), target, course.noise_sd)
        terms = theory(task, heads, n, np.asarray(at)[:, None])
        errors.append([float(terms[term]) for term in TERMS])
    return np.mean(errors, axis=0).tolist()
