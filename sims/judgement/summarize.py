"""Summaries of effects as a share, a gap or a mean. No JAX."""

from dataclasses import replace

import numpy as np
from scipy.special import bdtr, stdtrit

from sims.base.estimates import mcse
from sims.judgement import conventions
from sims.judgement.effects import Effects
from sims.judgement.outcomes import UNDECIDED
from sims.judgement.summaries import OUTSIDE, Gap, Mean, Quartiles, Result, Share, tally


def summarize(effects: Effects, selected: np.ndarray) -> Result:
    """Summary of the effects of selected problems.

    Args:
        effects: effects of all problems.
        selected: mask of the M problems.
    """
    meaningful = np.isfinite(effects.value)
    if meaningful.ndim > 1:
        meaningful = meaningful.all(1)
    rows = selected[: len(effects.value)] & meaningful
    if effects.kind in ("share", "outcome"):
        return _share(effects, selected, rows)
    if effects.kind == "gap":
        return _gap(effects, rows)
    return _mean(effects, selected, rows)


def _share(effects: Effects, selected: np.ndarray, rows: np.ndarray) -> Share:
    call = effects.call[rows]
    counted = tally(call, _reason(effects, rows, call))
    share = replace(_sizes(effects, rows), problems=int(rows.sum()), simulated=counted)
    theory = effects.predicted_call
    if not len(theory):
        return share
    products = call * theory[: len(rows)][rows]
    return replace(
        share,
        theory=tally(theory[selected & np.isfinite(theory)], OUTSIDE),
        contradictions=int((products < 0).sum()),
    )


def _reason(effects: Effects, rows: np.ndarray, call: np.ndarray) -> str:
    """What leaves problems undecided: theory's range, or the error after so many batches."""
    if effects.batches is None:
        return OUTSIDE
    batches = effects.batches[rows][call == UNDECIDED]
    return f"Monte Carlo error after {batches.max():,.0f} batches" if len(batches) else ""


def _sizes(effects: Effects, rows: np.ndarray) -> Share:
    """Sizes of the changes of a share."""
    share = Share(problems=0)
    if effects.size is None or not np.isfinite(effects.size[rows]).any():
        return share
    size = _quartiles(effects.size[rows])
    components = {name: _quartiles(part[rows]) for name, part in effects.components.items()}
    noise = None
    if effects.size_error is not None and size[2] > size[0]:
        noise = float(np.nanmedian(effects.size_error[rows]) / (size[2] - size[0]))
    return replace(share, size=size, components=components, size_noise=noise)


def _quartiles(values: np.ndarray) -> Quartiles:
    low, median, high = np.nanquantile(values, (0.25, 0.5, 0.75))
    return float(low), float(median), float(high)


def _gap(effects: Effects, rows: np.ndarray) -> Gap:
    """T95 by order statistics, and the detectable gap."""
    size, error = np.abs(effects.value[rows]), effects.error[rows]
    call = effects.call[rows]
    tolerance = effects.tolerance
    near = tally(call[np.isfinite(call)], _reason(effects, rows, call))
    count, tail = len(size), (1 - conventions.LEVEL) / 2
    if not count:
        return Gap(problems=0, tolerance=tolerance, near=near)
    low, high = np.sort(np.maximum(size - 2 * error, 0)), np.sort(size + 2 * error)
    # So many of N are below the quantile, but once in 40 fewer than r, and once s or more.
    below = bdtr(np.arange(count + 1), count, conventions.WITHIN)
    r, s = map(int, np.searchsorted(below, [tail, 1 - tail]))
    middle = int(np.ceil(conventions.WITHIN * count)) - 1
    ends = float(low[r - 1]) if r else 0.0, float(high[s]) if s < count else None
    return Gap(
        problems=count,
        tolerance=tolerance,
        near=near,
        within=(float(low[middle]), float(high[middle])),
        within_interval=ends,
        above_three=float((size > conventions.CALLED * error).mean()),
        visible=float(np.quantile(conventions.CALLED * error, conventions.WITHIN)),
    )


def _mean(effects: Effects, selected: np.ndarray, rows: np.ndarray) -> Mean:
    value = effects.value[rows]
    if effects.predicted is not None:
        valid = True if effects.valid is None else effects.valid
        value = effects.predicted[selected & valid & np.isfinite(effects.predicted)]
    if len(value) < 2:
        return Mean(problems=int(rows.sum()))
    half = stdtrit(len(value) - 1, (1 + conventions.LEVEL) / 2) * mcse(value)
    mean = float(value.mean())
    interval = (float(mean - half), float(mean + half))
    return Mean(problems=int(rows.sum()), value=mean, of=len(value), interval=interval)
