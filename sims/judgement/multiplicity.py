"""Many claims at once: Holm's adjustment over the rows of a ledger. No jax."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sims.judgement.verdict import Verdict


def holm(p_values: Any, family: int = 0) -> np.ndarray:
    """Holm's adjusted p-values: ``max_{j ≤ i} min(1, (m − j + 1) p_(j))`` in ascending order.

    Args:
        p_values: (k,), each valid by itself.
        family: m, how many tests there are; those whose p-value is not among the k count with
            p = 1. At least k.

    Rejecting where they are at most α is wrong anywhere with probability at most α, however the
    tests depend on each other. Source: Holm (1979), Scand. J. Statist. 6, 65–70.
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    steps = np.minimum(1.0, (max(family, len(p)) - np.arange(len(p))) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def adjust(verdicts: Sequence[Verdict], claims: int = 0) -> list[Verdict]:
    """The verdicts of a ledger, each with its adjusted p-value, and open if that is too large.

    Args:
        verdicts: those that there are.
        claims: how many claims there are in all, judged or not: a part of a run must not have
            easier p-values than the whole.

    Two families, of all the ledger's claims each: "this claim is true" is what a refutation
    rejects, "this claim is false" what a support rejects. So the probability that the ledger
    refutes any true claim is at most 1 − level, and that it supports any false one likewise. In
    either family a claim decided the other way, or not at all, has p = 1.

    A verdict whose p-value is not known counts with 1 − level.
    """
    p = np.array([1 - v.level if v.p_value is None else v.p_value for v in verdicts])
    kinds = np.array([v.verdict for v in verdicts])
    adjusted = np.ones(len(verdicts))
    for kind in ("supported", "refuted"):
        chosen = kinds == kind
        adjusted[chosen] = holm(np.where(chosen, p, 1.0), claims)[chosen]
    out: list[Verdict] = []
    for verdict, value in zip(verdicts, adjusted, strict=True):
        changed = replace(verdict, adjusted=float(value))
        if verdict.verdict != "inconclusive" and value > 1 - verdict.level + 1e-12:
            changed = replace(
                changed,
                verdict="inconclusive",
                reason=f"{verdict.verdict} by itself (p = {p[len(out)]:.2g}), but not among "
                f"{max(claims, len(verdicts))} claims (Holm p = {value:.2g}): {verdict.reason}",
            )
        out.append(changed)
    return out
