"""Effects of training together, one number per problem: what moves apart, what is gained, how."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import jackknife, ratio
from sims.judgement.effects import Effects, outcome, share
from sims.judgement.summaries import quartiles_in_words
from sims.judgement.wording import markdown_table, percent
from sims.study.batches import drawn_values
from sims.study.panels import Panels
from sims.study.results import Results

PAIRS = {
    "identical": ("identical", "joint"),
    "separate": ("separate", "joint"),
    "identical, common": ("identical", "joint, common"),
    "separate, common": ("separate, common", "joint, common"),
    "sharper": ("joint, common", "joint"),
    "sharper, identical": ("identical", "identical, sharp"),
}
"""Name of a change to the layers before and after it."""
CHANGES = {
    "mse": "error",
    "bias": "squared bias",
    "own": "variance of the heads",
    "covariance": "covariance of the heads",
    "variance": "variance of the layer",
    "alone": "error of a head alone",
    "ambiguity": "ambiguity",
}
"""The error; the three terms that it is the sum of, and the sum of the last two; and the two whose
difference it is."""
TERMS = ("bias", "own", "covariance")
LEAST_SKILL = 0.02


def measured(results: Results) -> xr.Dataset:
    """Terms of each layer, each (layer, problem, replicate).

    Besides what was measured the squared ``bias``, and ``own``, what the heads' variances put into
    the layer's: ``mse = bias + own + covariance``; and ``ambiguity``: ``mse = alone − ambiguity``.
    """
    sizes = list(results.estimates.values())
    terms = xr.concat(sizes, "batch", data_vars="all", coords="minimal", compat="override")
    terms["bias"] = terms["mse"] - terms["variance"]
    terms["own"] = terms["variance"] - terms["covariance"]
    terms["ambiguity"] = terms["alone"] - terms["mse"]
    return terms.rename(batch="problem").transpose("layer", "problem", ...)


def fall_and_bases(
    terms: xr.Dataset, pair: str, name: str
) -> tuple[xr.DataArray, dict[str, xr.DataArray]]:
    """The fall of a term, and what it can be relative to.

    That is the layer's ``error`` and the ``term``, both before, and the ``ceiling`` of the fall. It
    is the term before; for the covariance, which is at least minus the heads' variances, plus
    these after.

    Args:
        terms: of the layers.
        pair: the change, a name of :data:`PAIRS`.
        name: the term.
    """
    before, after = (terms.sel(layer=layer) for layer in PAIRS[pair])
    more = after["own"] if name == "covariance" else 0
    bases = {"error": before["mse"], "term": before[name], "ceiling": before[name] + more}
    return before[name] - after[name], bases


def falls(terms: xr.Dataset, pair: str, name: str, base: str = "error") -> np.ndarray:
    """The fall of a term over a base, as pseudo-values of a ratio of means, (N, seeds).

    Their mean is the ratio of the means over seeds.
    """
    fall, bases = fall_and_bases(terms, pair, name)
    return ratio(fall.values, bases[base].values, axis=1)


def reinvested(terms: xr.Dataset, control: str) -> np.ndarray:
    """What is re-invested, over the control's error, as pseudo-values (N, seeds).

    That is the least of three amounts: the variance that is saved at the n_eff/n of identical
    heads, the variance that sharper heads add to it, and the squared bias that they remove.
    """
    saved, bases = fall_and_bases(terms, f"{control}, common", "variance")
    spent, _ = fall_and_bases(terms, "sharper", "variance")
    returned, _ = fall_and_bases(terms, "sharper", "bias")
    amounts = {"saved": saved, "spent": -spent, "returned": returned, "error": bases["error"]}
    batches = {name: draws.values.T for name, draws in amounts.items()}

    def least(means: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.minimum.reduce([*means.values()][:-1]) / means["error"]

    return jackknife(batches, least).T


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
    for pair in PAIRS:
        fall = {name: falls(terms, pair, name) for name in CHANGES}
        components = {title: -fall[name].mean(1) for name, title in CHANGES.items()}
        components.pop("error")
        bias, covariance = (falls(terms, pair, name, "ceiling") for name in ("bias", "covariance"))
        asked = {
            "shares of ceilings": covariance - bias,
            "covariance against bias": fall["covariance"] - fall["bias"],
            "gain": fall["mse"],
            "variance": fall["variance"],
            "alone": -fall["alone"],
        }
        for name, draws in asked.items():
            made[f"{name}, {pair}"] = replace(
                outcome(draws), size=-fall["mse"].mean(1), components=components
            )
    for control in ("identical", "separate"):
        draws = reinvested(terms, control)
        made[f"re-invested, {control}"] = outcome(draws, size=draws.mean(1))
    return made


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values of each problem, n_eff/n of the heads trained together, and the ``skill``.

    That is the least share of the target's variance that a trained layer explains.
    """
    means = measured(results).mean("replicate")
    skill = 1 - means["mse"] / means["zero"]
    return drawn_values(results, "noise_sd").assign(
        selectivity=means["selectivity"].sel(layer="joint").values,
        skill=skill.sel(layer=["joint", "separate", "identical"]).min("layer").values,
    )


panels = measured
"""The arrays of figure and caption."""


def skilled(panels: Panels, maps: str) -> xr.Dataset:
    """Terms of the layers with these maps of values that explain enough."""
    drawn = panels.parameters
    shown = (drawn["maps"] == maps) & (drawn["skill"] >= LEAST_SKILL)
    return panels.arrays.isel(problem=shown.to_numpy())


def changes_table(panels: Panels) -> str:
    """Changes of the error and its terms, as a Markdown table.

    Medians with quartiles over the error before; then medians over the term and over the ceiling.
    """
    lines = []
    for maps, pair in product(("averaged", "trained"), PAIRS):
        terms = skilled(panels, maps)
        ends = []
        for layer in PAIRS[pair]:
            selectivity = terms["selectivity"].sel(layer=layer).mean("replicate").median().item()
            ends.append(f"{layer} ({percent(selectivity)})")
        line = {"maps of values": maps, "from and to (n_eff/n)": "; ".join(ends)}
        for name, title in CHANGES.items():
            line[title] = _in_words(terms, pair, name)
        lines.append(line)
    return markdown_table(lines)


def _in_words(terms: xr.Dataset, pair: str, name: str) -> str:
    if not terms.sizes["problem"]:
        return "–"
    quartiles = np.quantile(-falls(terms, pair, name).mean(1), (0.25, 0.5, 0.75))
    words = [quartiles_in_words(tuple(quartiles))]
    for base in ("term", "ceiling") if name in TERMS else ():
        words.append(percent(np.median(-falls(terms, pair, name, base).mean(1))))
    return "; ".join(words)
