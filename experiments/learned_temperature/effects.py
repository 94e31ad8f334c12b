"""Errors at learned temperatures: against the best, rule against rule, road against road."""

from collections.abc import Callable, Iterable
from itertools import pairwise, product

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

from .learning import POWERS, RULES

MATCHED = {"smooth": "1.5-entmax", "rough": "sparsemax"}
"""The rule whose power is the smoothness of the stream's targets, ν = β."""
EXPONENTS = {
    "smooth": ("1.5-entmax", "sparsemax", "4/3-entmax", "softmax"),
    "rough": ("sparsemax", "1.5-entmax", "4/3-entmax", "softmax"),
}
"""Rules by the exponent at which theory has their error fall at a kept temperature,
``2 min(β, 2, ν)/(2ν + 1)``, the fastest first."""


def effects(results: Results) -> Families:
    """Losses against the best, ratios of errors at the longest context, gaps to theory."""
    every, streams = list(results.points), results.settings["best"]

    def compared(pairs: Callable[[str], Iterable[tuple[str, str]]]) -> list[Effect]:
        return [
            behind(results, stream, rule, other)
            for stream, rules in streams.items()
            for rule, other in pairs(stream)
            if rule in rules and other in rules
        ]

    sparse = (*POWERS, "relu gap")
    return {
        "loss": [loss(results, p, i) for p in every for i in range(1, len(lengths(results)))],
        "loss where it was learned": [loss(results, p, 0) for p in every],
        "behind the matched rule": compared(
            lambda stream: [(r, MATCHED[stream]) for r in RULES if r != MATCHED[stream]]
        ),
        "ordering by exponents": compared(
            lambda stream: [(slow, fast) for fast, slow in pairwise(EXPONENTS[stream])]
        ),
        "behind sparse rules": compared(lambda _: product(("softmax", "top-k softmax"), sparse)),
        "gap to theory": [gap(results, point) for point in results.predictions],
    }


def lengths(results: Results) -> np.ndarray:
    """Context lengths as multiples of that of learning."""
    return next(iter(results.estimates.values()))["length"].values


def kept(results: Results, point: str) -> np.ndarray:
    """Errors (B, length) at the learned temperature."""
    return results.estimates[point]["kept"].values


def best(results: Results, stream: str) -> np.ndarray:
    """Errors (B, length) of the best rule at its best temperature, at every length by itself.

    Chosen by the mean over seeds.
    """
    tuned = np.concatenate(
        [
            results.estimates[f"{stream}, {rule}"]["tuned"].values
            for rule in results.settings["best"][stream]
        ],
        axis=-1,
    )
    chosen = tuned.mean(0).argmin(-1)
    return tuned[:, np.arange(tuned.shape[1]), chosen]


def named(point: str) -> tuple[str, str]:
    """Stream and rule of a point."""
    stream, rule = point.split(", ")
    return stream, rule


def loss(results: Results, point: str, length: int) -> Effect:
    """The error at the learned temperature over the best there is at that length, less 1."""
    stream, rule = named(point)
    values = ratio(kept(results, point)[:, length], best(results, stream)[:, length]) - 1
    factor = float(lengths(results)[length])
    return of_batches(
        f"{point}, {factor:g}",
        values,
        point,
        unit="seeds of learning",
        at={
            "stream": stream,
            "rule": rule,
            "length": factor,
            "matched": "yes" if rule == MATCHED[stream] else "no",
        },
    )


def behind(results: Results, stream: str, rule: str, other: str) -> Effect:
    """The first rule's error over the second's at the longest context, less 1."""
    points = [f"{stream}, {name}" for name in (rule, other)]
    first, second = (kept(results, point)[:, -1] for point in points)
    return of_batches(
        f"{stream}: {rule} against {other}",
        ratio(first, second) - 1,
        points,
        unit="seeds of learning",
        at={
            "stream": stream,
            "rule": rule,
            "against": other,
            "entmax": "yes" if other in POWERS else "no",
        },
    )


def gap(results: Results, point: str) -> Effect:
    """The simulated error at the longest context over first-order theory's, less 1, paired."""
    theory = results.prediction(point)
    expected = theory["each_mse"].values
    share = 1 - float(theory["each_squared_bias"].mean()) / expected.mean()
    values = ratio(kept(results, point)[:, -1], expected) - 1
    stream, rule = named(point)
    return of_batches(
        point,
        values,
        point,
        unit="seeds of learning",
        at={"stream": stream, "rule": rule, "variance_share": share},
    )
