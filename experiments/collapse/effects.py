"""Changed ranks, steps of log-residuals, growth of log-odds, tails, and what symmetries do."""

import itertools
from collections.abc import Mapping

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, ratio
from sims.study.results import Results

from .cases import REGIMES

SMALL = np.log(0.03)
"""log ρ below which a step counts as one near collapse."""
CUBIC = 3.0
DOUBTFUL = 0.005
"""Share of sets up to which a rank may be in doubt; beyond, the row is open."""
COLLAPSED_BY = 6
"""Layers after which tokens are asked to have collapsed."""


def effects(results: Results) -> Families:
    """All families: ranks, depth, residual stream, span, symmetries."""
    return {**norms(results), **depths(results), **streams(results), **symmetries(results)}


def certain(gaps: np.ndarray) -> np.ndarray:
    """Gaps of ranks without the sets whose numbers leave doubt, if these are few."""
    doubtful = np.isnan(gaps)
    return gaps if doubtful.mean() > DOUBTFUL else gaps[~doubtful]


def norms(results: Results) -> Families:
    """Changes of rank by regime, ranks less their formulas, and the search."""
    families: Families = {
        "LayerNorm less its formula": [],
        "RMSNorm less its formula": [],
        "matrix rank less its formula": [],
        "matrix rank, fewer tokens": [],
        "matrix rank, as many tokens or more": [],
    }
    for regime in REGIMES:
        point = f"norm, {regime}"
        own, law = results.estimates[point], results.prediction(point)
        change = (own["layer"] - own["before"]).values
        families[f"affine rank, {regime}"] = [Effect(regime, values=certain(change))]
        for norm, name in (
            ("LayerNorm", "layer"),
            ("RMSNorm", "rms"),
            ("matrix rank", "matrix_layer"),
        ):
            gaps = np.asarray(own[name].values - law[name].values)
            families[f"{norm} less its formula"].append(Effect(regime, values=certain(gaps)))
        if regime in ("fewer tokens", "as many tokens", "many tokens"):
            which = "fewer tokens" if regime == "fewer tokens" else "as many tokens or more"
            gaps = (own["matrix_layer"] - own["matrix"]).values
            families[f"matrix rank, {which}"].append(Effect(regime, values=certain(gaps)))
    found, law = results.estimates["search"], results.prediction("search")
    either = found["lost"].values, found["gained"].values
    families["search"] = [
        Effect(f"{n} × {d}", values=np.maximum(*either)[:, place])
        for place, (n, d) in enumerate(results.settings["search"]["sizes"])
    ]
    known = np.isfinite(law["lost"].values)
    families["search less the formula"] = [
        Effect(name, values=np.asarray(found[name].values.max(0) - law[name].values)[known])
        for name in ("lost", "gained")
    ]
    return families


def logs(results: Results, point: str) -> np.ndarray:
    """log ρ after every layer, (B, layers + 1)."""
    return np.asarray(results.estimates[point]["log_residual"].values)


def steps(results: Results, point: str) -> list[Effect]:
    """The ratio of one step of log ρ to the step before, less 3, where ρ is small before both."""
    own, out = logs(results, point), []
    differences = np.diff(own, axis=1)
    for layer in np.flatnonzero(own.mean(0)[:-2] < SMALL):
        values = ratio(differences[:, layer + 1], differences[:, layer]) - CUBIC
        out.append(of_batches(f"{point}, layer {layer}", values, point))
    return out


def late(results: Results, point: str) -> np.ndarray:
    """The slope of log ρ over the second half of the layers, (B,)."""
    own = logs(results, point)
    half = (own.shape[1] - 1) // 2
    return np.asarray((own[:, -1] - own[:, half]) / (own.shape[1] - 1 - half))


def depths(results: Results) -> Families:
    """Orders of collapse by regime, the share that has collapsed, and the map of one layer."""
    names = results.settings["depths"]
    plain = [name for name, own in names.items() if "scale" in own]
    fixed = {name: float(results.prediction(name)["rate"]) for name in ("causal", "bias")}
    shares = {
        name: 1 - results.estimates[name]["collapsed"].values[:, COLLAPSED_BY] for name in plain
    }
    layer, law = results.estimates["one layer"], results.prediction("one layer")
    gaps = np.linalg.norm(layer["after"].values - law["after"].values, axis=(2, 3))
    gaps = gaps / np.linalg.norm(law["after"].values, axis=(2, 3))
    return {
        "order, plain": [e for name in plain for e in steps(results, name)],
        "order, positions in the input": steps(results, "positions"),
        "order, mask or bias": [e for name in fixed for e in steps(results, name)],
        "not collapsed": [
            Effect(name, values=share, at={"scale": names[name]["scale"]})
            for name, share in shares.items()
        ],
        "log₁₀ ρ over −6": [
            of_batches(
                name,
                logs(results, name)[:, COLLAPSED_BY] / np.log(10) + 6,
                name,
                at={"scale": names[name]["scale"]},
            )
            for name in plain
        ],
        "late rate": [
            of_batches(name, late(results, name) / rate - 1, name, at={"regime": name})
            for name, rate in fixed.items()
        ],
        "one layer": [
            of_batches(f"ρ = {size:g}", gaps[:, place], "one layer", x=size)
            for place, size in enumerate(results.settings["one_layer"]["residual"])
        ],
        "one layer over ρ²": [
            of_batches(f"ρ = {size:g}", gaps[:, place] / size**2, "one layer")
            for place, size in enumerate(results.settings["one_layer"]["residual"])
        ],
        "simplex": [
            simplex(results, name)
            for name, w in results.settings["simplex"]["values"].items()
            if w is None
        ],
        "simplex in the residual stream": [
            simplex(results, name)
            for name, w in results.settings["simplex"]["values"].items()
            if w is not None
        ],
    }


