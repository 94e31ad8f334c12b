"""What each road says of a rule whose parameter is kept: errors, grids, effects of both."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from sims.effects import Effect, of_batches
from sims.estimates import jackknife
from sims.study.results import Results

from .problems import KEPT, SMOOTHNESS, WEIGHED, parameters
from .tuning import Kept, kept

BETA = {"β = 1": 1.0, "β = 2": 2.0, "analytic": 2.0}
"""Smoothness, at most the kernel's order, by its name."""
MATCHED = {"β = 1": "sparsemax", "β = 2": "1.5-entmax", "analytic": "1.5-entmax"}
"""The α-entmax whose power ν is β."""
SCALED = "top-k, k ∝ n^(4/(4+d))"
RULES = (*WEIGHED, *KEPT)
"""Rules with what is kept of them."""


class Case(NamedTuple):
    """A rule, with what is kept of it, on targets of one smoothness, for one head width."""

    width: int
    smoothness: str
    rule: str

    @property
    def label(self) -> str:
        return f"{self.rule}, {self.smoothness}, d_k = {self.width}"

    @property
    def source(self) -> str:
        """The rule in the data: all ways to keep top-k are one."""
        return "top-k" if self.rule in KEPT else self.rule

    @property
    def end(self) -> str:
        """Of the names of its variables."""
        return "_top_k" if self.source == "top-k" else ""

    def growth(self, sizes: np.ndarray) -> np.ndarray:
        """Logarithm by which the parameter grows with n."""
        exponent = KEPT.get(self.rule, 0.0)
        exponent = 4 / (4 + self.width) if np.isnan(exponent) else exponent
        return exponent * np.log(sizes / sizes[0])


class Road(NamedTuple):
    """What a road says, by head width.

    Attributes:
        name: theory or simulation.
        points: the point's name.
        data: its dataset.
        sizes: numbers of keys.
        logs: logarithms of every rule's grid of parameters.
    """

    name: str
    points: Mapping[int, str]
    data: Mapping[int, xr.Dataset]
    sizes: np.ndarray
    logs: Mapping[int, Mapping[str, np.ndarray]]

    def values(self, case: Case) -> np.ndarray:
        """Mean squared errors, (batch, step, size)."""
        own = self.data[case.width]["mse" + case.end].sel(smoothness=case.smoothness)
        return of_rule(own, case)

    def kept(self, case: Case) -> Callable[[np.ndarray], Kept]:
        """From mean errors to those of the parameter tuned at the first size."""
        growth, logs = case.growth(self.sizes), self.logs[case.width][case.source]
        return lambda mse: kept(mse, logs, growth)

    def pseudovalues(self, statistic: Callable[..., np.ndarray], *cases: Case) -> np.ndarray:
        """Of a function of one or several rules that are kept, (batch, ...)."""
        arrays = {str(i): self.values(case) for i, case in enumerate(cases)}
        made = [self.kept(case) for case in cases]
        return jackknife(
            arrays, lambda mean: statistic(*(f(mean[str(i)]) for i, f in enumerate(made)))
        )

    def effect(self, label: str, values: np.ndarray, case: Case, **at: float | str) -> Effect:
        """An effect of batch values, with what claims select it by."""
        facts: dict[str, float | str] = {
            "smoothness": case.smoothness,
            "rule": case.rule,
            "beta": BETA[case.smoothness],
            "matched": float(case.rule == MATCHED[case.smoothness]),
            "scaled": float(case.rule == SCALED),
            "dimension": float(case.width),
        }
        unit = "replicates" if self.name == "simulation" else "problems"
        points = self.points[case.width] if self.name == "simulation" else ()
        return of_batches(label, values, points, unit=unit, at=facts | at)


def of_rule(data: xr.DataArray, case: Case) -> np.ndarray:
    """A rule's part, with step and size last."""
    own = data if case.end else data.sel(weighed=case.rule)
    return own.transpose(..., "count" if case.end else "step", "size").values.astype(float)


def simulation_of(results: Results) -> Road:
    widths = list(results.settings["widths"])
    points = {width: f"d_k={width}" for width in widths}
    own = {w: results.estimates[name] for w, name in points.items()}
    sizes = np.array(results.settings["sizes"], float)
    logs = {w: log_grids(results, "simulation", w) for w in widths}
    return Road("simulation", points, own, sizes, logs)


def theory_of(results: Results) -> Road:
    widths = list(results.settings["widths"])
    points = {width: f"d_k={width}" for width in widths}
    own = {w: results.prediction(name) for w, name in points.items()}
    sizes = np.array(results.settings["reach"], float)
    return Road("theory", points, own, sizes, {w: log_grids(results, "theory", w) for w in widths})


def log_grids(results: Results, road: str, width: int) -> dict[str, np.ndarray]:
    """Logarithms of every rule's grid of parameters."""
    grids = parameters(results.settings, road, width)
    return {rule: np.log(grid) for rule, grid in grids.items()}


def cases(road: Road) -> Iterator[Case]:
    """All of a road."""
    for width in road.data:
        for smoothness in SMOOTHNESS:
            for rule in RULES:
                yield Case(width, smoothness, rule)
