"""How often intervals cover: sequences at every look, t intervals at one size."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import binom

from sims.audit.problems import MARGIN
from sims.audit.runs import LEVEL, SIZES, SURE, candidates, looks, power_law
from sims.estimates import jackknife, mcse
from sims.judgement import Evidence, optimal_set, rate
from sims.judgement.intervals import fixed_half_width, sequence_half_width
from sims.terms import BATCH

CORRELATION = "noise correlation (jackknife)"


def coverage(real: Mapping[str, np.ndarray], right: Mapping[str, float]) -> list[dict[str, Any]]:
    """Count the runs in which an interval covers.

    Args:
        real: batches (runs, batches) of the engine's terms: those that are covered, and the two
            that make the correlation of label noise.
        right: their exact values.

    Returns:
        A row an interval: interval, of, covered, runs, least and most (allowed; a confidence
        sequence may cover always), holds.
    """
    runs, count = next(iter(real.values())).shape
    rng = np.random.default_rng(8)
    series = {"normal batches": (rng.normal(size=(runs, count)), 0.0)}
    series |= {name.replace("_", " "): (real[name], right[name]) for name in real}
    moments = {
        of: ({b: _mean(values[:, :b]) for b in looks(count)}, true)
        for of, (values, true) in series.items()
    }
    pair = xr.Dataset({k: (("run", BATCH), v) for k, v in real.items()})
    moments[CORRELATION] = (
        {b: _correlation(pair.isel({BATCH: slice(b)})) for b in looks(count)},
        float(noise_correlation(right)),
    )
    found: list[tuple[str, str, np.ndarray, bool]] = []
    for of, (at, true) in moments.items():
        kept = np.ones(runs, bool)
        for b, (mean, error) in at.items():
            kept &= np.abs(mean - true) <= sequence_half_width(error, b, 1 - LEVEL)
        found.append(("confidence sequence, at every look", of, kept, True))
        for b in dict.fromkeys((looks(count)[0], count)):
            mean, error = at[b]
            inside = np.abs(mean - true) <= fixed_half_width(error, b - 1, 1 - LEVEL)
            found.append((f"t interval at {b} batches", of, inside, False))
    for shared, of in ((0.0, "power law"), (0.5, "power law, shared draws")):
        kept = np.array([_slope_kept(run) for run in power_law(rng, runs, count, shared)])
        found.append(("slope's sequence, at every look", of, kept, True))
    best = np.array([optimal_set(run, LEVEL)[0] for run in candidates(rng, runs, count)])
    found.append((f"set of optima at {count} batches", "equal candidates", best, True))
    share = (1 - SURE) / (2 * len(found))
    least, most = (int(binom.ppf(q, runs, LEVEL)) for q in (share, 1 - share))
    return [
        _row(interval, of, inside, least, runs if above else most)
        for interval, of, inside, above in found
    ]


def noise_correlation(terms: Any) -> Any:
    """Mean covariance of two heads' label noise over the mean variance of one."""
    return terms["cross_noise_covariance"] / terms["noise_variance"]


def _mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(1), values.std(1, ddof=1) / np.sqrt(values.shape[1])


def _correlation(pair: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    values = jackknife({str(k): pair[k].values for k in pair.data_vars}, noise_correlation)
    return values.mean(0), mcse(values)


def _slope_kept(run: np.ndarray) -> bool:
    """Whether the sequence holds the slope −1 at every look."""
    for b in looks(len(run)):
        low, high = rate(
            Evidence(run[:b].mean(0), mcse(run[:b]), b, b), SIZES, expected=-1.0, margin=MARGIN,
            level=LEVEL, values=run[:b],
        ).interval or (-np.inf, np.inf)  # fmt: skip
        if not low <= -1.0 <= high:
            return False
    return True


def _row(interval: str, of: str, inside: np.ndarray, least: int, most: int) -> dict[str, Any]:
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
