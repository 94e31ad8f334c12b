"""False alarms at claims that are just true or just false, and coverage of every interval.

Batches are iid and named by their number, so disjoint blocks of one long run are independent runs,
each with its own seed: hundreds of them cost one simulation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from sims.audit.problems import MARGIN, problem, scalars, simulated, truth
from sims.judgement import Finding, batch_covariance, bound, equivalence, ordering, rate
from sims.judgement.intervals import fixed_half_width, sequence_half_width

LEVEL = 0.95
SURE = 0.99
"""For all rows of a table together: each gets its share of the 1 %."""
LEAST = 8
"""Batches at the first look; each look after it is at twice as many."""
COVERED = ("squared_bias", "signal_variance", "noise_variance", "mse")
SIZES = np.array([1.0, 2.0, 4.0, 8.0])


def calibrate(sizes: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Measure error rates.

    Args:
        sizes: ``runs`` (independent ones), ``batches`` of a run, ``replicates`` of a batch; unless
            ``own``, on the problem of the planted falsehoods, whose solution is there already.

    Returns:
        ``alarms`` (claim type, what is true, wrong verdicts, runs, most allowed) and ``coverage``
        (interval, of what, covered, runs, least and most allowed). Allowed is what the exact
        binomial law gives at 99 %, for all rows of a table together, from the stated level. A row
        ``holds`` if it is within.
    """
    runs, count = sizes["runs"], sizes["batches"]
    at = problem("line", 16) if sizes["own"] else problem()
    data = simulated(at, 21, sizes["replicates"], runs * count)
    right = scalars(_exact() if sizes["own"] else truth())
    real = {name: data[name].values.reshape(runs, count) for name in (*COVERED, "variance")}
    return {
        "alarms": _alarms(real, right, runs, count),
        "coverage": _coverage(real, right, runs, count),
    }


def _exact() -> Any:
    from sims.theory import predict

    return predict(*problem("line", 16), order="exact", rtol=1e-6)


def looks(batches: int) -> list[int]:
    """When a run is looked at."""
    found, count = [], LEAST
    while count < batches:
        found.append(count)
        count *= 2
    return [c for c in found if c < batches] + [batches]


def _alarms(
    real: dict[str, np.ndarray], right: dict[str, float], runs: int, count: int
) -> list[dict[str, Any]]:
    """Claims at their boundary, where wrong verdicts are as likely as they can be."""
    names = list(COVERED)
    stacked = np.stack([real[n] / right[n] for n in names], axis=2)  # (runs, batches, terms)
    rng = np.random.default_rng(7)
    noisy = 3 / SIZES * (1 + 0.1 * rng.normal(size=(runs, count, len(SIZES))))
    one = np.eye(len(names))[-1]

    def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))

    def options(values: np.ndarray, margin: float) -> dict[str, Any]:
        size = len(values)
        return {"margin": margin, "level": LEVEL, "batches": size, "replicates": size}

    def within(shift: Any) -> Callable[[np.ndarray], Finding]:
        def decide(values: np.ndarray) -> Finding:
            mean, error = moments(values)
            return equivalence(mean - 1 + shift, error, **options(values, MARGIN))

        return decide

    def below(values: np.ndarray) -> Finding:
        mean, error = moments(values)
        return bound(mean - 1, error, **options(values, 0.0))

    def rising(values: np.ndarray) -> Finding:
        mean, error = moments(values)
        return ordering(mean - 1, error, **options(values, 0.0))

    def slope(expected: float) -> Callable[[np.ndarray], Finding]:
        def decide(values: np.ndarray) -> Finding:
            return rate(
                SIZES, values.mean(0), batch_covariance(values), expected=expected,
                **options(values, MARGIN),
            )  # fmt: skip

        return decide

    last = stacked[..., -1:]
    cases = (
        ("equivalence", "true: no gap at all", "refuted", stacked, within(0.0)),
        ("equivalence", "true: one gap at the margin", "refuted", stacked, within(MARGIN * one)),
        ("equivalence", "false: a gap at the margin", "supported", last, within(MARGIN)),
        ("bound", "true: no excess", "refuted", stacked, below),
        ("bound", "false: excess at the bound", "supported", last, below),
        ("ordering", "false: no rise at all", "supported", last, rising),
        ("ordering", "true: rises at 0", "refuted", stacked, rising),
        ("rate", "true: slope as expected", "refuted", noisy, slope(-1.0)),
        ("rate", "true: slope at the margin", "refuted", noisy, slope(-1.0 + MARGIN)),
        ("rate", "false: slope at the margin", "supported", noisy, slope(-1.0 + MARGIN)),
    )
    rows = []
    most = int(binom.ppf(1 - (1 - SURE) / len(cases), runs, 1 - LEVEL))
    for kind, what, wrong, values, decide in cases:
        hits = sum(any(decide(run[:b]).verdict == wrong for b in looks(count)) for run in values)
        rows.append(
            {
                "claim": kind,
                "what": what,
                "wrong": wrong,
                "times": int(hits),
                "runs": runs,
                "most": most,
                "holds": bool(hits <= most),
            }
        )
    return rows


def _coverage(
    real: dict[str, np.ndarray], right: dict[str, float], runs: int, count: int
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(8)
    series = {"normal batches": (rng.normal(size=(runs, count)), 0.0)}
    series |= {name.replace("_", " "): (real[name], right[name]) for name in COVERED}
    share = (1 - SURE) / (2 * (3 * len(series) + 1))
    at_least, most = (int(binom.ppf(q, runs, LEVEL)) for q in (share, 1 - share))
    rows = []
    for of, (values, true) in series.items():
        kept = np.ones(runs, bool)
        for b in looks(count):
            mean, error = values[:, :b].mean(1), values[:, :b].std(1, ddof=1) / np.sqrt(b)
            kept &= np.abs(mean - true) <= sequence_half_width(error, b, 1 - LEVEL)
        rows.append(_covered("confidence sequence, at every look", of, kept, at_least, runs))
        for b in (looks(count)[1], count):
            mean, error = values[:, :b].mean(1), values[:, :b].std(1, ddof=1) / np.sqrt(b)
            inside = np.abs(mean - true) <= fixed_half_width(error, b - 1, 1 - LEVEL)
            rows.append(_covered(f"t interval at {b} batches", of, inside, at_least, most))
    all_inside = []
    noisy = 3 / SIZES * (1 + 0.1 * rng.normal(size=(runs, count, len(SIZES))))
    for run in noisy:
        inside = []
        for b in looks(count):
            part = run[:b]
            low, high = rate(
                SIZES, part.mean(0), batch_covariance(part), expected=-1.0, margin=MARGIN,
                level=LEVEL, batches=b, replicates=b,
            ).interval or (-np.inf, np.inf)  # fmt: skip
            inside.append(low <= -1.0 <= high)
        all_inside.append(all(inside))
    kept = np.array(all_inside)
    rows.append(_covered("slope's sequence, at every look", "power law", kept, at_least, runs))
    return rows


def _covered(interval: str, of: str, inside: np.ndarray, least: int, most: int) -> dict[str, Any]:
    hits = int(inside.sum())
    return {
        "interval": interval,
        "of": of,
        "covered": hits,
        "runs": len(inside),
        "least": least,
        "most": most,
        "holds": bool(least <= hits <= most),
    }
