"""What merging does to the error of heads: one number a problem."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import jackknife
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import extremum, gap, of_batches
from sims.study.results import Results

SHOWN = ("stride", "alike", "kernel", "gates", "keys", "width", "lengthscale", "noise_sd")
CONDITIONS = ("correlated", "in_range")


def stacked(results: Results, name: str) -> xr.DataArray:
    """Batches of a term, (number, batch, over, bandwidth)."""
    return xr.concat([data[name] for _, data in sorted(results.estimates.items())], "number")


def rises(results: Results) -> dict[str, np.ndarray]:
    """By what share merging raises the error, as batches (N, B).

    ``best``: each at its best bandwidth, which the other half of the batches chooses, NaN where
    that is an end of the grid; ``same``: both at the drawn bandwidth.
    """
    mse = stacked(results, "mse")
    half = mse.sizes["batch"] // 2
    halves = mse.isel(batch=slice(half)), mse.isel(batch=slice(half, None))
    best = [
        judging.isel(bandwidth=choosing.mean("batch").argmin("bandwidth"))
        for judging, choosing in zip(halves, halves[::-1], strict=True)
    ]
    pairs = {"best": xr.concat(best, "batch", coords="minimal", compat="override")}
    pairs["same"] = mse.sel(bandwidth=1.0)
    shares = {}
    for name, pair in pairs.items():
        parts = {
            over: pair.sel(over=over).transpose("batch", "number").values
            for over in ("keys", "slots")
        }
        shares[name] = jackknife(parts, lambda terms: terms["slots"] / terms["keys"]).T - 1
    means = mse.mean("batch").transpose("number", "over", "bandwidth").values
    places = np.stack([extremum(means[:, over]) for over in (0, 1)])
    shares["best"][np.isnan(places).any(0)] = np.nan
    return shares


def effects(results: Results) -> Mapping[str, Effects]:
    """Rises of the error below the tolerance, above zero, and gaps to theory of merged heads."""
    law, shares = results.predictions["law"], rises(results)
    known = law["in_range"].values.astype(bool)
    error, variance = (
        gap(stacked(results, name).sel(over="slots", bandwidth=1.0).values, law[name].values, known)
        for name in ("mse", "variance")
    )
    return {
        "free": of_batches(house.TOLERANCES["roads"] - shares["best"]),
        "free at the same temperature": of_batches(house.TOLERANCES["roads"] - shares["same"]),
        "dearer": of_batches(shares["best"]),
        "gap of the error": error,
        "gap of the variance": replace(variance, kind="estimate"),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What was drawn, a row a problem."""
    law = results.predictions["law"]
    return pd.DataFrame({name: law[name].values for name in (*SHOWN, *CONDITIONS)})
