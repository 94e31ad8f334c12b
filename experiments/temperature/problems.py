"""Problems of the law ``temperature``: regression tasks of one head, and a pair of sparse heads.

Both roads take the problems from here, and the temperatures: those of least first-order error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import gamma

from sims.base.runtime import in_threads
from sims.judgement.effects_of_problems import extremum
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.theory import FEW_KEYS
from sims.theory.neighbours.context import RULES, Problems, tables
from sims.weights import FACTORIES

TASKS, WAVES, PLANE = 6, 9, 2
"""Targets of a problem, each with a query, their waves, and the largest dimension."""
LOG = ", log n"
NAMES = [*RULES, "softmax" + LOG]
"""Rules; of the last the scores are multiplied by log n over the logarithm of the tuned context."""
RATIOS = 4.0 ** np.arange(7)
"""Numbers of keys over that of the tuned context."""
RADII = {1: np.geomspace(5e-4, 7, 110), 2: np.geomspace(5e-3, 7, 80)}
"""Radii of theory's tables, by dimension."""
TEMPERATURES, COUNTS = np.geomspace(1e-4, 1e3, 280), np.geomspace(4, 4e5, 200).round()
"""Grids on which the best temperature, and the best k of top-k, are sought."""


@dataclass(frozen=True)
class Problem:
    """One problem of the law.

    Attributes:
        drawn: the law's fields; an analytic target counts as one of smoothness 2.
    """

    drawn: Mapping[str, Any]

    @cached_property
    def tasks(self) -> Problems:
        """Targets with a query each: lacunary series, or Gaussian frequencies."""
        rng, width = np.random.default_rng(self.drawn["target"]), self.drawn["width"]
        frequency, level = rng.normal(size=(TASKS, WAVES, width)), 2.0 ** np.arange(WAVES)
        amplitude = np.full(WAVES, (2 / WAVES) ** 0.5)
        if self.drawn["family"] == "lacunary":
            frequency *= (level / np.linalg.norm(frequency, axis=2))[..., None]
            amplitude = level ** -self.drawn["smoothness"]
        return Problems(
            np.tile(amplitude, (1, TASKS, 1)),
            frequency / self.drawn["lengthscale"],
            rng.uniform(0, 2 * np.pi, (TASKS, WAVES)),
            self.drawn["reach"] * rng.normal(size=(TASKS, width)),
        )

    def heads(self, keys: int, count: int = 2) -> tuple[Task, Heads, int, np.ndarray]:
        """One or two α-entmax heads at n keys in four dimensions, whose radius is as drawn.

        To leading order, at the origin: ``(2sν)^ν = n (2π)^{−d/2} h^{2ν+d} ∫ (1 − u²)₊^ν du``.
        """
        drawn, width, nu = self.drawn, self.drawn["width"], self.drawn["power"]
        volume = np.pi ** (width / 2) * gamma(nu + 1) / gamma(nu + 1 + width / 2)
        mean = volume * (2 * np.pi) ** (-width / 2) * drawn["radius"] ** (2 * nu + width)
        temperature = (keys * mean) ** (1 / nu) / (2 * nu)
        frames = FRAMES["equiangular"](4, 2, width, drawn["frames"], angle=drawn["angle"])
        rule = FACTORIES["entmax"](nu=nu, scores="distance")
        options = {"seed": drawn["target"], "lengthscale": drawn["lengthscale"]}
        target = TARGETS["rbf"](4, features=16, **options)
        queries = drawn["reach"] * np.random.default_rng(drawn["queries"]).normal(size=(1, 4))
        task = Task(DESIGNS["isotropic"](4), target, drawn["noise_sd"])
        return task, Heads(np.asarray(frames)[:count], rule, temperature**0.5), keys, queries


def tuned(problems: Sequence[Problem]) -> xr.Dataset:
    """What is kept and what is best of every rule at every number of keys, by first-order theory.

    Errors ``kept`` and ``best``, their parameters ``held`` and ``tuned`` (the temperature; k of
    top-k) and the keys ``attended`` at what is kept, each (number, rule, ratio), NaN where the best
    one is not inside the grid; and whether both errors are in the range of theory, ``known``.
    """
    names = ("width", "context", "family")
    keys = [(*map(p.drawn.get, names), p.drawn["lengthscale"] < 1) for p in problems]
    groups = [[i for i, key in enumerate(keys) if key == kind] for kind in sorted(set(keys))]
    parts = in_threads(lambda group: _tuned([problems[i] for i in group]), groups)
    joined = xr.concat(parts, "number").isel(number=np.argsort(np.concatenate(groups)))
    return joined.transpose("number", "rule", "ratio")


def _tuned(problems: Sequence[Problem]) -> xr.Dataset:
    """The same of problems of one width, context and family, and of like lengths of waves."""
    width, context = (problems[0].drawn[name] for name in ("width", "context"))
    parts = zip(*(problem.tasks for problem in problems), strict=True)
    joined = Problems(*(np.concatenate(p, int(k == 0)) for k, p in enumerate(parts)))
    by_rule, sizes = tables(joined, RADII[width]), context * RATIOS
    noise = np.repeat([problem.drawn["noise_sd"] for problem in problems], TASKS)[:, None, None]
    rules = []
    for name in NAMES:
        rule = name.removesuffix(LOG)
        grid = COUNTS if rule == "top-k" else TEMPERATURES
        most = 0.7 * sizes if rule == "top-k" else np.inf
        every = by_rule[rule].errors(
            sizes, np.where(grid[:, None] > most, np.nan, grid[:, None]), noise
        )
        mse, share, attended = (
            part.reshape(len(problems), TASKS, *part.shape[1:]).mean(1)
            for part in (every.mse[0], 1 / every.n_eff, every.attended)
        )
        rows = np.moveaxis(mse, 2, 1)
        least = extremum(rows.reshape(-1, len(grid))).reshape(rows.shape[:2])
        known, place = np.isfinite(least), np.nan_to_num(least).astype(int)
        factor = np.log(context) / np.log(sizes) if rule != name else np.ones(len(sizes))
        step = np.log(grid[-1] / grid[0]) / (len(grid) - 1)
        moved = place[:, :1] + np.round(np.log(factor) / step).astype(int)

        def select(values: np.ndarray, places: np.ndarray) -> np.ndarray:
            return np.take_along_axis(values, places[:, None].clip(0), 1)[:, 0]

        data = {
            "kept": select(mse, moved),
            "best": select(mse, place),
            "attended": select(attended, moved),
        }
        data |= {"held": grid[moved.clip(0)], "tuned": grid[place]}
        dims, inside = ("number", "ratio"), known & known[:, :1]
        dataset = xr.Dataset({k: (dims, np.where(inside, v, np.nan)) for k, v in data.items()})
        effective = np.maximum(select(share, moved), select(share, place)) <= 1 / FEW_KEYS
        rules.append(dataset.assign(known=(dims, effective & inside)))
    return xr.concat(rules, xr.Variable("rule", NAMES)).assign_coords(ratio=RATIOS)
