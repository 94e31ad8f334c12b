"""Problems of the law ``temperature``: regression tasks of one head.

Both methods take the problems from here, and the temperatures: those of least first-order error.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.arrays import extremum
from sims.base.runtime import in_threads
from sims.study.problem import Drawn
from sims.theory import FEW_KEYS
from sims.theory.neighbours.context import RULES, Problems, Table, tables

from .rules import LOG

TASKS, WAVES, PLANE = 6, 9, 2
"""Targets of a problem, each with a query, their waves, and the largest dimension."""
NAMES = [*RULES, "softmax" + LOG]
"""Rules; of the last the scores are multiplied by log n over the logarithm of the tuned context."""
RATIOS = 4.0 ** np.arange(7)
"""Numbers of keys over that of the tuned context."""
RADII = {1: np.geomspace(5e-4, 7, 110), 2: np.geomspace(5e-3, 7, 80)}
"""Radii of theory's tables, by dimension."""
TEMPERATURES, COUNTS = np.geomspace(1e-4, 1e3, 280), np.geomspace(4, 4e5, 200).round()
"""Grids on which the best temperature, and the best k of top-k, are sought."""


class Problem(Drawn):
    """One problem of the law; an analytic target counts as one of smoothness 2."""

    @cached_property
    def tasks(self) -> Problems:
        """Targets with a query each: lacunary series, or Gaussian frequencies."""
        rng = self.rng("target")
        frequency = rng.normal(size=(TASKS, WAVES, self["width"]))
        amplitude = np.full(WAVES, (2 / WAVES) ** 0.5)
        if self["family"] == "lacunary":
            level = 2.0 ** np.arange(WAVES)
            frequency *= (level / np.linalg.norm(frequency, axis=2))[..., None]
            amplitude = level ** -self["smoothness"]
        return Problems(
            np.tile(amplitude, (1, TASKS, 1)),
            frequency / self["lengthscale"],
            rng.uniform(0, 2 * np.pi, (TASKS, WAVES)),
            self["reach"] * rng.normal(size=(TASKS, self["width"])),
        )


def tuned(problems: Sequence[Problem]) -> xr.Dataset:
    """What is kept and what is best of every rule at every number of keys, by first-order theory.

    Errors ``kept`` and ``best``, and their parameters ``held`` and ``tuned`` (the temperature; k of
    top-k), each (number, rule, ratio), NaN where the best one is not inside the grid; and whether
    both errors are in the range of theory, ``known``.
    """
    drawn = pd.DataFrame([problem.drawn for problem in problems])
    alike = drawn.groupby(["width", "context", "family", drawn["lengthscale"] < 1])
    groups = [*alike.indices.values()]
    parts = in_threads(lambda group: tune_alike([problems[place] for place in group]), groups)
    joined = xr.concat(parts, "number").isel(number=np.argsort(np.concatenate(groups)))
    return joined.transpose("number", "rule", "ratio")


def tune_alike(problems: Sequence[Problem]) -> xr.Dataset:
    """The same of problems of one width, context and family, and of like lengths of waves."""
    amplitude, *others = zip(*(problem.tasks for problem in problems), strict=True)
    tasks = Problems(np.concatenate(amplitude, axis=1), *map(np.concatenate, others))
    drawn = problems[0]
    tables_of_rules = tables(tasks, RADII[drawn["width"]])
    noise_sd = np.array([problem["noise_sd"] for problem in problems])
    rules = []
    for name in NAMES:
        table = tables_of_rules[name.removesuffix(LOG)]
        rules.append(tune_rule(table, drawn["context"], noise_sd, name.endswith(LOG)))
    return xr.concat(rules, xr.Variable("rule", NAMES)).assign_coords(ratio=RATIOS)


def tune_rule(table: Table, context: int, noise_sd: np.ndarray, by_log: bool) -> xr.Dataset:
    """The same of one rule, (number, ratio).

    Args:
        table: of the tasks of all problems.
        context: number of keys at which the rule is tuned.
        noise_sd: of each problem.
        by_log: whether the kept scores grow like log n.
    """
    keys = context * RATIOS[:, None]
    grid = TEMPERATURES
    parameter = grid
    if table.of == "top-k":
        grid = COUNTS
        parameter = np.where(grid > 0.7 * keys, np.nan, grid)
    errors = table.errors(keys, parameter, np.repeat(noise_sd, TASKS)[:, None, None])
    terms = xr.Dataset({"parameter": ("place", grid)})
    shape = (len(noise_sd), TASKS, len(RATIOS), len(grid))
    for name, part in {"mse": errors.mse, "share": 1 / errors.n_eff}.items():
        terms[name] = ("number", "ratio", "place"), part.reshape(shape).mean(1)
    mse = terms["mse"].values
    places = extremum(mse.reshape(-1, len(grid))).reshape(mse.shape[:2])
    least = xr.DataArray(places, dims=("number", "ratio"))
    first = least.isel(ratio=0)
    known = least.notnull() & first.notnull()
    if by_log:
        step = np.log(grid[-1] / grid[0]) / (len(grid) - 1)
        factor = xr.DataArray(np.log(context) / np.log(context * RATIOS), dims="ratio")
        first = (first + np.round(np.log(factor) / step)).clip(0)
    best = terms.isel(place=least.fillna(0).astype(int))
    kept = terms.isel(place=first.fillna(0).astype(int))
    values = {
        "kept": kept["mse"],
        "best": best["mse"],
        "held": kept["parameter"],
        "tuned": best["parameter"],
    }
    in_range = np.maximum(kept["share"], best["share"]) <= 1 / FEW_KEYS
    return xr.Dataset(values).where(known).assign(known=known & in_range)
