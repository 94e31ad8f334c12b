"""``sims experiments``, ``claims`` and ``protocol``: what is asked, and how it was answered."""

import json as formats
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from sims.base.documents import read_yaml
from sims.base.errors import InputError, one_of
from sims.base.files import replace
from sims.base.places import experiments, place
from sims.base.validation import parse
from sims.cli.listing import print_table
from sims.judgement.answers import Answer
from sims.judgement.wording import INTERVAL
from sims.study.ledger import PUBLISHED, known_answers
from sims.study.papers import Claim, papers
from sims.study.schema import ExperimentSpec

Sources = dict[Path, list[Answer]]
"""Answers by their folder."""
ANSWER_KEYS = ("experiment", "id", "question", "status", "word", "always")
"""Facts about an answer in the JSON list of claims."""


def list_experiments(as_json: bool) -> None:
    """Print the title and the claims of each experiment.

    Raises:
        InputError: an experiment's file cannot be read, or does not fit the schema.
    """
    rows: list[dict[str, Any]] = []
    for name in experiments():
        path = place("experiments") / name / "experiment.yaml"
        spec = parse(ExperimentSpec, read_yaml(path), str(path))
        ids = dict.fromkeys(question.claim or question.id for question in spec.questions)
        rows.append({"name": name, "title": spec.title, "claims": list(ids)})
    if as_json:
        print(formats.dumps(rows, indent=1, ensure_ascii=False))
        return
    cells = [(row["name"], row["title"], ", ".join(row["claims"])) for row in rows]
    print_table(("experiment", "title", "claims"), cells)
    print("Run one:  sims run NAME --fidelity smoke|standard|paper")


def list_claims(fidelity: str, paper: str | None, as_json: bool) -> None:
    """Print the claims of a paper, or of all, with the latest run's and the published answers.

    Raises:
        InputError: the paper is not in the registry.
    """
    sources = known_answers(fidelity)
    registry = papers()
    if paper is not None and paper not in registry:
        allowed = one_of(registry, paper) or "a paper with a file in papers/"
        raise InputError("--paper", paper, allowed)
    chosen = registry if paper is None else {paper: registry[paper]}
    claims = {f"arXiv {id} {entry.title}": (id, entry.every) for id, entry in chosen.items()}
    if paper is None and (own := _own_claims(sources)):
        claims["Claims of no paper"] = ("", own)
    if as_json:
        listed = []
        for group in claims.values():
            listed += _facts(*group, sources)
        print(formats.dumps(listed, indent=1, ensure_ascii=False))
        return
    for title, group in claims.items():
        print(title)
        print_table(("claim", "question", "answer", "how often"), _cells(*group, sources))
    counts = []
    for folder, answers in sources.items():
        if answers:
            counts.append(f"{folder} ({len(answers)})")
    print(f"Answers: {', '.join(counts)}; {INTERVAL}s over problems in parentheses")


def _own_claims(sources: Sources) -> list[Claim]:
    """Claims of no paper that an answer states."""
    claims = {}
    for answer in chain.from_iterable(sources.values()):
        if answer.own:
            stated = {"id": answer.claim, "statement": answer.own}
            claims[answer.claim] = Claim.model_validate(stated)
    return [*claims.values()]


def _answers_to(claim: Claim, paper: str, sources: Sources) -> list[tuple[Path, Answer]]:
    """Answers to a claim, each with its folder, those of runs in this directory first."""
    chosen = []
    for folder, answers in sources.items():
        for answer in answers:
            if (answer.paper, answer.claim) == (paper, claim.id):
                chosen.append((folder, answer))
    return chosen


def _facts(paper: str, claims: Sequence[Claim], sources: Sources) -> list[dict[str, Any]]:
    """Claims of a paper, for JSON."""
    rows = []
    for claim in claims:
        facts = []
        for folder, answer in _answers_to(claim, paper, sources):
            known = {key: getattr(answer, key) for key in ANSWER_KEYS}
            facts.append({**known, "folder": str(folder)})
        claimed = {"paper": paper, **claim.model_dump(), "claim": claim.id}
        rows.append({**claimed, "answers": facts})
    return rows


def _cells(
    paper: str, claims: Sequence[Claim], sources: Sources
) -> list[tuple[str, str, str, str]]:
    """Rows of a paper's table; a claim's name is in its first row only."""
    cells = []
    for claim in claims:
        name = claim.id
        for folder, answer in _answers_to(claim, paper, sources):
            question = answer.question
            if folder.name != PUBLISHED.name:
                question += f" [{folder / answer.experiment}]"
            word = answer.spoken().replace("; ", "\n")
            cells.append((name, question, word, answer.result.headline()))
            name = ""
        if name:
            known_by = "by algebra" if claim.algebra else "not covered"
            cells.append((name, claim.statement, known_by, claim.algebra))
    return cells


def write_protocol(experiment: str | None, output: Path | None) -> None:
    """Write the protocol of an experiment, or of all, to a file or to standard output."""
    from sims.report.protocol import protocol

    names = experiments() if experiment is None else [experiment]
    text = "\n".join(map(protocol, names))
    if output is None:
        print(text)
    else:
        replace(text.encode(), output)
