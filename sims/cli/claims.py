"""``sims experiments`` and ``sims claims``: lists of experiments, claims and their answers."""

import json as formats
from pathlib import Path
from typing import Any

from sims.base.documents import read_yaml
from sims.base.errors import InputError, one_of
from sims.base.places import experiments, place
from sims.cli.listing import print_table
from sims.judgement.answers import Answer
from sims.judgement.wording import INTERVAL
from sims.study.ledger import read_run
from sims.study.papers import Claim, Paper, papers

ANSWER_KEYS = ("experiment", "id", "question", "status", "word", "always")
"""Facts about an answer in the JSON list of claims."""


def list_experiments(as_json: bool) -> None:
    """Print the title and the claims of each experiment."""
    rows: list[dict[str, Any]] = []
    for name in experiments():
        data = read_yaml(place("experiments") / name / "experiment.yaml")
        ids = dict.fromkeys(str(q.get("claim", q["id"])) for q in data["questions"])
        rows.append({"name": name, "title": str(data.get("title")), "claims": list(ids)})
    if as_json:
        print(formats.dumps(rows, indent=1, ensure_ascii=False))
        return
    cells = [(row["name"], row["title"], ", ".join(row["claims"])) for row in rows]
    print_table(("experiment", "title", "claims"), cells)
    print("Run one:  sims run NAME --fidelity smoke|standard|paper")


def list_claims(fidelity: str, paper: str | None, as_json: bool) -> None:
    """Print the claims of a paper, or of all, with the answers of the latest run.

    Raises:
        InputError: the paper is not in the registry.
    """
    source = Path("results", fidelity)
    answers = read_run(source, fidelity)
    if not answers:
        source = place("results/published")
        answers = read_run(source)
    registry = papers()
    if paper is not None and paper not in registry:
        allowed = one_of(registry, paper) or "a paper with a file in papers/"
        raise InputError("--paper", paper, allowed)
    chosen = registry if paper is None else {paper: registry[paper]}
    if as_json:
        listed = [row for entry in chosen.values() for row in _facts(entry, answers)]
        print(formats.dumps(listed, indent=1, ensure_ascii=False))
        return
    for entry in chosen.values():
        print(f"arXiv {entry.arxiv}", entry.title)
        print_table(("claim", "question", "answer", "how often"), _cells(entry, answers))
    note = f"Answers: {source}; {INTERVAL}s over problems in parentheses"
    print(note if answers else "No answers yet: make reproduce")


def _answers_to(claim: Claim, paper: Paper, answers: list[Answer]) -> list[Answer]:
    key = (paper.arxiv, claim.id)
    return [answer for answer in answers if (answer.paper, answer.claim) == key]


def _facts(paper: Paper, answers: list[Answer]) -> list[dict[str, Any]]:
    """Claims of a paper, for JSON."""
    rows = []
    for claim in (*paper.claims, *paper.ours):
        facts = []
        for answer in _answers_to(claim, paper, answers):
            facts.append({key: getattr(answer, key) for key in ANSWER_KEYS})
        claimed = {"paper": paper.arxiv, **claim.model_dump(), "claim": claim.id}
        rows.append({**claimed, "answers": facts})
    return rows


def _cells(paper: Paper, answers: list[Answer]) -> list[tuple[str, str, str, str]]:
    """Rows of a paper's table; a claim's name is in its first row only."""
    cells = []
    for claim in (*paper.claims, *paper.ours):
        name = claim.id
        for answer in _answers_to(claim, paper, answers):
            word = answer.spoken().replace("; ", "\n")
            cells.append((name, answer.question, word, answer.result.headline(True)))
            name = ""
        if name:
            known_by = "by algebra" if claim.algebra else "not covered"
            cells.append((name, claim.statement, known_by, claim.algebra))
    return cells
