"""Gaps of passes and of theory, counts against formulas, and what merging does to the error."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, jackknife
from sims.study.results import Results

from .drawn import Case, cases

EPS = 2.0**-52
TERMS = ("squared_bias", "noise_variance", "signal_variance", "covariance", "ensemble_variance")
LEAST_STRIDE = 2


def effects(results: Results) -> Families:
    """All families; see ``experiment.yaml``."""
    return {**of_passes(results), **of_sizes(results), **of_errors(results)}


def of_passes(results: Results) -> Families:
    """Differences between passes, in units of rounding but for ``inside``."""
    strides = results.settings["strides"]
    at = {stride: results.estimates[f"passes s={stride}"] for stride in strides}

    def gaps(name: str, stride: int, **facts: float | str) -> Effect:
        values = at[stride][name].values
        label = ", ".join([f"s = {stride}", *map(str, facts.values())])
        return Effect(label, values=values, at={"stride": stride, **facts})

    sums = [
        gaps(f"sum {gates}", stride, gates=gates)
        for gates in ("printed", "normalised")
        for stride in strides
    ]
    sums += [
        gaps(f"sum {gates}, {chunks}", stride, gates=gates, chunks=chunks)
        for gates in ("mean", "half")
        for chunks in ("whole", "partial")
        for stride in strides
        if f"sum {gates}, {chunks}" in at[stride]
    ]
    merging = [stride for stride in strides if stride >= LEAST_STRIDE]
    latent = results.estimates["latent attention"]
    return {
        "parallel and step by step": [
            gaps(f"parallel {gates}", stride, gates=gates)
            for gates in ("printed", "normalised")
            for stride in strides
        ],
        "printed rule of opening": [gaps("opening", stride) for stride in strides],
        "latent attention": [
            Effect(gates, values=latent[gates].values, at={"gates": gates})
            for gates in ("printed", "ones", "normalised")
        ],
        "whole chunks first, inside": [
            of_batches(
                f"s = {stride}",
                at[stride]["inside"].mean("replicate").values,
                f"passes s={stride}",
            )
            for stride in merging
        ],
        "whole chunks first, at ends": [gaps("at ends", stride) for stride in merging],
        "sum of weights": sums,
    }


def counted(results: Results, name: str) -> np.ndarray:
    """A count by stride, last of MHA."""
    return results.estimates["sizes"][name].values[0, 0]


def of_sizes(results: Results) -> Families:
    """Counts against formulas, against MHA and against what is reported."""
    sizes, theory = results.settings["sizes"], results.prediction("sizes")
    strides = sizes["strides"]
    elements, products = counted(results, "elements"), counted(results, "products")
    ratio = 2 * sizes["heads"] * sizes["width"] / (sizes["latent"] + sizes["rotary"])
    reported = results.settings["reported"]
    labels = [*(f"s = {stride}" for stride in strides), "MHA"]

    def off(name: str) -> list[Effect]:
        gaps = counted(results, name) / theory[name].values - 1
        return [Effect(label, values=np.array([v])) for label, v in zip(labels, gaps, strict=True)]

    trained = counted(results, "training")
    pair = elements[strides.index(2)] / sizes["tokens"] / sizes["width"]
    memory = {1: ("unmerged", reported["mla"])} | {
        int(stride): ("merged", value) for stride, value in reported["merged"].items()
    }
    return {
        "elements of the cache": off("elements"),
        "elements per token over 2.5 d_h": [Effect("s = 2", abs(pair / 2.5 - 1))],
        "cache of MHA over this": [
            Effect(f"s = {stride}", elements[-1] / elements[strides.index(stride)] - printed)
            for stride, printed in ((2, 7.1), (3, 10.7), (4, 14.2))
        ],
        "products of a step": off("products"),
        "products of a step over those of MHA": [
            Effect(f"s = {stride}", value / products[-1] - 1, at={"stride": stride})
            for stride, value in zip(strides, products[:-1], strict=True)
        ],
        "products of training over 1/s of those at s = 1": [
            Effect(f"s = {stride}", stride * value / trained[0] - 1)
            for stride, value in zip(strides[1:], trained[1:-1], strict=True)
        ],
        "reported memory over the cache's ratio": [
            Effect(
                f"s = {stride}",
                reported["mha"] / value / (ratio * stride) - 1,
                at={"layer": layer},
            )
            for stride, (layer, value) in memory.items()
        ],
        "height that a wave loses": [
            Effect(f"ω = {omega}", float(value))
            for omega, value in zip(results.settings["waves"], theory["lost"].values, strict=True)
        ],
    }


def grid(results: Results) -> dict[tuple[str, str, int, float], str]:
    """(kernel, design, stride, bandwidth) to the name of the point."""
    out = {}
    for point, problem in results.problems.items():
        kernel = problem["heads"]["kernel"]
        name = "softmax" if kernel["scores"] == "dot" else "gaussian"
        design = str(results.coordinates[point]["design"])
        out[name, design, kernel["stride"], problem["heads"]["bandwidth"]] = point
    return out


def of_errors(results: Results) -> Families:
    """Theory against simulation for every term, and merged heads against unmerged ones."""
    places = grid(results)
    own = {
        f"gap of {term}": [term_gap(results, place, point, term) for place, point in places.items()]
        for term in TERMS
    }
    drawn = drawn_cases(results)
    rises = [
        drawn_ratio(results, "drawn_mse", case, case._replace(stride=1))
        for case in drawn
        if case.stride > 1 and case._replace(stride=1) in drawn
    ]
    same_limit = [
        (place, point, other, results.prediction(other))
        for place, point in places.items()
        if place[0] == "softmax" and place[2] == LEAST_STRIDE
        for unmerged, other in places.items()
        if unmerged[:3] == ("softmax", place[1], 1) and equivalent(results, point, other)
    ]
    b = base(results, "softmax")
    return own | {
        "rise of the error": rises,
        "limit at the equivalent temperature": [
            Effect(
                f"{place[1]}, b = {place[3]:.3g}",
                values=(
                    (results.prediction(point)["limit"] - theory["limit"]).values
                    / np.abs(theory["limit"].values).max()
                    / EPS
                ),
            )
            for place, point, _, theory in same_limit
        ],
        "squared bias at the equivalent temperature": [
            ratio(results, point, other, "squared_bias", {"design": place[1]})
            for place, point, other, _ in same_limit
            if place[3] == b
        ],
        "inflation of noise": [
            inflation(results, point, other) for _, point, other, _ in same_limit
        ],
        "variance over that at twice the temperature": [
            drawn_ratio(results, "drawn_variance", case, other)
            for case in drawn
            for other in drawn
            if case.design == "iid"
            and (case.kernel, case.stride) == ("softmax", LEAST_STRIDE)
            and other == case._replace(stride=1, bandwidth=2**0.5 * case.bandwidth)
        ],
    }


def drawn_cases(results: Results) -> list[Case]:
    """What was compared on problems drawn anew."""
    usual = results.problems[next(iter(results.problems))]["heads"]["bandwidth"]
    return cases(results.settings["drawn"], usual)


def drawn_ratio(results: Results, term: str, case: Case, other: Case) -> Effect:
    """A term's mean over drawn problems at one case over that at another, less 1."""
    data = results.estimates["drawn problems"][term]
    batches: Batches = {
        name: data.sel(case=of.name).values for name, of in (("one", case), ("two", other))
    }
    values = jackknife(batches, lambda terms: terms["one"] / terms["two"]) - 1
    facts: dict[str, float | str] = {
        "kernel": case.kernel,
        "design": case.design,
        "stride": case.stride,
        "bandwidth": case.bandwidth,
    }
    return of_batches(
        f"{case.name} over {other.name}",
        values,
        "drawn problems",
        unit="sets of keys of drawn problems",
        at=facts,
    )


