"""The table of all answers as HTML: a row a question, then a row a claim that algebra decides."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from sims.judgement import conventions
from sims.judgement.answers import Answer
from sims.judgement.summaries import Gap, Share
from sims.report.text import MARKDOWN, environment, escape_markdown
from sims.study.papers import Claim, papers

TEMPLATE = Path(__file__).with_name("answer_table.html.j2")
KINDS = {"ours": "our question", "formula": "our formula", "own": "no paper"}
"""Subjects of questions that are no claims of a paper, in words."""


class Row(NamedTuple):
    """Texts of a row's cells, the page it leads to, and shares of problems by outcome."""

    paper: str
    question: Markup
    answer: str
    size: str
    holds: str = ""
    kind: str = ""
    experiment: str = ""
    link: str = ""
    stated: str = ""
    parts: Mapping[str, float] = {}

    @property
    def verdict(self) -> str:
        """Verdict on the claim as stated, without its numbers and reasons."""
        return re.split(r" in \d| \(", self.stated)[0]


def write_table(claims: Mapping[str, Sequence[Answer]]) -> str:
    """The table with its form, which a script shows, as HTML.

    Args:
        claims: answers by the id of their claim, in the order of the table.
    """
    template = environment(html=True).from_string(TEMPLATE.read_text("utf-8"))
    rows = [*rows_of(claims)]
    return template.render(rows=rows, papers=papers(), kinds=KINDS.values())


def rows_of(claims: Mapping[str, Sequence[Answer]]) -> Iterator[Row]:
    """Rows of the answers, and of the claims by algebra."""
    for answers in claims.values():
        yield from map(row_of, answers)
    for paper in papers().values():
        for claim in paper.every:
            if claim.algebra:
                yield row_by_algebra(paper.arxiv, claim)


def row_of(answer: Answer) -> Row:
    """Row of an answer."""
    result = answer.result
    near = result.near if isinstance(result, Gap) else None
    share = result if isinstance(result, Share) else Share(problems=0, simulated=near)
    counted = share.deciding
    part = f" ({answer.restriction})" if answer.restriction else ""
    return Row(
        paper=answer.paper,
        question=inline(answer.question + part),
        answer=answer.word_in_full(),
        size=answer.how_much() if isinstance(result, Share) else result.headline(),
        holds=answer.conditions.in_words() if answer.conditions else share.headline().split(";")[0],
        kind=KINDS.get(answer.subject, ""),
        experiment=answer.experiment,
        link=f"{answer.claim}.html",
        stated=answer.as_stated(),
        parts=counted.parts if counted and counted.total >= conventions.SHOWN else {},
    )


def row_by_algebra(paper: str, claim: Claim) -> Row:
    """Row of a claim that algebra decides, with its test."""
    case = claim.counterexample
    verdict = "false by algebra" if case else "true by algebra"
    return Row(paper, inline(claim.statement), verdict, claim.algebra, case)


def inline(text: str) -> Markup:
    """A plain text with code in backticks, as HTML."""
    return Markup(MARKDOWN.renderInline(escape_markdown(text)))
