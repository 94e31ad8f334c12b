"""False alarms: claims at their boundary, where wrong verdicts are as likely as they can be."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

from sims.audit.runs import LEVEL, SIZES, SURE, candidates, looks, power_law
from sims.estimates import mcse, skewness
from sims.judgement import (
    Evidence,
    Finding,
    Verdict,
    adjust,
    bound,
    equivalence,
    near_optimal,
    ordering,
    rate,
    remainder,
)

MARGIN = 0.2
"""Many MCSE wide: only the boundary itself keeps a false claim from being supported."""
FAMILY = 12
"""Claims of a small ledger."""
BIAS = 0.5 * MARGIN
"""What a stated bound allows, and an effect has, of an error that is not random."""


@dataclass(frozen=True)
class Case:
    """A claim whose truth is known.

    Attributes:
        kind: of claim.
        truth: whether it is true, and how.
        wrong: the verdict that would be wrong.
        values: batches (runs, batches, k).
        decide: from the batches (b, k) so far of a run to a verdict.
        watched: looked at again and again; otherwise once, at all batches.
    """

    kind: str
    truth: str
    wrong: str
    values: np.ndarray
    decide: Callable[[np.ndarray], str]
    watched: bool = True


def alarms(real: np.ndarray) -> list[dict[str, Any]]:
    """Count wrong verdicts.

    Args:
        real: batches (runs, batches, k) of the engine, relative to the truth: their mean is 1.

    Returns:
        A row a case: claim, what, wrong, times, runs, most (allowed), holds.
    """
    cases = _cases(real)
    runs, count, _ = real.shape
    most = int(binom.ppf(1 - (1 - SURE) / len(cases), runs, 1 - LEVEL))
    rows = []
    for case in cases:
        at = looks(count) if case.watched else [count]
        times = sum(any(case.decide(run[:b]) == case.wrong for b in at) for run in case.values)
        rows.append(
            {
                "claim": case.kind,
                "what": case.truth,
                "wrong": case.wrong,
                "times": int(times),
                "runs": runs,
                "most": most,
                "holds": bool(times <= most),
            }
        )
    return rows


def _cases(real: np.ndarray) -> list[Case]:
    runs, count, width = real.shape
    rng = np.random.default_rng(7)
    noisy, shared = power_law(rng, runs, count, 0.0), power_law(rng, runs, count, 0.5)
    many = MARGIN + rng.normal(size=(runs, count, FAMILY)) / 10
    rivals = candidates(rng, runs, count)
    level = rivals.copy()
    level[..., 0] *= 1 + MARGIN  # worse than each rival by just the margin
    one = level.copy()
    one[..., 2:] *= 2  # the other rivals are no danger
    last, at_last = real[..., -1:], np.eye(width)[-1]
    gap, slope = MARGIN, _fitted(rate, expected=-1.0 + MARGIN)
    within, below = partial(_decided, equivalence, MARGIN), partial(_decided, bound, 0.0)
    rising = _decided(ordering, 0.0)
    order = _fitted(remainder, order=1.0 - MARGIN)
    return [
        Case("equivalence", "true: no gap at all, no margin", "refuted", real,
             _decided(equivalence, 0.0)),
        Case("equivalence", "true: one gap at the margin", "refuted", real, within(gap * at_last)),
        Case("equivalence", "false: a gap at the margin", "supported", last, within(gap)),
        Case("equivalence, t", "false: a gap at the margin", "supported", last,
             within(gap, fixed=True), watched=False),
        Case("equivalence with a bias", "true: a gap at the margin, the bias on top", "refuted",
             last, within(gap + BIAS, bounds=BIAS)),
        Case("equivalence with a bias", "false: a gap at the margin, the bias hides it",
             "supported", last, within(gap - BIAS, bounds=BIAS)),
        Case("bound", "true: no excess", "refuted", real, below()),
        Case("bound", "false: excess at the bound", "supported", last, below()),
        Case("bound, t", "false: excess at the bound", "supported", last, below(fixed=True),
             watched=False),
        Case("ordering", "false: no rise at all", "supported", last, rising),
        Case("ordering", "true: rises at 0", "refuted", real, rising),
        Case("rate", "true: slope as expected, no margin", "refuted", noisy,
             _fitted(rate, 0.0, expected=-1.0)),
        Case("rate", "true: slope at the margin", "refuted", noisy, slope),
        Case("rate", "false: slope at the margin", "supported", noisy, slope),
        Case("remainder", "true: order as expected, no margin", "refuted", -shared,
             _fitted(remainder, 0.0, order=1.0)),
        Case("remainder", "true: order at the margin", "refuted", -shared, order),
        Case("remainder", "false: order at the margin", "supported", -shared, order),
        Case("near-optimum, t", "true: at the margin from every rival", "refuted", level, _best,
             watched=False),
        Case("near-optimum, t", "false: at the margin from one rival", "supported", one, _best,
             watched=False),
        Case(f"{FAMILY} claims, t (Holm)", "true: each at the margin", "refuted", many,
             _ledger("refuted"), watched=False),
        Case(f"{FAMILY} claims, t (Holm)", "false: each at the margin", "supported", many,
             _ledger("supported"), watched=False),
    ]  # fmt: skip


def _evidence(
    effects: np.ndarray, values: np.ndarray, fixed: bool = False, bounds: float = 0.0
) -> Evidence:
    """Effects (k,) with the errors of batches (B, k)."""
    size = len(values)
    return Evidence(
        effects, mcse(values), size, replicates=size, fixed=fixed, bounds=bounds,
        skewness=skewness(values),
    )  # fmt: skip


def _decided(
    test: Callable[..., Finding], margin: float, shift: np.ndarray | float = 0.0,
    fixed: bool = False, bounds: float = 0.0,
) -> Callable[[np.ndarray], str]:  # fmt: skip
    """A claim on means of batches less 1, each with ``shift`` added to it."""

    def decide(values: np.ndarray) -> str:
        evidence = _evidence(values.mean(0) - 1 + shift, values, fixed, bounds)
        return test(evidence, margin=margin, level=LEVEL).verdict

    return decide


def _fitted(
    decide: Callable[..., Finding], margin: float = MARGIN, **claimed: float
) -> Callable[[np.ndarray], str]:
    """A claim on the slope of a law: ``rate(expected=…)`` or ``remainder(order=…)``."""

    def verdict(values: np.ndarray) -> str:
        return decide(
            _evidence(values.mean(0), values), SIZES, **claimed, margin=margin, level=LEVEL,
            values=values,
        ).verdict  # fmt: skip

    return verdict


def _best(values: np.ndarray) -> str:
    return near_optimal([(values, 0)], margin=MARGIN, level=LEVEL, replicates=len(values)).verdict


def _ledger(wrong: str) -> Callable[[np.ndarray], str]:
    """``wrong`` if any claim of a ledger ends so after Holm's adjustment."""

    def row(index: int, finding: Finding) -> Verdict:
        return Verdict(
            str(index), "audit", "all", "", finding.verdict, finding.effect, finding.interval,
            MARGIN, LEVEL, finding.replicates, "", finding.p_value,
        )  # fmt: skip

    def decide(values: np.ndarray) -> str:
        findings = [
            equivalence(_evidence(column.mean(), column, True), margin=MARGIN, level=LEVEL)
            for column in values.T
        ]
        if all(f.verdict != wrong for f in findings):
            return "inconclusive"
        rows = adjust([row(i, f) for i, f in enumerate(findings)])
        return wrong if any(v.verdict == wrong for v in rows) else "inconclusive"

    return decide
