"""Errors against closed forms, exponents, shares of draws and heads, terms of compressed heads."""

from collections.abc import Iterator

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

Facts = dict[str, float | str]
TERMS = ("squared_bias", "variance", "covariance", "mse")
CHANGES = ("kq_any", "turned", "keys_scaled", "deficient", "centred", "balanced")
ROWS = ("tanh", "euclidean", "frobenius", "attained")


def effects(results: Results) -> Families:
    """One family a claim or pair of claims."""
    return {
        **caches(results),
        **changes(results),
        **calibration(results),
        **heads(results),
        **bounds(results),
        **ensembles(results),
    }


def part(results: Results, name: str) -> list[str]:
    """Points of one part of the experiment."""
    return [point for point in results.points if results.coordinates[point]["part"] == name]


def by_rank(results: Results, name: str) -> Iterator[tuple[str, int, int]]:
    """Every point of a part, with the place of each rank and the rank."""
    for point in part(results, name):
        for place, rank in enumerate(results.estimates[point]["rank"].values):
            yield point, place, int(rank)


def sure(label: str, values: np.ndarray) -> Effect:
    """Gaps of which every one has to be small, whatever was drawn."""
    return Effect(label, values=np.asarray(values))


def caches(results: Results) -> Families:
    """Score errors of caches of given second moments, and the effective keys behind them."""
    optimum, gap, closed, below, above, positive = [], [], [], [], [], []
    for point, place, rank in by_rank(results, "cache"):
        data, theory = results.estimates[point], results.prediction(point).isel(rank=place)
        best, rival = data["error"].values[:, 0, place], data["error"].values[:, 1, place]
        label, least = f"{point}, r = {rank}", float(theory["optimum"])
        optimum.append(sure(label, best - least))
        gap.append(sure(label, rival - best - float(theory["gap"])))
        if results.coordinates[point]["angle"] in ("0", "isotropic"):
            closed.append(sure(label, rival - best))
        else:
            positive.append(Effect(label, float(theory["keys_only"]) / least - 1))
        solver = data["solver"].values[:, place]
        below.append(sure(label, np.maximum(1 - solver / least, 0)))
        above.append(sure(label, np.maximum(solver / least - 1, 0)))
    example = [
        sure(p, results.estimates[p]["ratio"].values / float(results.prediction(p)["ratio"]) - 1)
        for p in part(results, "example")
    ]
    families = {
        "optimum": optimum,
        "gap": gap,
        "gap closed": closed,
        "solver below": below,
        "solver above": above,
        "gap where turned": positive,
        "example": example,
    }
    own = ("optimum", "keys_only", "optimum")
    for place, (method, law) in enumerate(zip(("KQ-SVD", "K-SVD", "Eigen"), own, strict=True)):
        families[f"effective keys, {method}"] = [
            used(results, point, place, rank_place, rank, law)
            for point, rank_place, rank in by_rank(results, "keys used")
        ]
    return families


def used(results: Results, point: str, place: int, rank_place: int, rank: int, law: str) -> Effect:
    """Gain of log n_eff over its law less 1, the law of Eigen by its own error."""
    theory = results.prediction(point).isel(rank=rank_place)
    share, gain = float(theory[law]), float(theory[f"{law}_gain"])
    if place == 2:
        cache = point.removeprefix("keys used ")
        error = float(results.estimates[cache]["error"].values[:, 2, rank_place].mean())
        share, gain = error, error * gain / float(theory[law])
    values = results.estimates[point]["gain"].values[:, place, rank_place] / gain - 1
    return of_batches(f"{point}, r = {rank}", values, point, at={"share": share})


def changes(results: Results) -> Families:
    """What changed coordinates, scales of keys against queries, and shared keys do."""
    data = results.estimates["coordinates"]
    families = {name: [sure(name, data[name].values)] for name in CHANGES}
    families["rivals, any coordinates"] = [
        of_batches("K-SVD and Eigen", data["rivals_any"].values, "coordinates"),
    ]
    families["Eigen, keys scaled"] = [
        of_batches("Eigen", data["joint_scaled"].values, "coordinates")
    ]
    limits = results.estimates["balance"]
    for side in ("to_keys", "to_queries"):
        families[side] = [
            of_batches(f"β = {beta:g}", limits[side].values[:, place], "balance", x=float(beta))
            for place, beta in enumerate(limits["balance"].values)
        ]
    groups = results.estimates["groups"]
    found = groups["together"].values
    families["groups, solver below"] = [sure("four heads", np.maximum(-found, 0))]
    families["groups, solver above"] = [sure("four heads", np.maximum(found, 0))]
    families["groups, price"] = [of_batches("four heads", groups["apart"].values, "groups")]
    return families


