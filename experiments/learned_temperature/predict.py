"""First-order theory of the error at the learned temperatures, at the longest context."""

import numpy as np
import xarray as xr

from sims.problem import DESIGNS, Heads, Task
from sims.study.experiment import Experiment
from sims.theory import predict as theory
from sims.weights import FACTORIES

from .learning import POWERS, Course, held_out_task, keys_of, learned


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """``each_mse`` (seed) on the tasks of the simulation, under the names of its units.

    Of softmax, which of distances is the gaussian kernel, and α-entmax; other rules have no theory.
    """
    settings, run = experiment.settings, experiment.simulation
    n = settings["lengths"][-1] * settings["n"]
    return {
        f"{stream}, {rule}": xr.Dataset({
            "each_mse": ("seed", [
                of_seed(Course.of(settings, stream, rule), run.seed, batch, n, settings["held_out"])
                for batch in range(run.batches)
            ])
        })
        for stream, rules in settings["best"].items()
        for rule in rules if rule == "softmax" or rule in POWERS
    }  # fmt: skip


def of_seed(course: Course, seed: int, batch: int, n: int, sizes: dict[str, int]) -> float:
    """Mean over held-out tasks and queries of squared bias, signal and noise variance."""
    bandwidth = np.exp(learned(course, seed, batch) / 2)
    key = keys_of(seed, range(batch, batch + 1))[0, 1]
    rule = (
        FACTORIES["entmax"](nu=POWERS[course.rule], scores="distance")
        if course.rule in POWERS else "gaussian"
    )  # fmt: skip
    heads = Heads(np.ones((1, 1, 1)), rule, bandwidth)
    errors = []
    for index in range(sizes["tasks"]):
        target, at = held_out_task(
            course.stream(), key, index, sizes["queries"], course.query_scale
        )
        task = Task(DESIGNS["isotropic"](1), target, course.noise_sd)
        errors.append(float(theory(task, heads, n, np.asarray(at)[:, None])["mse"]))
    return float(np.mean(errors))
