"""Gaps of simulation to three theories, and the slope of the gap between two of them."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.study.results import Results

SIGNAL = {"signal variance": "signal_variance", "signal covariance": "cross_signal_covariance"}
NOISE = {"noise variance": "noise_variance", "noise covariance": "cross_noise_covariance"}


def effects(results: Results) -> Families:
    """Relative gaps by theory and kind of term; gaps of first-order to exact theory by n."""
    families = {
        words: [
            gap(results, point, order, name)
            for point in results.points if known(results, point, order)
            for name in kind.values()
        ]
        for words, order, kind in (
            ("first order", "first", SIGNAL | NOISE),
            ("fixed radius, signal", "fixed", SIGNAL),
            ("fixed radius, noise", "fixed", NOISE),
        )
    }  # fmt: skip
    for words, order in (("first order", "first"), ("fixed radius", "fixed")):
        families[f"bias, {words}"] = [
            bias(results, point, order) for point in results.points
            if known(results, point, "exact")
        ]  # fmt: skip
    for words in ("signal variance", "noise variance"):
        name = (SIGNAL | NOISE)[words]
        families[f"remainder, {words}"] = [
            effect for point in results.points for effect in remainder(results, point, name)
        ]
    return families


def known(results: Results, point: str, order: str) -> bool:
    """Whether that theory says something of the point."""
    return bool(np.isfinite(results.prediction(point, order)["signal_variance"]))


def facts(results: Results, point: str) -> dict[str, float]:
    """What regimes are told by."""
    theory = results.prediction(point)
    return {
        "n": results.number(point, "n"),
        "n_eff": float(theory["n_eff"]), "attended": float(theory["attended"]),
    }  # fmt: skip


def gap(results: Results, point: str, order: str, name: str) -> Effect:
    """Simulated over predicted value less 1."""
    theory = results.prediction(point, order)
    values = results.estimates[point][name].values / float(theory[name]) - 1
    return of_batches(f"{name}, {point}", values, point, at=facts(results, point))


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
            f"{kernel}, {name}, n = {n}", float(value), x=float(n), replicates=0,
            at={"kernel": kernel},
        )
        for n, value in zip(line["size"].values.tolist(), gaps.values, strict=True)
    ]  # fmt: skip
