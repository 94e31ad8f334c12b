"""Many claims at once: Holm's adjustment over the tested rows of one paper. No JAX."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from sims.judgement.verdict import Verdict
from sims.kinds import is_tested


def holm(p_values: ArrayLike, family: int = 0) -> np.ndarray:
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


def adjust(
    verdicts: Sequence[Verdict], claims: Mapping[str, int] = MappingProxyType({})
) -> list[Verdict]:
    """The verdicts of a ledger, each with its adjusted p-value, and open if that is too large.

    Args:
        verdicts: those that there are.
        claims: a paper's arXiv id to how many tested claims there are of it in all, judged or not:
            a part of a run must not have easier p-values than the whole.

    Tested are the rows of :data:`~sims.kinds.TESTED` kinds, which draws could have
    turned; the others stay as they are, without an adjusted p-value. A paper has two families, of
    all its tested claims each: "this claim is true" is what a refutation rejects, "this claim is
    false" what a support rejects. So the probability that the ledger refutes any true claim of the
    paper is at most 1 − level, and that it supports any false one likewise; the claims of another
    paper change nothing. In either family a claim decided the other way, or not at all, has p = 1.

    A verdict whose p-value is not known counts with 1 − level.
    """
    p = np.array([1 - v.level if v.p_value is None else v.p_value for v in verdicts])
    families = Counter(v.paper for v in verdicts if is_tested(v.kind))
    sizes = {paper: max(claims.get(paper, 0), count) for paper, count in families.items()}
    adjusted = np.ones(len(verdicts))
    for paper, size in sizes.items():
        for side in ("supported", "refuted"):
            chosen = [
                v.paper == paper and is_tested(v.kind) and v.verdict == side for v in verdicts
            ]
            adjusted[chosen] = holm(p[chosen], size)
    out: list[Verdict] = []
    for verdict, single, value in zip(verdicts, p, adjusted, strict=True):
        if not is_tested(verdict.kind):
            out.append(verdict)
            continue
        changed = replace(verdict, adjusted=float(value))
        if verdict.verdict != "inconclusive" and value > 1 - verdict.level + 1e-12:
            changed = replace(
                changed,
                verdict="inconclusive",
                reason=f"{verdict.verdict} by itself (p = {single:.2g}), but not among "
                f"{sizes[verdict.paper]} claims (Holm p = {value:.2g}): {verdict.reason}",
            )
        out.append(changed)
    return out