def simplex(results: Results, point: str) -> Effect:
    """Relative gaps of the sizes of simplex tokens to the recursion."""
    own, law = results.estimates[point]["ratio"].values, results.prediction(point)["ratio"].values
    return Effect(point, values=own / law - 1)


def streams(results: Results) -> Families:
    """Growth of log-odds, what doubling the depth adds, ranks that are kept, tails, and spans."""
    grown, normed, added = [], [], {"whole": [], "scaled": []}  # type: ignore[var-annotated]
    for name, own in results.settings["depths"].items():
        if "skip" not in own:
            continue
        odds = results.estimates[name]["log_odds"].values
        law, depth = float(results.prediction(name)["growth"]), own["depth"]
        if own.get("uniform"):
            values = (odds[:, -1] - odds[:, 0]) / depth / law - 1
            grown.append(of_batches(name, values, name))
        elif "family" in own:
            added[own["family"]].append((name, odds[:, -1] - odds[:, 0]))
        else:
            first = int(np.argmax(logs(results, name).mean(0) < SMALL))
            values = (odds[:, -1] - odds[:, first]) / (depth - first) / law - 1
            normed.append(of_batches(name, values, name))
    doubled = {
        f"doubled depth, {family}": [
            of_batches(f"{first} to {second}", more - less, (first, second))
            for (first, less), (second, more) in itertools.pairwise(rows)
        ]
        for family, rows in added.items()
    }
    kept = results.estimates["kept"]["loss"].values
    ranks = {
        f"rank lost, {words}": [Effect(words, values=kept[:, row, column])]
        for words, row, column in (
            ("residual, full W", 0, 0),
            ("residual, narrow W", 0, 1),
            ("attention alone, full W", 1, 0),
            ("attention alone, narrow W", 1, 1),
        )
    }
    tails = [tail(results, point) for point in results.points if point.startswith("tail")]
    own = {"growth": grown, "growth under a norm": normed, "tails": tails}
    return {**own, **doubled, **ranks, **spans(results)}


def tail(results: Results, point: str) -> Effect:
    """The exponent of P(σ_min < t) between two values of t, less the law's.

    NaN, an open row, where so few draws were made that none but those of one batch is below.
    """
    shares = results.estimates[point]["share"]
    low, high = shares["below"].values

    def exponent(means: Mapping[str, np.ndarray]) -> np.ndarray:
        seen = np.where(means["low"] > 0, means["low"], np.nan)
        return np.log(means["high"] / seen) / np.log(high / low)

    values = jackknife({"low": shares.values[:, 0], "high": shares.values[:, 1]}, exponent)
    return of_batches(point, values - float(results.prediction(point)["exponent"]), point)


def spans(results: Results) -> Families:
    """Ranks and shares of energy after layers and MLPs."""
    own, law = results.estimates["span"], results.prediction("span")
    rank = results.settings["span"]["rank"]
    return {
        "outside, any W": [of_batches("any W", own["generic"].values, "span")],
        "outside, W = wI": [Effect("W = wI", values=own["scalar"].values)],
        "outside less the law": [
            of_batches("any W", own["generic"].values - float(law["generic"]), "span")
        ],
        "rank after a layer": [
            Effect("layer", values=own["layer_rank"].values - law["layer_rank"].values)
        ],
        "rank after an MLP": [Effect("MLP", values=own["mlp"].values - law["mlp"].values)],
        "not raised by an MLP, distinct tokens": [
            Effect("distinct", values=1.0 * (own["mlp"].values <= rank))
        ],
        "not raised by an MLP, equal tokens": [
            Effect("equal", values=1.0 * (own["equal"].values <= 0))
        ],
    }


def symmetries(results: Results) -> Families:
    """Outputs under each gauge, and what is left of each collapse once it is broken."""
    spectra, law = results.estimates["spectra"]["log_ratio"], results.prediction("spectra")
    above = spectra.sel(mask="none") - law["log_ratio"]
    fall = spectra.isel(tokens=0) - spectra.isel(tokens=-1)
    deficit = results.estimates["entropies"]["deficit"]
    last = deficit.isel(scale=-1)
    return {
        "gauges": [Effect("all four", values=results.estimates["gauges"]["gap"].values)],
        "depth, with positions": [of_batches("bias", -late(results, "bias"), "bias")],
        "width, with a mask": [of_batches("causal", fall.sel(mask="causal").values, "spectra")],
        "width, without a mask": [
            of_batches(f"n = {n}", np.exp(above.values[:, place]) - 1, "spectra", at={"n": int(n)})
            for place, n in enumerate(above["tokens"].values)
        ],
        "head channels, with gates": [
            Effect("gates", values=results.estimates["channels"]["open"].values[:, 1])
        ],
        "entropy, with normed queries and keys": [
            of_batches("normed", last.sel(scores="normed").values, "entropies")
        ],
        "entropy, without": [of_batches("plain", last.sel(scores="plain").values, "entropies")],
    }
