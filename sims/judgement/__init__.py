"""Judgement: from effects and their Monte Carlo errors to three-valued verdicts.

Analyses use the names below and nothing else of this package.
"""

from sims.judgement.settle import VERDICTS, Finding, Rule
from sims.judgement.tests import decide, optimal_set
from sims.judgement.verdict import Verdict, adjust, read_ledger, write_verdicts

__all__ = [
    "VERDICTS",
    "Finding",
    "Rule",
    "Verdict",
    "adjust",
    "decide",
    "optimal_set",
    "read_ledger",
    "write_verdicts",
]
