"""Open directions less claim and formula, recovery, shares, and indices along a gauge orbit."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims.diversity import DEFINITIONS, correlation, normalised_errors
from sims.effects import Effect, Families, of_batches
from sims.study.results import Results

from .layers import CONTENTS, free_layers

PARTS: dict[str, str] = {"all heads": "joint", "one head": "single"}


def effects(results: Results) -> Families:
    """All families."""
    return {**free(results), **bound(results), **recovery(results), **orbit(results)}


def free(results: Results) -> Families:
    """Counts of free heads less n(H − 1)d_k, and less the formula; and whether gates close any."""
    own, law = results.estimates["free"], results.prediction("free")
    layers = free_layers(results.settings)
    families: Families = {"free heads less the formula": [], "gates close none, free heads": []}
    for words, part in PARTS.items():
        counts, laws = own[part].values, law[part].values
        families["free heads less the formula"] += [
            Effect(f"{words}, {name}", values=counts[:, place] - laws[place])
            for place, name in enumerate(layers)
        ]
        families[f"{words} less the claim"] = [
            Effect(name, values=counts[:, place] - claimed(layer), at={"regime": regime(layer)})
            for place, (name, layer) in enumerate(layers.items())
            if layer["gates"] == "none" and layer["heads"] > 1
        ]
    names = list(layers)
    for place, (name, layer) in enumerate(layers.items()):
        if layer["gates"] != "generic":
            continue
        other = own["joint"].values[:, names.index(name.replace("gates generic", "gates none"))]
        # Where there was one to close.
        if np.all(other > 0):
            kept = 1.0 * (own["joint"].values[:, place] >= other)
            families["gates close none, free heads"].append(Effect(name, values=kept))
    return families


def claimed(layer: Mapping[str, Any]) -> int:
    """n(H − 1)d_k."""
    return int(layer["n"] * (layer["heads"] - 1) * layer["width"])


def regime(layer: Mapping[str, Any]) -> str:
    """The kind of W_O by its rank q: d_k, all of H d_k, or any other."""
    total, width, d = layer["heads"] * layer["width"], layer["width"], layer["d"]
    kind = layer["kind"]
    rank = min(width if kind == "repeated" else total, d) - (kind == "deficient")
    if rank == width:
        return "rank d_k"
    return "full row rank" if rank == total else "other rank"


def bound(results: Results) -> Families:
    """Counts of heads that are not free less the formula, and whether gates close some, or all."""
    counts = results.estimates["content"]["bound"].values
    gaps = counts - results.prediction("content")["bound"].values
    families: Families = {"other heads less the formula": [Effect("all", values=gaps)]}
    for place, content in enumerate(CONTENTS):
        without, gated = counts[:, place].T
        kept = 1.0 * (gated >= without)
        families[f"gates close none, {content}"] = [Effect(content, values=kept)]
        families[f"open with gates, {content}"] = [Effect(content, values=gated)]
    return families


def recovery(results: Results) -> Families:
    """Errors of recovery in units of rounding; twins of heads; shares of parameters."""
    full, short = (
        results.estimates[f"recovery, {kind}"] for kind in ("full row rank", "plain sum")
    )
    families: Families = {
        "recovered": [Effect("full row rank", values=full["recovered"].values)],
        "no twins, full row rank": [Effect("full row rank", values=without_twins(full))],
        "no twins, plain sum": [Effect("plain sum", values=without_twins(short))],
        "share over the formula": [],
    }
    own, law = results.estimates["parameters"], results.prediction("parameters")
    for reading in ("token", "table"):
        shares = own[reading].values[0]
        families[f"share, {reading}"] = [
            Effect(f"d_k = {width}", float(share), at={"width": float(width)})
            for width, share in zip(own["width"].values, shares, strict=True)
        ]
        gaps = shares / law[reading].values - 1
        families["share over the formula"].append(Effect(reading, values=gaps))
    return families


UNITS, APART = 100.0, 0.1
"""Rounding of a mix, in units; and how far two sets of heads have to be apart to be two."""


def without_twins(own: xr.Dataset) -> np.ndarray:
    """1 in every draw in which no other set of heads with the same mix was found, else 0."""
    found = (own["mix"].values < UNITS) & (own["moved"].values > APART)
    return np.asarray(1.0 * ~found)


VERSIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "total": correlation,
    "errors": normalised_errors,
}
"""What indices are made of: correlations of heads' estimates, and products of their errors."""


def moments(results: Results) -> dict[str, np.ndarray]:
    """Covariances of heads and mean products of errors, leave-one-batch-out, (B, factor, H, H)."""
    own = results.estimates["orbit"]
    first, second, products = (own[name].values for name in ("first", "second", "products"))
    count = len(first)

    def others(values: np.ndarray) -> np.ndarray:
        return np.asarray((values.sum(0) - values) / (count - 1))

    mean = others(first)
    squares = np.einsum("bsqh,bsqg->bshg", mean, mean) / mean.shape[2]
    return {"total": others(second) - squares, "errors": others(products)}


def indices(results: Results) -> dict[tuple[str, str], np.ndarray]:
    """Every index along the orbit, leave-one-batch-out, (B, factor)."""
    found = moments(results)
    return {
        (definition, version): index(matrix(found[version]))
        for version, matrix in VERSIONS.items()
        for definition, index in DEFINITIONS.items()
    }


def orbit(results: Results) -> Families:
    """What the orbit does to the error and to every index, from its least factor to its largest."""
    own = results.estimates["orbit"]["error"].values
    errors = own / own[:, :1] - 1
    found, moved = moments(results)["total"], []
    for (definition, version), values in indices(results).items():
        rise = values[:, -1] - values[:, 0]
        count = len(rise)
        # Pseudo-values of the jackknife: a function of all batches, less that of all but one.
        pseudo = rise.mean() - (count - 1) * (rise - rise.mean())
        moved.append(of_batches(f"{definition}, {version}", pseudo, "orbit"))
    heads = found.shape[-1]
    trace = np.trace(found, axis1=-2, axis2=-1)
    variance = trace / heads
    covariance = (found.sum((-2, -1)) - trace) / (heads * (heads - 1))
    pooled = variance / heads + (1 - 1 / heads) * covariance
    return {
        "index along the orbit": moved,
        "error along the orbit": [Effect("error", values=errors)],
        "fall of the error along the orbit": [of_batches("error", -errors[:, -1], "orbit")],
        "variance and covariance": [Effect("v/H + (1 − 1/H)c", values=pooled / pooled[:, :1] - 1)],
    }
