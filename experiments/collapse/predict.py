"""What the laws of depth say of the drawn problems, of growth, of ranks and of tails."""

import itertools

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory.neighbours import collapse, hidden, ranks

from .cases import REGIMES, near_collapse, token_sets


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """By the names of units; units on which theory says nothing have none."""
    settings, seed = experiment.settings, experiment.simulation.seed
    batches = range(experiment.simulation.batches)
    out = {
        f"norm, {regime}": norm_ranks([token_sets(regime, seed, b) for b in batches])
        for regime in REGIMES
    }
    out["search"] = smallest(settings["search"])
    for name, own in settings["depths"].items():
        if (law := depth_law(own, settings["tokens"])) is not None:
            out[name] = law
    layer = settings["one_layer"]
    after = [
        [
            collapse.near_collapse(*near_collapse(size, layer["n"], layer["d"], seed, b))
            for size in layer["residual"]
        ]
        for b in batches
    ]
    out["one layer"] = xr.Dataset({"after": (("drawn", "residual", "token", "feature"), after)})
    own = settings["simplex"]
    out |= {name: simplex(own, value) for name, value in own["values"].items()}
    for n, d in settings["tails"]["sizes"]:
        for name in ("residual", "attention alone"):
            exponent = float(ranks.tail_exponent(n, d))
            out[f"tail, {name}, n={n} d={d}"] = xr.Dataset({"exponent": exponent})
    out["span"] = spans(settings["span"])
    spectra = settings["symmetry"]["spectra"]
    ratios = [np.log(collapse.spectral_ratio(n, spectra["score_sd"])) for n in spectra["tokens"]]
    return out | {"spectra": xr.Dataset({"log_ratio": ("tokens", ratios)})}


def norm_ranks(batches: list[list[np.ndarray]]) -> xr.Dataset:
    """Ranks after both norms by their formulas, NaN where a number leaves doubt."""

    def known(found: ranks.NormRanks, number: int) -> float:
        return float(number) if found.clear else np.nan

    rows = []
    for sets in batches:
        layer, rms = (
            [law(tokens) for tokens in sets]
            for law in (ranks.layer_norm_ranks, ranks.rms_norm_ranks)
        )
        rows.append(
            [
                [known(r, r.after) for r in layer],
                [known(r, r.after) for r in rms],
                [known(r, r.linear) for r in layer],
            ]
        )
    parts = np.moveaxis(np.array(rows), 1, 0)
    names = ("layer", "rms", "matrix_layer")
    return xr.Dataset(
        {name: (("drawn", "case"), values) for name, values in zip(names, parts, strict=True)}
    )


def smallest(space: dict) -> xr.Dataset:  # type: ignore[type-arg]
    """Whether the formula has any loss, any gain, among all tokens of entries −1, 0, 1, by size.

    Sizes of more than nine numbers are too many sets for that, and are left open.
    """
    lost, gained = [], []
    for n, d in space["sizes"]:
        own = [t for t in itertools.product((-1, 0, 1), repeat=d) if len(set(t)) > 1]
        sets = itertools.combinations_with_replacement(own, n) if n * d <= LARGEST else ()
        changes = {r.after - r.before for r in map(ranks.layer_norm_ranks, sets)}
        known = 1.0 if n * d <= LARGEST else np.nan
        lost.append(known * any(change < 0 for change in changes))
        gained.append(known * any(change > 0 for change in changes))
    return xr.Dataset({"lost": ("space", lost), "gained": ("space", gained)})


LARGEST = 9
"""Numbers in a set of tokens, n·d, up to which all sets are tried."""


def depth_law(regime: dict, tokens: dict) -> xr.Dataset | None:  # type: ignore[type-arg]
    """The growth of log-odds a layer, or the late rate of log ρ; None where neither is known."""
    n, dimension = tokens["n"], regime.get("d", tokens["d"])
    if "skip" in regime:
        variance = collapse.scaled_variance(regime["variance"], regime.get("branch", 1.0))
        law = collapse.normed_growth if regime.get("norm") else collapse.growth
        return xr.Dataset({"growth": law(dimension, variance)})
    place = np.arange(n)
    if "slope" in regime:
        kernel = np.exp(-regime["slope"] * np.abs(place[:, None] - place))
    elif regime.get("causal"):
        kernel = np.tril(np.ones((n, n)))
    else:
        return None
    return xr.Dataset({"rate": collapse.late_rate(kernel / kernel.sum(1, keepdims=True))})


def simplex(p: dict, value: float | None) -> xr.Dataset:  # type: ignore[type-arg]
    """Sizes of simplex tokens beside their mean."""
    n, scale, layers = p["n"], p["scale"], p["layers"]
    if value is None:
        law = hidden.simplex_sizes(hidden.Simplex(n, p["size"], scale, 1.0), layers)
    else:
        # Under RMSNorm a token of n + 1 features has the norm √(n + 1).
        law = collapse.simplex_ratios(p["size"], scale, n, layers, value, (n + 1) ** 0.5)
    return xr.Dataset({"ratio": ("layer", law)})


def spans(p: dict) -> xr.Dataset:  # type: ignore[type-arg]
    """Ranks after generic layers and MLPs, and the share of energy that leaves the row space."""
    layer = [
        [ranks.attention_rank(n, d, few, heads, width, skip) for skip in (True, False)]
        for n, d, few, heads, width in p["sizes"]
    ]
    mlp = [ranks.mlp_rank(p["n"], p["d"], inner) for inner in p["inner"]]
    return xr.Dataset(
        {
            "layer_rank": (("sizes", "stream"), np.array(layer, float)),
            "mlp": ("inner", np.array(mlp, float)),
            "generic": ranks.energy_share(p["rank"], p["d"]),
        }
    )
