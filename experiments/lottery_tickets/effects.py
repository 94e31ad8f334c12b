"""Slopes and sizes of errors, failures against their law, needed items, widths, scales."""

from collections.abc import Callable, Mapping

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, ratio
from sims.study.results import Results

Facts = dict[str, float | str]
PRINTED_SIZE, PRINTED_RATE = 0.8, 0.06
"""The fit of the paper's figure: error 0.8 exp(−0.06 n_K)."""
RANGES = {"rate": (8, 16), "rate, later": (12, 20)}
"""Items an entry over which rates are fitted, by family."""
NEEDED = 2.0**-11
"""Tolerance at which items are counted by the number of entries."""
TOLERANCES = 2.0 ** -np.arange(9.0, 14.0)
"""And those by which they are counted at :data:`SAME` entries."""
SAME = 32


def effects(results: Results) -> Families:
    """One family a claim or group of claims."""
    return {**curves(results), **laws(results), **needed(results), **others(results)}


def part(results: Results, name: str) -> list[str]:
    """Points of one part of the experiment."""
    return [point for point in results.points if results.coordinates[point]["part"] == name]


def slope(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Least-squares slope of values (…, k) on x (k,)."""
    centred = x - x.mean()
    return np.asarray(values @ centred / (centred @ centred))


def rate(results: Results, point: str, family: str = "rate") -> np.ndarray:
    """Decay of log error in n_K, one a batch, with the sign of a decay."""
    first, last = RANGES[family]
    data = results.estimates[point]
    items = data["per_entry"].values
    inside = (items >= first) & (items <= last)
    x = results.number(point, "d") * items[inside].astype(float)
    return -slope(np.log(data["median_output"].values[:, inside]), x)


def fitted(results: Results, point: str) -> tuple[np.ndarray, np.ndarray]:
    """Pseudo-values of A and δ in A exp(−δ n_K), fitted to the log of the mean output error."""
    data = results.estimates[point]
    x = results.number(point, "d") * data["per_entry"].values.astype(float)

    def parameters(means: Mapping[str, np.ndarray]) -> np.ndarray:
        log = np.log(means["error"])
        decay = -slope(log, x)
        return np.stack([np.exp(log.mean(-1) + decay * x.mean()), decay], axis=-1)

    both = jackknife({"error": data["mean_output"].values}, parameters)
    return both[:, 0], both[:, 1]


def curves(results: Results) -> Families:
    """Errors by width."""
    rates, sizes, blocks = [], [], []
    families: Families = {}
    for point in part(results, "curve"):
        data, theory = results.estimates[point], results.prediction(point)
        own = results.coordinates[point]
        decay = rate(results, point)
        at: Facts = {"target": str(own["target"]), "d": results.number(point, "d")}
        if own["blocks"] == 1:
            law = float(theory["decay_rate"])
            rates.append(of_batches(point, decay / law - 1, point, at=at))
            later = rate(results, point, "rate, later")
            families.setdefault("rate, later", []).append(
                of_batches(point, later / law - 1, point, at=at)
            )
            for place, items in enumerate(data["per_entry"].values):
                gap = np.log(
                    data["median_entry"].values[:, place] / theory["median_entry"].values[place]
                )
                facts: Facts = {**at, "items": float(items)}
                sizes.append(of_batches(f"{point}, n' = {items}", gap, point, at=facts))
        else:
            alone = point.replace(f"B={own['blocks']}", "B=1")
            steps = ratio(decay, rate(results, alone)) - 1
            blocks.append(of_batches(point, steps, (point, alone)))
        if own["blocks"] == 1 and own["target"] == "within":
            fit = of_batches(point, decay / PRINTED_RATE - 1, point, at=at)
            families.setdefault("rate over the printed one", []).append(fit)
        if own["target"] == "products":
            size, speed = fitted(results, point)
            gaps = {"size": size / PRINTED_SIZE - 1, "rate": speed / PRINTED_RATE - 1}
            for name, gap in gaps.items():
                families[f"fit to products, {name}"] = [of_batches(name, gap, point)]
    return families | {"rate": rates, "median entry": sizes, "rate of blocks": blocks}


def laws(results: Results) -> Families:
    """Failures less their law."""
    gaps = []
    for point in part(results, "law"):
        data, theory = results.estimates[point], results.prediction(point)
        items = results.number(point, "items")
        for place, multiple in enumerate(data["multiple"].values):
            values = data["missed"].values[:, place] - float(theory["missed"].values[place])
            at = {"items": items, "multiple": float(multiple)}
            gaps.append(of_batches(f"{point}, ε = {multiple} · 2^−n'", values, point, at=at))
    return {"failures": gaps}


def counted(log_error: np.ndarray, items: np.ndarray, tolerance: float) -> np.ndarray:
    """Items at which a curve (…, items) of log errors falls through log ε, by interpolation."""
    log_error = np.asarray(log_error)
    flat = log_error.reshape(-1, log_error.shape[-1])
    crossing = [np.interp(-np.log(tolerance), -row, items) for row in flat]
    return np.array(crossing).reshape(log_error.shape[:-1])


def by_entries(log_error: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Needed items (…, count) of curves (…, items, count) at :data:`NEEDED`."""
    return counted(np.moveaxis(log_error, -2, -1), items, NEEDED)


def by_tolerance(log_error: np.ndarray, items: np.ndarray, place: int) -> np.ndarray:
    """Needed items (…, tolerance) at the place of :data:`SAME` entries."""
    own = log_error[..., place]
    return np.stack([counted(own, items, eps) for eps in TOLERANCES], axis=-1)


def needed(results: Results) -> Families:
    """Slopes of the items needed in log₂ of the number of entries and of the accuracy."""
    data, theory = results.estimates["many"], results.prediction("many")
    items, counts = data["searched"].values.astype(float), data["count"].values.astype(float)
    place = int(np.argmin(abs(counts - SAME)))
    batches = {"log": data["log_error"].values}

    def pseudo(statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return jackknife(batches, lambda means: statistic(means["log"]))

    entries = pseudo(lambda log: slope(by_entries(log, items), np.log2(counts)))
    accuracy = pseudo(lambda log: slope(by_tolerance(log, items, place), -np.log2(TOLERANCES)))
    sizes = pseudo(lambda log: by_entries(log, items))
    sizes = sizes - by_entries(theory["log_error"].values, items)
    return {
        "items by entries": [of_batches("slope", entries - 1, "many")],
        "items by accuracy": [of_batches("slope", accuracy - 1, "many")],
        "items needed": [
            of_batches(f"N = {count:g}", column, "many")
            for count, column in zip(counts, sizes.T, strict=True)
        ],
    }


def others(results: Results) -> Families:
    """Widths of the theorem, lengths, scales."""
    widths = [
        of_batches(
            point,
            results.estimates[point]["log_excess"].values,
            point,
            at={"constant": str(results.coordinates[point]["constant"])},
        )
        for point in part(results, "width")
    ]
    data = results.estimates["lengths"]
    error, scales = data["error_by_length"].values, part(results, "scale")
    return {
        "widths": widths,
        "bound by tanh": [
            Effect("all lengths", values=np.maximum(data["over_bound"].values - 1, 0))
        ],
        "longest over shortest": [
            of_batches("longest", np.log(error[:, -1] / error[:, 0]), "lengths")
        ],
        "fourth root": [choice(results, p, width(results, p) ** 0.25) for p in scales],
        "by the entry": [choice(results, p, float(results.prediction(p)["best"])) for p in scales],
    }


def width(results: Results, point: str) -> float:
    """n_K of a point of the sweep."""
    return results.number(point, "items") * float(results.settings["scales"]["d"])


def choice(results: Results, point: str, said: float) -> Effect:
    """Median errors by scale, with the place of the scale that is said to be best."""
    data = results.estimates[point]
    best = int(np.argmin(abs(np.log(data["scale"].values[0] / said))))
    return Effect(
        point, batches=len(data["error"]), points=(point,), values=data["error"].values, best=best
    )