def base(results: Results, kernel: str) -> float:
    """The bandwidth at which most points of a kernel are."""
    found = [bandwidth for name, _, _, bandwidth in grid(results) if name == kernel]
    return max(found, key=found.count) if found else float("nan")


def equivalent(results: Results, merged: str, unmerged: str) -> bool:
    """Whether the unmerged heads are at τ/v, v the variance of a slot."""
    design = results.problems[merged]["design"]
    variance = (1 + design["persistence"]) / 2
    one, other = (results.problems[p]["heads"]["bandwidth"] for p in (merged, unmerged))
    known = design["kind"] == "autoregressive"  # else ρ_1 is not the persistence
    return known and bool(np.isclose(one**2 / variance, other**2, rtol=1e-9))


def term_gap(results: Results, place: tuple[str, str, int, float], point: str, term: str) -> Effect:
    """Simulation over theory, less 1."""
    theory, (kernel, design, stride, bandwidth) = results.prediction(point), place
    facts: dict[str, float | str] = {
        "kernel": kernel,
        "design": design,
        "stride": stride,
        "bandwidth": bandwidth,
        "n_third": float(theory["n_third"].min()),
    }
    values = results.estimates[point][term].values / float(theory[term]) - 1
    return of_batches(point, values, point, at=facts)


def ratio(
    results: Results, point: str, other: str, term: str, facts: dict[str, float | str]
) -> Effect:
    """A term at one point over that at another, less 1, over common draws."""
    batches: Batches = {
        name: results.estimates[p][term].values for name, p in (("one", point), ("two", other))
    }
    values = jackknife(batches, lambda terms: terms["one"] / terms["two"]) - 1
    return of_batches(point, values, (point, other), at=facts)


def inflation(results: Results, point: str, other: str) -> Effect:
    """Simulated noise of merged over unmerged heads of one limit, over the law's ratio, less 1."""
    theory = results.prediction(other)
    law = float(theory["retuned"] / theory["noise_variance"])
    values = jackknife(
        {n: results.estimates[p]["noise_variance"].values for n, p in (("a", point), ("b", other))},
        lambda terms: terms["a"] / terms["b"],
    )
    facts = {"n_third": float(results.prediction(point)["n_third"].min())}
    return of_batches(point, values / law - 1, (point, other), at=facts)
