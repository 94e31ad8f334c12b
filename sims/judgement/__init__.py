"""Judgement: from effects and their Monte Carlo errors to three-valued verdicts.

Analyses use the names below and nothing else of this package.
"""

from sims.judgement.best import near_optimal, optimal_set
from sims.judgement.decide import (
    bound,
    equivalence,
    identity,
    ordering,
    rate,
    remainder,
)
from sims.judgement.evidence import Evidence
from sims.judgement.multiplicity import adjust, holm
from sims.judgement.settle import Finding
from sims.judgement.verdict import VERDICTS, Verdict, read_ledger, write_verdicts

__all__ = [
    "VERDICTS",
    "Evidence",
    "Finding",
    "Verdict",
    "adjust",
    "bound",
    "equivalence",
    "holm",
    "identity",
    "near_optimal",
    "optimal_set",
    "ordering",
    "rate",
    "read_ledger",
    "remainder",
    "write_verdicts",
]
