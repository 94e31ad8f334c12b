"""Effects of training together, one number per problem: what moves apart, what is gained, how."""

from dataclasses import replace
from itertools import product

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


def measured(results: Results) -> xr.Dataset:
    """Terms of each layer, each (layer, problem, replicate).

    Besides what was measured the squared ``bias``, and ``own``, what the heads' variances put into
    the layer's: ``mse = bias + own + covariance``.
    """
    sizes = list(results.estimates.values())
    terms = xr.concat(sizes, "batch", data_vars="all", coords="minimal", compat="override")
    terms["bias"] = terms["mse"] - terms["variance"]
    terms["own"] = terms["variance"] - terms["covariance"]
    return terms.rename(batch="problem").transpose("layer", "problem", "replicate")


def falls(terms: xr.Dataset, control: str, name: str) -> np.ndarray:
    """The fall of a term from a control to the layer trained together, over the control's error.

    Pseudo-values of a ratio of means over seeds, (N, seeds).
    """
    before = terms.sel(layer=control)
    fall = before[name] - terms[name].sel(layer="joint")
    batches = {"fall": fall.values.T, "error": before["mse"].values.T}
    return jackknife(batches, lambda means: means["fall"] / means["error"]).T


def effects(results: Results) -> dict[str, Effects]:
    """Every question's effects."""
    terms = measured(results)
    joint, separate = (terms.sel(layer=layer) for layer in ("joint", "separate"))
    apart = joint - separate
    overlap, overlap_alone = (1 - one["subspaces"].mean("replicate") for one in (joint, separate))
    made = {
        "subspaces": share(apart["subspaces"].values, size=(overlap / overlap_alone - 1).values),
        "outputs": share(apart["outputs"].values),
    }
    for control in CONTROLS:
        fall = {name: falls(terms, control, name) for name in (*CHANGES, "variance", "alone")}
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
    selectivity = measured(results)["selectivity"].sel(layer="joint").mean("replicate")
    return drawn_values(results, "noise_sd").assign(selectivity=selectivity.values)


def panels(results: Results) -> xr.Dataset:
    """Means over seeds: changes from each layer to the one trained together, and what layers have.

    ``change`` is that of a term over the layer's error; ``selectivity`` is n_eff/n, ``subspaces``
    the index of the key subspaces.
    """
    terms = measured(results)
    change = []
    for layer in terms["layer"].values:
        change.append([-falls(terms, layer, name).mean(1) for name in CHANGES])
    means = terms[["selectivity", "subspaces"]].mean("replicate")
    means["change"] = ("layer", "term", "problem"), change
    return means.assign_coords(term=[*CHANGES])


def changes_table(panels: Panels) -> str:
    """Medians and quartiles of the changes of the error and its terms, as a Markdown table."""
    maps = panels.parameters["maps"].to_numpy()
    lines = []
    for kind, layer in product(("averaged", "trained"), (*CONTROLS, "joint")):
        shown = panels.arrays.sel(layer=layer).isel(problem=maps == kind)
        line = {
            "maps of values": kind,
            "compared with": "(together)" if layer == "joint" else layer,
            "problems": str(shown.sizes["problem"]),
        }
        for name, title in CHANGES.items():
            change = shown["change"].sel(term=name).values
            line[title] = "–" if layer == "joint" else _quartiles(change)
        line["n_eff/n"] = _quartiles(shown["selectivity"].values)
        lines.append(line)
    return markdown_table(lines)


def _quartiles(values: np.ndarray) -> str:
    if not len(values):
        return "–"
    return quartiles_in_words(tuple(np.quantile(values, (0.25, 0.5, 0.75))))
