"""v and ρv: heads by exact theory, ants by Pólya's urn; trees have no closed form (NaN)."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.study.experiment import Experiment
from sims.theory import predict as theory

NODES = 4
"""Gauss–Hermite nodes in each direction of a query; a rule with one less gives the error."""
Settings = Mapping[str, Any]
"""Of a system, or of all of its kind, as in the experiment's file."""
Bounded = tuple[float, float]
"""A number and a bound on its error."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every system's v and ρv, with bounds on their errors by quadrature, and its pooled variances.

    These are ``c + (v − c)/M``, as all pairs of agents have the same covariance c = ρv.
    """
    settings = experiment.settings
    laws = {}
    for system in settings["systems"]:
        known = {"heads": heads, "ants": ants}.get(system["kind"])
        v, c = known(system, settings[system["kind"]]) if known else ((np.nan, np.nan),) * 2
        agents = 2 ** np.arange(int(np.log2(system["agents"])) + 1)
        variances = ("agents", c[0] + (v[0] - c[0]) / agents)
        laws[system["name"]] = xr.Dataset({"pooled": variances}, {"agents": agents})
        laws[f"{system['name']}, measured"] = xr.Dataset(
            {"variance": v[0], "variance_error": v[1], "covariance": c[0], "covariance_error": c[1]}
        )
    return laws


def heads(system: Settings, sizes: Settings) -> tuple[Bounded, Bounded]:
    """Noise variance and covariance of two heads: exact at a query, Gauss–Hermite over queries.

    Two subspaces span 2d_k dimensions; all others, of keys and of queries, are idle.
    """
    width = sizes["width"]
    frames = FRAMES["equiangular"](2 * width, 2, width, seed=0, angle=system["angle"])
    design = DESIGNS["isotropic"](2 * width)
    task = Task(design, TARGETS["constant"](2 * width, value=0.0), 1.0)
    rules = [_hermite(count, 2 * width) for count in (NODES - 1, NODES)]
    points = sizes["scale"] * np.concatenate([points for points, _ in rules])
    chosen = Heads(
        frames, system.get("kernel", "gaussian"), system.get("bandwidth", sizes["bandwidth"])
    )
    at = theory(task, chosen, sizes["n"], points, "exact")
    coarse, fine = (weights for _, weights in rules)
    parts = (at["noise_covariance"].values, at["noise_covariance_error"].values)

    def integrated(value: np.ndarray, error: np.ndarray) -> Bounded:
        mean = fine @ value[len(coarse) :]
        gap = abs(mean - coarse @ value[: len(coarse)])
        return float(mean), float(gap + fine @ error[len(coarse) :])

    return (
        integrated(*(0.5 * (m[:, 0, 0] + m[:, 1, 1]) for m in parts)),
        integrated(*(m[:, 0, 1] for m in parts)),
    )


def _hermite(count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (count^d, d) and weights of the product rule for N(0, I)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    points, products = (
        np.array(list(itertools.product(one, repeat=dimension))) for one in (nodes, weights)
    )
    return points, products.prod(axis=1) / weights.sum() ** dimension


def ants(system: Settings, sizes: Settings) -> tuple[Bounded, Bounded]:
    """Pólya's urn: two ants are on one patch with probability ``(1 + τ)/(1 + Kτ)``.

    K patches with initial pheromone τ, deposits of 1, no evaporation: choices are exchangeable
    (de Finetti), so all pairs have the same covariance, that of the shared patch, of variance 1.
    With evaporation they are not, and this is NaN.
    """
    if system["evaporation"]:
        return ((np.nan, np.nan),) * 2
    start, patches = system["initial"], sizes["patches"]
    together = (1 + start) / (1 + patches * start)
    return (1.0 + sizes["reading_sd"] ** 2, 0.0), (together, 0.0)
