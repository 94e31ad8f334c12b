"""Effects of hierarchical scores: gaps, counts, smallest counterexamples, rates, contrasts."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife
from sims.study.results import Results

VIOLATED = 1e-9
"""A violation is a counterexample above this."""
GAPS = {
    "scores",
    "split",
    "definite",
    "schur",
    "chain",
    "cycle",
    "reversible",
    "symmetric attention",
    "causal",
    "containment",
}
COUNTS = ("pairs", "symmetric pairs", "antisymmetric pairs")


def effects(results: Results) -> Families:
    """All families by the names that claims use."""
    return (
        identities(results)
        | costs(results)
        | definiteness(results)
        | truncation(results)
        | ranks(results)
        | convolutions(results)
        | mixtures(results)
        | {
            f"search, {kind}": [smallest(results, kind)]
            for kind in ("strict", "leak", "needless", "needless, long", "dear")
        }
        | {"search, full rank": [smallest(results, "needless, long", "full rank")]}
    )


def part(results: Results, name: str) -> list[str]:
    """Points of one part of the experiment."""
    return [point for point in results.points if results.coordinates[point]["part"] == name]


def identities(results: Results) -> Families:
    """Gaps of drawn instances, and dimensions counted less those stated."""
    families: Families = {name: [] for name in (*GAPS, *COUNTS)}
    for point in part(results, "checks"):
        data, law = results.estimates[point], results.prediction(point)
        tokens, width, levels = (results.number(point, k) for k in ("tokens", "width", "levels"))
        # A level needs as many tokens as features, and all levels together distinct blocks.
        full = data["columns"].values.min() >= levels * width
        at: dict[str, float | str] = {
            "levels": levels,
            "tokens": tokens,
            "full": "yes" if full else "no",
            "coarsest": tokens / 2 ** (levels - 1) / width,
        }
        for name in GAPS:
            families[name].append(Effect(point, values=data[name].values, at=at))
        for name in COUNTS:
            counted = data[name].values.astype(float)
            gap = np.where(counted < 0, np.nan, counted - float(law[name]))
            families[name].append(Effect(point, values=gap, at=at))
    return families


def costs(results: Results) -> Families:
    """Multiply–adds counted in the program, over those of one level, less what is stated."""
    families: Families = {
        "cost": [],
        "cost, any number of tokens": [],
        "cost of a layer": [],
        "cost of a layer over that of scores": [],
    }
    for point in part(results, "cost"):
        data, law = results.estimates[point], results.prediction(point)
        tokens, levels = results.number(point, "tokens"), int(results.number(point, "levels"))
        at: dict[str, float | str] = {
            "levels": levels,
            "divides": "yes" if tokens % 2 ** (levels - 1) == 0 else "no",
            "ratio": results.number(point, "ratio"),
        }
        gaps = {
            "cost": data["score_cost"].values - float(law["score_cost"]),
            "cost, any number of tokens": data["score_cost"].values - float(law["rounded"]),
            "cost of a layer": data["layer_cost"].values - float(law["layer_cost"]),
            "cost of a layer over that of scores": data["layer_cost"].values
            - float(law["score_cost"]),
        }
        for name, gap in gaps.items():
            families[name].append(Effect(point, values=gap, at=at))
    return families


def definiteness(results: Results) -> Families:
    """Shares of drawn M^s that are positive semidefinite less theory's; numbers of signs."""
    shares, signs, needed = [], [], []
    for point in part(results, "semidefinite"):
        data, law = results.estimates[point], results.prediction(point)
        width, head = (results.number(point, k) for k in ("width", "head_width"))
        at: dict[str, float | str] = {"wide": "yes" if head >= width else "no"}
        for name in ("one", "two"):
            gap = data[name].values - float(law[name])
            shares.append(of_batches(f"{point}, {name}", gap, point, at=at))
        needed.append(of_batches(point, 0.5 - data["one"].values, point, at=at))
        if 2 * head <= width:
            values = np.maximum(data["positive"].values, data["negative"].values)
            signs.append(Effect(point, values=values, at=at))
    return {"share semidefinite": shares, "shortfall of one half": needed, "signature": signs}


def smallest(results: Results, kind: str, name: str = "violation") -> Effect:
    """The largest violation at the first size that has one, sizes being in order; else over all."""
    points = part(results, kind)
    found = [float(results.estimates[point][name].values.max()) for point in points]
    for point, value in zip(points, found, strict=True):
        if value > VIOLATED:
            return Effect(f"smallest: {point}", value, replicates=0)
    return Effect(f"none at {len(found)} sizes", max(found), replicates=0)


