"""Errors by eigenvalues of second moments, the excess law, compressed heads to first order."""

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory import predict as predict_terms
from sims.theory.neighbours import spectra

from .problems import Moments, cache_points, ensembles, moments


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Closed forms under the names of the points that they are of."""
    settings = experiment.settings
    seed, own = settings["seed"], settings["caches"]
    found: dict[str, xr.Dataset] = {}
    for name, (decay, angle) in cache_points(experiment).items():
        found[name] = shares(moments(own["d"], decay, angle, seed), own["ranks"])
        if angle in own["neff"]["angles"]:
            gain = {
                k: spectra.log_keys_gain(found[name][k].values, own["neff"]["cooling"] ** 0.5)
                for k in ("optimum", "keys_only")
            }
            found[f"keys used {name}"] = found[name].assign(
                {f"{k}_gain": ("rank", values) for k, values in gain.items()}
            )
    for q in settings["example"]:
        keys, queries = np.diag([1.01**2, 1.0]), np.diag([q**2, 1.0])
        best = spectra.optimum(spectra.squares(keys, queries), 1)
        rival = spectra.keys_only_error(keys, queries, 1)
        found[f"example q={q:g}"] = xr.Dataset({"ratio": float(rival / best)})
    calibration = settings["calibration"]
    for angle in calibration["angles"]:
        law = moments(calibration["d"], calibration["decay"], angle, seed)
        for n in calibration["sizes"]:
            for ratio in calibration["ratios"] if angle == "isotropic" else [1]:
                found[f"calibration {angle} n={n} ratio={ratio:g}"] = excess(
                    law, calibration["rank"], n, round(n / ratio)
                )
    for length in settings["bounds"]["lengths"]:
        found[f"spectral T={length}"] = xr.Dataset({"ratio": spectra.sink_ratio(length)})
    for name, (task, heads, n, queries) in ensembles(experiment).items():
        found[name] = predict_terms(task, heads, n, queries)
    return found


def shares(law: Moments, ranks: list[int]) -> xr.Dataset:
    """Errors by rank as shares of E(kᵀq)²: the optimum, K-SVD's, and their gap by its formula."""
    values = spectra.squares(*law)
    parts = {
        "optimum": [spectra.optimum(values, rank) for rank in ranks],
        "keys_only": [spectra.keys_only_error(*law, rank) for rank in ranks],
        "gap": [spectra.gap(*law, rank) for rank in ranks],
    }
    return xr.Dataset(
        {k: ("rank", np.array(v) / values.sum()) for k, v in parts.items()}, {"rank": ranks}
    )


def excess(law: Moments, rank: int, n_keys: int, n_queries: int) -> xr.Dataset:
    """The optimum, what calibration adds to it, K-SVD's gap, and the ratio to K-SVD's excess."""
    values = spectra.squares(*law)
    return xr.Dataset(
        {
            "least": float(spectra.optimum(values, rank)),
            "excess": float(spectra.excess_risk(values, rank, n_keys, n_queries)),
            "keys_gap": float(spectra.gap(*law, rank)),
            "neighbour": spectra.neighbour_ratio(n_keys, n_queries),
        }
    )
