"""Verdicts and answers by paper and claim, as the listing, the page and the overview show them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sims.judgement.answers import Answer
from sims.judgement.verdict import Verdict
from sims.kinds import KINDS
from sims.papers import Paper


@dataclass(frozen=True)
class ClaimRows:
    """A claim and the verdicts on it.

    Attributes:
        id: of the claim.
        statement: the claim in a sentence.
        verdicts: in the ledger's order; none if no experiment makes it.
        answers: to the questions about it, likewise.
        source: where the paper says so, "" if the claim is ours.
        reconstruction: what of the claim's precise form is ours, "" likewise.
        algebra: the test that shows it, "" where algebra does not decide it.
        counterexample: where it fails, "" unless algebra refutes it.
    """

    id: str
    statement: str
    verdicts: list[Verdict]
    answers: list[Answer]
    source: str = ""
    reconstruction: str = ""
    algebra: str = ""
    counterexample: str = ""

    @property
    def covered(self) -> bool:
        """Whether something is said of the claim."""
        return bool(self.verdicts or self.answers or self.algebra)


@dataclass(frozen=True)
class PaperRows:
    """A paper's claims with the verdicts on them.

    Attributes:
        arxiv: the paper's id.
        about: the paper's file, None if the working directory has none.
        claims: what the paper claims; of an unknown paper, all that there are verdicts on.
        ours: what we claim beside it, and what is judged but not listed any more.
    """

    arxiv: str
    about: Paper | None
    claims: list[ClaimRows]
    ours: list[ClaimRows]


def by_kind(ledger: Sequence[Verdict]) -> dict[str, Counter[str]]:
    """Kind of row to how many of its rows came to each verdict; ``any`` where a row has no kind."""
    counts: dict[str, Counter[str]] = {
        kind or "any": Counter(v.verdict for v in ledger if v.kind == kind)
        for kind in (*reversed(KINDS), None)
    }
    return {kind: count for kind, count in counts.items() if count}


def by_paper(
    ledger: Sequence[Verdict], papers: Mapping[str, Paper], answers: Sequence[Answer] = ()
) -> list[PaperRows]:
    """The rows of a ledger by paper and claim.

    Args:
        ledger: the verdicts.
        papers: those that are known, by arXiv id; their order, and that of their claims, is the
            result's. Papers that only the ledger names come last.
        answers: those of the same run.
    """
    groups: list[PaperRows] = []
    named = (*(v.paper for v in ledger), *(a.paper for a in answers))
    for id in dict.fromkeys((*papers, *named)):
        found: dict[str, ClaimRows] = {}
        paper = papers.get(id)
        claims, ours = (paper.claims, paper.ours) if paper else ([], [])
        for c in (*claims, *ours):
            found[c.id] = ClaimRows(**vars(c), verdicts=[], answers=[])
        for v in (v for v in ledger if v.paper == id):
            found.setdefault(v.claim, ClaimRows(v.claim, v.statement, [], [])).verdicts.append(v)
        for a in (a for a in answers if a.paper == id):
            found.setdefault(a.claim, ClaimRows(a.claim, a.question, [], [])).answers.append(a)
        rows = [*found.values()]
        count = len(claims) if paper else len(rows)
        groups.append(PaperRows(id, paper, rows[:count], rows[count:]))
    return groups
