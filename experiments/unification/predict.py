"""v and ρv: heads by exact theory, ants by Pólya's urn; trees have no closed form (NaN)."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.theory import predict as theory

NODES = 4
"""Gauss–Hermite nodes in each direction of a query; a rule with one less gives the error."""


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every system's prediction, with a bound on its error by quadrature."""
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    found = {}
    for system in settings["systems"]:
        known = {"heads": heads, "ants": ants}.get(system["kind"])
        v, c = known(system, settings[system["kind"]]) if known else ((np.nan, np.nan),) * 2
        found[system["name"]] = xr.Dataset(
            {"variance": v[0], "variance_error": v[1], "covariance": c[0], "covariance_error": c[1]}
        )
    return found


def heads(system: Any, sizes: Any) -> tuple[tuple[float, float], ...]:
    """Noise variance and covariance of two heads: exact at a query, Gauss–Hermite over queries.

    Two subspaces span 2d_k dimensions; all others, of keys and of queries, are idle.
    """
    width = sizes["width"]
    frames = FRAMES["equiangular"](2 * width, 2, width, seed=0, angle=system["angle"])
    design = DESIGNS["isotropic"](2 * width)
    task = Task(design, TARGETS["constant"](2 * width, value=0.0), 1.0)
    rules = [_hermite(count, 2 * width) for count in (NODES - 1, NODES)]
    points = sizes["scale"] * np.concatenate([points for points, _ in rules])
    at = theory(task, Heads(frames, "gaussian", sizes["bandwidth"]), sizes["n"], points, "exact")
    coarse, fine = (weights for _, weights in rules)
    found = []
    for own in (True, False):
        value, error = (
            0.5 * (m[:, 0, 0] + m[:, 1, 1]) if own else m[:, 0, 1]
            for m in (at["noise_covariance"].values, at["noise_covariance_error"].values)
        )
        mean = fine @ value[len(coarse) :]
        gap = abs(mean - coarse @ value[: len(coarse)])
        found.append((float(mean), float(gap + fine @ error[len(coarse) :])))
    return tuple(found)


def _hermite(count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (count^d, d) and weights of the product rule for N(0, I)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    points, products = (
        np.array(list(itertools.product(one, repeat=dimension))) for one in (nodes, weights)
    )
    return points, products.prod(axis=1) / weights.sum() ** dimension


def ants(system: Any, sizes: Any) -> tuple[tuple[float, float], ...]:
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