def calibration(results: Results) -> Families:
    """Risks on new tokens against the optimum and K-SVD, by calibration sample."""
    excess, twice, neighbour, worse, better = [], [], [], [], []
    slopes: dict[str, list[Effect]] = {}
    for point in part(results, "calibration"):
        data, theory = results.estimates[point], results.prediction(point)
        best, law = float(theory["least"]), float(theory["excess"])
        over, rival = data["risk"].values - best, data["rival"].values - best
        n, angle = results.number(point, "n"), str(results.coordinates[point]["angle"])
        fewest = min(n, round(n / results.number(point, "ratio")))
        at: Facts = {"n": n, "fewest": fewest, "angle": angle}
        at["gap_over_excess"] = float(theory["keys_gap"]) / law
        excess.append(of_batches(point, over / law - 1, point, at=at))
        both = (data["risk"].values - data["loss"].values) / (2 * law) - 1
        twice.append(of_batches(point, both, point, at=at))
        if angle == "isotropic":
            pays = ratio(over, rival) / float(theory["neighbour"]) - 1
            neighbour.append(of_batches(point, pays, point, at=at))
        if results.number(point, "ratio") == 1:
            slopes.setdefault(angle, []).append(of_batches(point, over, point, x=n, at=at))
        worse.append(of_batches(point, data["worse"].values, point, at=at))
        won = 1 - ratio(data["risk"].values, data["rival"].values)
        better.append(of_batches(point, won, point, at=at))
    families = {f"excess by n, {angle}": own for angle, own in slopes.items()}
    return families | {
        "excess": excess,
        "test less calibration": twice,
        "ratio to K-SVD": neighbour,
        "worse than K-SVD": worse,
        "gain on K-SVD": better,
    }


def disagree(results: Results, point: str) -> np.ndarray:
    """Share of heads, a batch each, whose smaller score error has the larger output error."""
    data = results.estimates[point]
    scores, outputs = (
        np.sign(data[f"{of}_kq"].values - data[f"{of}_k"].values) for of in ("score", "output")
    )
    return np.asarray((scores * outputs < 0).mean(1))


def log_ratio(results: Results, point: str, first: str, second: str) -> np.ndarray:
    """Mean over heads of log(first/second), a batch each."""
    data = results.estimates[point]
    return np.asarray(np.log(data[first].values / data[second].values).mean(1))


def heads(results: Results) -> Families:
    """Random heads on new tokens."""
    points = {point: results.number(point, "mean") for point in part(results, "head")}
    return {
        "outputs disagree": [of_batches(p, disagree(results, p), p) for p in points],
        "outputs better": [
            of_batches(p, log_ratio(results, p, "output_k", "output_kq"), p) for p in points
        ],
        "gain of centring": [
            of_batches(p, log_ratio(results, p, "score_kq", "score_centred"), p, at={"mean": mean})
            for p, mean in points.items()
        ],
    }


def bounds(results: Results) -> Families:
    """Ratios of errors to bounds, and what a causal mask leaves to be gained."""
    searched = {
        point: results.estimates[point]["ratio"].values for point in part(results, "spectral")
    }
    rows = results.estimates["rows"]
    return {
        "spectral, searched": [of_batches(p, v - 1, p) for p, v in searched.items()],
        "spectral, beyond the sink": [
            sure(p, np.maximum(v / float(results.prediction(p)["ratio"]) - 1, 0))
            for p, v in searched.items()
        ],
        "spectral, random": [
            of_batches(p, results.estimates[p]["ratio"].values - 1, p)
            for p in part(results, "random")
        ],
        "rows": [sure(name, np.maximum(rows[name].values - 1, 0)) for name in ROWS],
        "causal": [
            of_batches(p, results.estimates[p]["removed"].values, p)
            for p in part(results, "masked")
        ],
    }


def ensembles(results: Results) -> Families:
    """Terms of compressed heads against theory; errors over those of whole heads, drawn anew."""
    terms, families = [], {}
    for point in part(results, "heads"):
        own = results.coordinates[point]
        for term in TERMS:
            values = results.estimates[point][term].values
            gap = values / float(results.prediction(point)[term]) - 1
            at: Facts = {
                "regime": str(own["regime"]),
                "rank": results.number(point, "rank"),
                "term": term,
            }
            terms.append(of_batches(f"{point}, {term}", gap, point, at=at))
    families["terms"] = terms
    for words, of in (("a head", "head"), ("the ensemble", "pool")):
        families[f"rise of the error of {words}"] = [
            rise(results, point, of, int(rank))
            for point in part(results, "drawn heads")
            for rank in results.estimates[point]["kept"].values[1:]
        ]
    return families


def rise(results: Results, point: str, of: str, rank: int) -> Effect:
    """Mean error over problems at a rank, over that of whole heads (the first rank), less 1."""
    errors, regime = results.estimates[point][of], str(results.coordinates[point]["regime"])
    values = ratio(errors.sel(kept=rank).values, errors.values[:, 0]) - 1
    at: Facts = {"regime": regime, "rank": float(rank)}
    return of_batches(f"{regime}, r = {rank}", values, point, unit="problems", at=at)
