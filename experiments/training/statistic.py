"""Effects of training together, one number per problem: what moves apart, what is gained, how."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import jackknife
from sims.judgement.effects import Effects, outcome, share
from sims.judgement.summaries import quartiles_in_words
from sims.judgement.wording import markdown_table
from sims.study.batches import drawn_values
from sims.study.panels import Panels
from sims.study.results import Results

CONTROLS = ("identical", "separate", "start")
CHANGES = {
    "mse": "error",
    "bias": "squared bias",
    "own": "variance of the heads",
    "covariance": "covariance of the heads",
}
"""The error and the three terms that it is the sum of."""
TERMS = ("bias", "own", "covariance")
Measured = Mapping[str, Mapping[str, np.ndarray]]


def measured(results: Results) -> Measured:
    """Terms of each layer: layer to name to values (N, seeds).

    Besides what was measured the squared ``bias``, and ``own``, what the heads' variances put into
    the layer's: ``mse = bias + own + covariance``.
    """
    sizes = list(results.estimates.values())
    terms = xr.concat(sizes, "batch", data_vars="all", coords="minimal", compat="override")
    terms["bias"] = terms["mse"] - terms["variance"]
    terms["own"] = terms["variance"] - terms["covariance"]
    layers = {}
    for layer in terms["layer"].values:
        chosen = terms.sel(layer=layer)
        layers[str(layer)] = {str(name): chosen[name].values for name in chosen}
    return layers


def falls(layers: Measured, control: str, name: str) -> np.ndarray:
    """The fall of a term from a control to the layer trained together, over the control's error.

    Pseudo-values of a ratio of means over seeds, (N, seeds).
    """
    before = layers[control]
    fall = before[name] - layers["joint"][name]
    batches = {"fall": fall.T, "error": before["mse"].T}
    return jackknife(batches, lambda means: means["fall"] / means["error"]).T


def effects(results: Results) -> dict[str, Effects]:
    """Every question's effects."""
    layers = measured(results)
    joint = layers["joint"]
    separate = layers["separate"]
    apart = joint["subspaces"] - separate["subspaces"]
    overlap = 1 - joint["subspaces"].mean(1)
    rise = overlap / (1 - separate["subspaces"].mean(1)) - 1
    made = {
        "subspaces": share(apart, size=rise),
        "outputs": share(joint["outputs"] - separate["outputs"]),
    }
    for control in CONTROLS:
        fall = {name: falls(layers, control, name) for name in (*CHANGES, "variance", "alone")}
        components = {CHANGES[name]: -fall[name].mean(1) for name in TERMS}
        asked = {
            "covariance against bias": fall["covariance"] - fall["bias"],
            "gain": fall["mse"],
            "variance": fall["variance"],
            "alone": -fall["alone"],
        }
        for name, draws in asked.items():
            made[f"{name}, {control}"] = replace(
                outcome(draws), size=-fall["mse"].mean(1), components=components
            )
    return made


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, one row per problem, and the n_eff/n of the heads trained together."""
    selectivity = measured(results)["joint"]["selectivity"].mean(1)
    return drawn_values(results, "noise_sd").assign(selectivity=selectivity)


def panels(results: Results) -> xr.Dataset:
    """Means over seeds: changes from each layer to the one trained together, and what layers have.

    ``change`` is that of a term over the layer's error; ``selectivity`` is n_eff/n, ``subspaces``
    the index of the key subspaces.
    """
    layers = measured(results)
    change = []
    for layer in layers:
        change.append([-falls(layers, layer, name).mean(1) for name in CHANGES])
    arrays: dict[str, Any] = {"change": (("layer", "term", "problem"), change)}
    for name in ("selectivity", "subspaces"):
        values = [terms[name].mean(1) for terms in layers.values()]
        arrays[name] = (("layer", "problem"), values)
    return xr.Dataset(arrays, {"layer": [*layers], "term": [*CHANGES]})


def changes_table(panels: Panels) -> str:
    """Medians and quartiles of the changes of the error and its terms, as a Markdown table."""
    maps = panels.parameters["maps"].to_numpy()
    names = {"joint": "(together)"}
    lines = []
    for kind, layer in product(("averaged", "trained"), (*CONTROLS, "joint")):
        rows = maps == kind
        shown = panels.arrays.sel(layer=layer).isel(problem=rows)
        line = {"maps of values": kind, "compared with": names.get(layer, layer)}
        line["problems"] = str(rows.sum())
        for name, title in CHANGES.items():
            line[title] = "–"
            if layer in CONTROLS:
                line[title] = _quartiles(shown["change"].sel(term=name).values)
        line["n_eff/n"] = _quartiles(shown["selectivity"].values)
        lines.append(line)
    return markdown_table(lines)


def _quartiles(values: np.ndarray) -> str:
    if not len(values):
        return "–"
    return quartiles_in_words(tuple(np.quantile(values, (0.25, 0.5, 0.75))))