def truncation(results: Results) -> Families:
    """Errors by the number of levels, x = e^L; their ratios; remainders of blocks by ‖q‖."""
    families: Families = {"truncation identity": [], "softmax bound": [], "step of the error": []}
    for point in part(results, "truncation"):
        data, name = results.estimates[point], str(results.coordinates[point]["spectrum"])
        families["truncation identity"].append(Effect(name, values=data["identity"].values))
        families["softmax bound"].append(Effect(name, values=np.maximum(data["bound"].values, 0.0)))
        with np.errstate(divide="ignore"):  # a single scale ends
            log = np.log(data["error"].values)
        families[f"error, {name}"] = [
            of_batches(
                f"{name}, L = {kept}",
                data["error"].sel(kept=kept).values,
                point,
                x=float(np.exp(kept)),
                at={"kept": float(kept)},
            )
            for kept in data["kept"].values
        ]
        families["step of the error"] += [
            of_batches(
                f"{name}, L = {kept} to {kept + 1}",
                np.exp(log[:, kept] - log[:, kept - 1]),
                point,
                at={"spectrum": name, "kept": float(kept)},
            )
            for kept in range(1, log.shape[1])
            if np.isfinite(log[:, kept]).all() and data["error"].values[:, kept].min() > VIOLATED
        ]
    for point in part(results, "blocks"):
        remainder = results.estimates[point]["remainder"]
        families[point] = [
            of_batches(
                f"{point}, ‖q‖ = {scale}", remainder.sel(scale=scale).values, point, x=float(scale)
            )
            for scale in remainder["scale"].values
        ]
    return families


def ranks(results: Results) -> Families:
    """Errors of narrow heads over their parts and over the least, and their mean square."""
    families: Families = {
        "both parts": [],
        "least of a rank": [],
        "gain of the best forms": [],
        "mean square of ranks": [],
    }
    for point in part(results, "ranks"):
        data, law = results.estimates[point], results.prediction(point)
        excess = np.maximum(data["excess"].values, 0.0)
        families["both parts"].append(Effect(point, values=excess))
        families["least of a rank"].append(Effect(point, values=data["least"].values))
        families["gain of the best forms"].append(Effect(point, values=data["gain"].values))
        gap = data["squared"].values / float(law["squared"]) - 1
        families["mean square of ranks"].append(of_batches(point, gap, point))
    return families


def convolutions(results: Results) -> Families:
    """Misfits to causal convolutions."""
    families = {
        f"misfit, {results.coordinates[point]['spectrum']}": [
            Effect(point, values=results.estimates[point]["misfit"].values)
        ]
        for point in part(results, "convolution")
    }
    (point,) = part(results, "small inputs")
    return families | {
        "misfit, every input": [Effect(point, values=results.estimates[point]["misfit"].values)]
    }


def mixtures(results: Results) -> Families:
    """Arms against exact theory, correlations against the law, and one bandwidth against levels."""
    families: Families = {
        "mixture over theory": [],
        "level correlation": [],
        "loss of outputs": [],
        "gain over scores": [],
    }
    for point in part(results, "mixture"):
        data, law = results.estimates[point], results.prediction(point)
        at: dict[str, float | str] = {"mixture": str(results.coordinates[point]["mixture"])}
        gaps = data["correlation"].values / law["correlation"].values - 1
        families["level correlation"] += [
            of_batches(f"{point}, pair {pair}", gaps[:, pair], point, at=at)
            for pair in range(gaps.shape[1])
        ]
        if "mse" in law:
            for arm in data["arm"].values:
                here, expected = data.sel(arm=arm), law.sel(arm=arm)
                scale = float(expected["mse"])
                families["mixture over theory"] += [
                    of_batches(
                        f"{point}, {arm}, {name}",
                        (here[name].values - float(expected[name])) / scale,
                        point,
                        at=at,
                    )
                    for name in ("squared_bias", "variance")
                ]
    for point in part(results, "drawn mixture"):
        at = {"mixture": str(results.coordinates[point]["mixture"])}
        error = {
            str(arm): results.estimates[point]["mse"].sel(arm=arm).values
            for arm in results.estimates[point]["arm"].values
        }
        for name, other in (("loss of outputs", "single"), ("gain over scores", "scores")):
            values = jackknife(error, lambda mean, of=other: mean[of] / mean["outputs"] - 1)  # type: ignore[misc]
            families[name].append(of_batches(point, values, point, at=at))
    first = part(results, "mixture")[0]
    for name in ("convex", "signed"):
        values = results.prediction(first)[name].values
        families[f"shortfall, {name}"] = [
            Effect(f"{levels} levels", float(value))
            for levels, value in zip(
                results.settings["mixture"]["search"]["levels"], values, strict=True
            )
        ]
    return families
