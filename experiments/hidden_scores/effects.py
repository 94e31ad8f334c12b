"""Effects of hidden scores: gaps to laws, contrasts with plain attention, and counterexamples."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, ratio
from sims.study.results import Results

VIOLATED = 1e-9
"""A violation is a counterexample above this share of the numbers it is computed from."""
EPS = 2.0**-52
STARTS = ("zero", "copy")


def effects(results: Results) -> Families:
    """All families by the names that claims use."""
    return (
        checks(results)
        | scores(results)
        | collapse(results)
        | uniformity(results)
        | searches(results)
        | regression(results)
    )


def part(results: Results, name: str) -> list[str]:
    """Points of one part of the experiment."""
    return [point for point in results.points if results.coordinates[point]["part"] == name]


def facts(results: Results, point: str, start: str) -> dict[str, float | str]:
    """What claims select a stack by."""
    own = results.coordinates[point]
    return {
        "start": start,
        "weights": str(own["weights"]),
        "matrix": str(own["matrix"]),
        "score_scale": results.number(point, "score_scale"),
    }


def checks(results: Results) -> Families:
    """Gaps in units of rounding, and ranks less those stated."""
    data = results.estimates["identities"]
    law = results.prediction("identities")
    families = {
        name: [Effect(name, values=data[name].values)]
        for name in ("standard", "kernel", "first, zero", "first, copy")
    }
    families["frozen"] = [
        Effect(f"{name}, {start}", values=values)
        for start in STARTS
        for name, values in (
            ("frozen", data[f"frozen, {start}"].values),
            ("ratio", (data[f"ratio, {start}"].values - float(law[f"ratio, {start}"])) / EPS),
        )
    ]
    for tokens in ("moving", "fixed"):
        point = f"rank, {tokens} tokens"
        found, expected = results.estimates[point], results.prediction(point)
        clear = found["gap"].values >= results.settings["rank"]["gap"]
        for name in ("stated", "corrected"):
            # Where singular values have no gap there is no rank: the row has to be open.
            gaps = np.where(clear, found["rank"].values - expected[name].values, np.nan)
            families[f"rank {name}, {tokens} tokens"] = [Effect(point, values=gaps)]
    return families


def scores(results: Results) -> Families:
    """Variances and effective keys of hidden scores against theory, and slopes in a stack."""
    families: Families = {"score variance": [], "effective keys": []}
    names = {"score variance": "score_variance", "effective keys": "keys"}
    for point in part(results, "temperature"):
        law, data = results.prediction(point), results.estimates[point]
        for family, name in names.items():
            families[family] += [
                of_batches(
                    f"{point}, {start}, α′ = {memory}, layer {layer}",
                    data[name].sel(start=start, memory=memory).isel(layer=layer).values
                    / float(law[name].sel(start=start, memory=memory).isel(layer=layer))
                    - 1,
                    point,
                    at={
                        "variance": float(
                            law["score_variance"].sel(start=start, memory=memory).isel(layer=layer)
                        )
                    },
                )
                for start in STARTS
                for memory in data["memory"].values
                for layer in results.settings["temperature"]["judged"]
            ]
    slopes = [
        (
            point,
            start,
            float(memory),
            ratio(
                *(
                    results.estimates[point][k]
                    .isel(layer=results.settings["slope_layer"])
                    .sel(start=start, memory=memory)
                    .values
                    for k in ("product", "square")
                )
            ),
        )
        for point in part(results, "normed")
        if results.coordinates[point]["weights"] == "independent"
        for start in STARTS
        for memory in results.estimates[point]["memory"].values
        if memory > 0
    ]
    layer = results.settings["slope_layer"]
    families["slope over the temperature"] = [
        of_batches(
            f"{point}, {start}, α′ = {memory}",
            values / (1.0 if start == "copy" else 1 - memory ** (layer + 1)) - 1,
            point,
            at=facts(results, point, start) | {"memory": memory},
        )
        for point, start, memory, values in slopes
    ]
    families["slope over the last share"] = [
        of_batches(
            f"{point}, {start}, α′ = {memory}",
            values / (1 - memory) - 1,
            point,
            at=facts(results, point, start) | {"memory": memory},
        )
        for point, start, memory, values in slopes
    ]
    return families


def collapse(results: Results) -> Families:
    """log ρ without skip, against plain attention and by depth; the recursion of the simplex."""
    settings = results.settings
    gain: list[Effect] = []
    left: list[Effect] = []
    second: list[Effect] = []
    for point in part(results, "pure"):
        data = results.estimates[point]["log_residual"]
        for start in STARTS:
            for memory in data["memory"].values[1:]:
                own = data.sel(start=start, memory=memory).values
                plain = data.sel(start=start).isel(memory=0).values
                label, at = f"{point}, {start}, α′ = {memory}", facts(results, point, start)
                gain += [
                    of_batches(
                        f"{label}, depth {depth}",
                        own[:, depth - 1] - plain[:, depth - 1],
                        point,
                        at=at | {"depth": float(depth)},
                    )
                    for depth in settings["depths"]["pure"]
                ]
                left.append(of_batches(label, -own[:, -1], point, at=at))
                early, late = settings["window"]
                steps = np.diff(own, axis=1)
                found = (steps[:, late] - steps[:, early]) / (late - early)
                limit = float(results.prediction(point)["second_difference"].sel(memory=memory))
                second.append(
                    of_batches(label, found / limit - 1, point, at=at | {"memory": float(memory)})
                )
    recursion = [
        Effect(f"{point}", values=_finite_gap(results, point)) for point in part(results, "simplex")
    ]
    far = [
        Effect(f"{point}, {start}, α′ = {memory}", float(law.sel(start=start, memory=memory)))
        for point in part(results, "simplex")
        for law in (results.prediction(point)["far"],)
        for start in STARTS
        for memory in law["memory"].values[1:]
    ]
    return {
        "residual kept": gain,
        "fall of the residual": left,
        "second difference": second,
        "recursion": recursion,
        "second difference of the recursion": far,
    }


def _finite_gap(results: Results, point: str) -> np.ndarray:
    """Differences of log a where the recursion is above its least size; 0 where it is below."""
    found, law = results.estimates[point]["log_size"], results.prediction(point)["log_size"]
    floor = results.settings["simplex"]["least"]
    known = law.values > floor
    return np.where(known, found.values - np.where(known, law.values, 0.0), 0.0)


def uniformity(results: Results) -> Families:
    """ω of plain attention less that with hidden scores, with skip and norm; late slopes."""
    settings = results.settings
    gain: list[Effect] = []
    for point in part(results, "normed"):
        data = results.estimates[point]["log_odds"]
        for start in STARTS:
            plain = data.sel(start=start).isel(memory=0).values
            gain += [
                of_batches(
                    f"{point}, {start}, α′ = {memory}, depth {depth}",
                    (plain - data.sel(start=start, memory=memory).values)[:, depth - 1],
                    point,
                    at=facts(results, point, start)
                    | {"depth": float(depth), "memory": float(memory)},
                )
                for memory in data["memory"].values[1:]
                for depth in settings["depths"]["normed"]
            ]
    shift: list[Effect] = []
    rate: list[Effect] = []
    span = settings["late_span"]
    for point in part(results, "late"):
        data = results.estimates[point]["log_odds"]
        slopes = (data.isel(layer=-1) - data.isel(layer=-1 - span)) / span
        law = float(results.prediction(point)["rate"])
        for start in STARTS:
            plain = slopes.sel(start=start).isel(memory=0).values
            for memory in data["memory"].values:
                own = slopes.sel(start=start, memory=memory).values
                label = f"{point}, {start}, α′ = {memory}"
                at = facts(results, point, start)
                rate.append(of_batches(label, own / law - 1, point, at=at))
                if memory > 0:
                    shift.append(of_batches(label, own - plain, point, at=at))
    return {"spread kept": gain, "late slope over plain": shift, "late slope over law": rate}


def searches(results: Results) -> Families:
    """Violations found, one effect for the smallest case that has one, or for the whole search."""
    families: Families = {}
    for start in STARTS:
        found = [
            (point, results.estimates[point]["shortfall"].sel(start=start).values)
            for point in part(results, "monotone")
        ]
        families[f"below plain, {start}"] = [smallest(found)]
    for rule in ("new", "old", "values"):
        found = [
            (point, results.estimates[point]["rise"].sel(rule=rule).values)
            for point in part(results, "energy")
        ]
        families[f"rise, {rule}"] = [smallest(found)]
    return families


def smallest(found: list[tuple[str, np.ndarray]]) -> Effect:
    """The largest violation at the first size that has one, sizes being in order; else over all."""
    for point, values in found:
        if values.max() > VIOLATED:
            return Effect(f"smallest: {point}", values=np.array([values.max()]))
    every = np.array([values.max() for _, values in found])
    return Effect(f"none at {len(found)} sizes", values=np.maximum(every, 0.0))


def regression(results: Results) -> Families:
    """The second layer's head against exact theory, and against the head without memory."""
    families: Families = {"second layer over theory": [], "error saved": [], "variance saved": []}
    for point in part(results, "second layer"):
        data, law = results.estimates[point], results.prediction(point)
        own = results.coordinates[point]
        for start in STARTS:
            for memory in data["memory"].values:
                at = {"view": str(own["view"]), "kernel": str(own["kernel"]), "start": start}
                here, expected = (d.sel(start=start, memory=memory) for d in (data, law))
                label = f"{own['view']}, {own['kernel']}, {start}, α′ = {memory}"
                scale = float(expected["mse"])
                families["second layer over theory"] += [
                    of_batches(
                        f"{label}, {name}",
                        (here[name].values - float(expected[name])) / scale,
                        point,
                        bound=float(expected[f"{name}_error"]) / scale,
                        at=at,
                    )
                    for name in ("squared_bias", "variance")
                ]
    for point in part(results, "drawn heads"):
        data, own = results.estimates[point], results.coordinates[point]
        for start in STARTS:
            base = data.sel(start=start).isel(memory=0)
            for memory in data["memory"].values[1:]:
                at = {"view": str(own["view"]), "kernel": str(own["kernel"]), "start": start}
                label = f"{own['view']}, {own['kernel']}, {start}, α′ = {memory}"
                here = data.sel(start=start, memory=memory)
                for family, name in (("error saved", "mse"), ("variance saved", "variance")):
                    each = {"base": base["mse"].values, "gain": (base - here)[name].values}
                    values = jackknife(each, lambda mean: mean["gain"] / mean["base"])
                    families[family].append(of_batches(label, values, point, at=at))
    return families
