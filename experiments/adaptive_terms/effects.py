"""Gaps of simulation to three theories, and the slope of the gap between two of them."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.study.results import Results

SIGNAL = {"signal variance": "signal_variance", "signal covariance": "cross_signal_covariance"}
NOISE = {"noise variance": "noise_variance", "noise covariance": "cross_noise_covariance"}


def effects(results: Results) -> Families:
    """Relative gaps by theory and kind of term; gaps of first-order to exact theory by n."""
    points = results.points
    redrawn = [p for p in points if "each_n_eff" in results.prediction(p)]
    families = {
        words: [gap(results, point, order, name) for point in points for name in kind.values()]
        for words, order, kind in (
            ("first order", "first", SIGNAL | NOISE),
            ("fixed radius, noise", "fixed", NOISE),
        )
    }
    families["fixed radius, signal"] = [
        pooled(results, point, name) for point in redrawn for name in SIGNAL.values()
    ]
    families["fixed radius over adaptive, signal"] = [
        effect
        for point in redrawn
        for name in SIGNAL.values()
        for effect in by_problem(results, point, name)
    ]
    for words, order in (("first order", "first"), ("fixed radius", "fixed")):
        families[f"bias, {words}"] = [
            bias(results, point, order) for point in points if exact_speaks(results, point)
        ]
    for words in ("signal variance", "noise variance"):
        name = (SIGNAL | NOISE)[words]
        families[f"remainder, {words}"] = [
            effect for point in points for effect in remainder(results, point, name)
        ]
    return families


def exact_speaks(results: Results, point: str) -> bool:
    """Whether exact theory says something of the point."""
    return bool(np.isfinite(results.prediction(point, "exact")["signal_variance"]))


def facts(results: Results, point: str) -> dict[str, float]:
    """What regimes are told by."""
    theory = results.prediction(point)
    return {
        "n": results.number(point, "n"),
        "n_eff": float(theory["n_eff"]),
        "attended": float(theory["attended"]),
    }


def gap(results: Results, point: str, order: str, name: str) -> Effect:
    """Simulated over predicted value less 1."""
    theory = results.prediction(point, order)
    values = results.estimates[point][name].values / float(theory[name]) - 1
    return of_batches(f"{name}, {point}", values, point, at=facts(results, point))


def of_problems(results: Results, point: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """First-order theory of drawn problems, with radii that adapt and that are held."""
    first, fixed = (
        results.prediction(point, order)[f"each_{name}"].values for order in ("first", "fixed")
    )
    return first, fixed


def keys_of(results: Results, point: str) -> dict[str, float]:
    """The harmonic mean of the drawn problems' effective keys."""
    return {"n_eff": float(1 / (1 / results.prediction(point)["each_n_eff"]).mean())}


def pooled(results: Results, point: str, name: str) -> Effect:
    """Mean over drawn problems with radii that adapt over that with radii held, less 1."""
    first, fixed = of_problems(results, point, name)
    value = float(first.mean() / fixed.mean() - 1)
    return Effect(f"{name}, {point}", value, replicates=0, at=keys_of(results, point))


def by_problem(results: Results, point: str, name: str) -> list[Effect]:
    """First-order theory with the radius held over that of adaptive radii, less 1, by problem."""
    first, fixed = of_problems(results, point, name)
    at = keys_of(results, point)
    return [
        Effect(f"{name}, {point}, problem {k}", float(value), replicates=0, at=at)
        for k, value in enumerate(fixed / first - 1)
    ]


def bias(results: Results, point: str, order: str) -> Effect:
    """The bias's 1/n part along exact theory's over queries and heads, as a share of it, less 1."""
    limit = results.prediction(point)["limit"]
    along = results.prediction(point, "exact")["bias"] - limit
    own = results.prediction(point, order)["bias"] - limit
    share = float((own * along).sum() / (along**2).sum())
    return Effect(f"bias, {point}", share - 1, replicates=0, at=facts(results, point))


def remainder(results: Results, point: str, name: str) -> list[Effect]:
    """Size of the relative gap of first-order to exact theory at every number of keys."""
    theory = results.prediction(point)
    if f"curve_{name}" not in theory or not np.isfinite(theory[f"curve_{name}"]).all():
        return []
    line = theory[f"curve_{name}"]
    gaps = abs(line.sel(road="first") / line.sel(road="exact") - 1)
    kernel = str(results.coordinates[point]["heads.kernel"])
    return [
        Effect(
            f"{kernel}, {name}, n = {n}",
            float(value),
            x=float(n),
            replicates=0,
            at={"kernel": kernel},
        )
        for n, value in zip(line["size"].values.tolist(), gaps.values, strict=True)
    ]
