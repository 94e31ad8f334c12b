"""Closed-form errors of every split of a budget, and the splits that minimise them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory import ViewTerms, view_terms

Settings = Mapping[str, Any]
"""The experiment's own settings, as in its file."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """``splits``: errors on the simulation's grid, and dense in n, D and d_k with their minima."""
    settings = experiment.settings
    widths = np.arange(1, settings["latent"] + 1)
    bands = np.geomspace(*(settings["bandwidths"][k] for k in ("low", "high", "count")))
    ladder = rungs(settings, widths)
    every = terms(settings, widths, np.hstack([ladder, np.tile(bands, (len(widths), 1))]))
    both = (points(settings, every, ladder), dense(settings, every, widths, bands))
    return {"splits": xr.merge(both)}


def rungs(settings: Settings, widths: np.ndarray) -> np.ndarray:
    """Bandwidths by width: the ladder, which holds the fixed one, and last ``b² = b₁² √d_k``."""
    hot = settings["bandwidth"] * widths[:, None] ** 0.25
    return np.hstack([np.tile(settings["ladder"], (len(widths), 1)), hot])


def points(settings: Settings, every: list[ViewTerms], ladder: np.ndarray) -> xr.Dataset:
    """The error on the simulation's grid; the fixed bandwidth's rung is in the attributes."""
    grid = settings["simulated"]
    widths, n = np.array(grid["widths"]), np.array(grid["n"], float)
    chosen = [ViewTerms(*(part[widths - 1, : ladder.shape[1]] for part in f)) for f in every]
    value, n_eff = errors(chosen, n, np.array(grid["budgets"])[:, None] / widths, settings)
    dims = ("family", "n", "budget", "width", "rung")
    return xr.Dataset(
        {
            "mse": (dims, value),
            "n_eff": (("n", "width", "rung"), n_eff[0, :, 0]),
            "bandwidth": (("width", "rung"), ladder[widths - 1]),
        },
        coords={"family": list(settings["families"]), "n": grid["n"], "budget": grid["budgets"],
                "width": widths},
        attrs={"fixed": settings["ladder"].index(settings["bandwidth"]),
               "least_n_eff": settings["least_n_eff"]},
    )  # fmt: skip


def dense(
    settings: Settings, every: list[ViewTerms], widths: np.ndarray, bands: np.ndarray
) -> xr.Dataset:
    """Errors of every width at each temperature (``surface``), NaN where n_eff is too small.

    Their minima are ``least``, at ``optimum`` if it is inside, with admissible widths, and
    bandwidths, to both sides; else that is NaN. ``dense_n_eff`` is at the fixed temperature.
    """
    span, budgets = settings["decades"], np.array(settings["budgets"])
    count = (span["high"] - span["low"]) * span["per_decade"] + 1
    n = np.union1d(np.logspace(span["low"], span["high"], count), settings["simulated"]["n"])
    # Beyond d_k = D there is no split: the last is one head.
    heads = np.where(widths <= budgets[:, None], budgets[:, None] / widths, np.nan)
    value, n_eff = errors(every, n, heads, settings)
    value = np.where(n_eff >= settings["least_n_eff"], value, np.nan)
    fixed, hot = settings["ladder"].index(settings["bandwidth"]), len(settings["ladder"])
    tuned, band, inside = valley(value[..., hot + 1 :], np.log(bands))
    surfaces = np.stack([value[..., fixed], value[..., hot], tuned])
    least, width, interior = valley(surfaces, widths.astype(float))
    at = np.argmin(np.where(np.isnan(tuned), np.inf, tuned), axis=-1)
    interior[2] &= np.take_along_axis(inside, at[..., None], -1)[..., 0]
    dims = ("temperature", "family", "dense_n", "dense_budget", "dense_width")
    return xr.Dataset(
        {
            "surface": (dims, surfaces),
            "tuned_bandwidth": (dims[1:], np.exp(band)),
            "dense_n_eff": (("dense_n", "dense_width"), n_eff[0, :, 0, :, fixed]),
            "least": (dims[:-1], least),
            "optimum": (dims[:-1], np.where(interior, width, np.nan)),
        },
        coords={"temperature": ["fixed", "transformer", "tuned"], "dense_n": n,
                "family": list(settings["families"]), "dense_budget": budgets,
                "dense_width": widths},
    )  # fmt: skip


def terms(settings: Settings, widths: np.ndarray, bandwidths: np.ndarray) -> list[ViewTerms]:
    """By family of targets; widths (K,), bandwidths (K, B)."""
    alpha, length = (settings["relevance"][k] for k in ("alpha", "lengthscale"))
    relevance = np.exp(-alpha * np.arange(settings["latent"])) / length**2
    return [
        view_terms(
            widths[:, None], bandwidths, noise=settings["noise"], relevance=relevance,
            query_scale=settings["queries"]["scale"], nu=nu,
        )
        for nu in settings["families"].values()
    ]  # fmt: skip


def errors(
    every: list[ViewTerms], n: np.ndarray, heads: np.ndarray, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """Errors (family, N, D, K, B) and n_eff (1, N, 1, K, B); heads is (D, K)."""
    n = n[:, None, None, None]
    value = [np.asarray(f.error(n, heads[:, :, None], settings["noise_sd"])) for f in every]
    return np.stack(value), np.asarray(n / every[0].noise_variance)[None]


def valley(values: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least value along the last axis, its place, and whether it is inside.

    The vertex of the parabola through the logarithms of the least value and its two neighbours; at
    an end, or beside a missing value, the least value itself. x is equally spaced.
    """
    known = np.where(np.isnan(values), np.inf, values)
    at = np.argmin(known, axis=-1)
    middle = np.clip(at, 1, len(x) - 2)
    left, low, right = (
        np.take_along_axis(known, (middle + k)[..., None], -1)[..., 0] for k in (-1, 0, 1)
    )
    inside = (at == middle) & np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = np.log(left / low), np.log(right / low)
        shift = np.where(inside, 0.5 * (a - b) / (a + b), 0.0)
        drop = np.where(inside, -0.125 * (a - b) ** 2 / (a + b), 0.0)
    least = np.take_along_axis(known, at[..., None], -1)[..., 0] * np.exp(drop)
    return np.where(np.isfinite(least), least, np.nan), x[at] + shift * (x[1] - x[0]), inside
