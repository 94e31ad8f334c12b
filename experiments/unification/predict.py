"""v and ρv of heads by the angle law, of ants by Pólya's urn; trees have no closed form (NaN)."""

from typing import Any

import numpy as np
import xarray as xr

from sims.theory import noise_covariance_law


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every system's prediction."""
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    found = {}
    for system in settings["systems"]:
        known = {"heads": heads, "ants": ants}.get(system["kind"])
        v, c = known(system, settings[system["kind"]]) if known else (np.nan, np.nan)
        found[system["name"]] = xr.Dataset({"variance": ((), v), "covariance": ((), c)})
    return found


def heads(system: Any, sizes: Any) -> tuple[float, float]:
    """The angle law, first order in 1/n, unit label noise."""
    cosine = np.cos(np.deg2rad(system["angle"])) if system["angle"] != 90 else 0.0
    v, c = (
        float(
            noise_covariance_law(
                np.full(sizes["width"], a), sizes["n"], 1.0, sizes["bandwidth"], sizes["scale"]
            )
        )
        for a in (1.0, cosine)
    )
    return v, c


def ants(system: Any, sizes: Any) -> tuple[float, float]:
    """Pólya's urn: two ants are on one patch with probability ``(1 + τ)/(1 + Kτ)``.

    K patches with initial pheromone τ, deposits of 1, no evaporation: choices are exchangeable
    (de Finetti), so all pairs have the same covariance, that of the shared patch, of variance 1.
    With evaporation they are not, and this is NaN.
    """
    if system["evaporation"]:
        return np.nan, np.nan
    start, patches = system["initial"], sizes["patches"]
    return 1.0 + sizes["reading_sd"] ** 2, (1 + start) / (1 + patches * start)
