"""Tables of answers, in Markdown. No JAX."""

import re
from collections.abc import Callable, Iterable, Sequence

from sims.judgement import conventions
from sims.judgement.answers import Answer
from sims.judgement.summaries import Share
from sims.report.text import escape_markdown
from sims.study.papers import Claim, Paper, papers

BRIEF_COLUMNS = ("question", "answer", "holds", "fails / level / undecided", "by how much")
COLUMNS = (*BRIEF_COLUMNS, "as stated", "where it changes", "decided by")
Link = Callable[[Answer], str]
FURTHER = {"Validation of the method": "formula", "Claims of no paper": "own"}
"""Titles of tables to the subjects of their answers."""


def listing(
    paper: Paper,
    answers: Sequence[Answer],
    link: Link | None = None,
    brief: bool = False,
    first: bool = False,
) -> str:
    """Markdown table of the answers on a paper's claims, followed by claims decided by algebra.

    Args:
        paper: the paper.
        answers: answers of a run.
        link: function from an answer to its link; None for no links.
        brief: fewer columns, and no algebra.
        first: only one answer on each claim, the first with a word if any has one, as in a README.
    """
    rows = answers_on(paper, answers, "paper")
    if not first:
        return _with_algebra(table(rows, link, brief), [] if brief else paper.claims)
    worded_first = sorted(rows, key=lambda answer: answer.word == conventions.TOO_FEW)
    firsts = {answer.claim: answer for answer in reversed(worded_first)}
    return table([answer for answer in rows if firsts[answer.claim] is answer], link, brief)


def answers_on(paper: Paper, answers: Sequence[Answer], subject: str) -> list[Answer]:
    """Confirmatory answers on a paper's claims, in their order."""
    order = [claim.id for claim in paper.every]
    wanted = (paper.arxiv, subject, "confirmatory")
    rows = [one for one in answers if (one.paper, one.subject, one.status) == wanted]
    return sorted(rows, key=lambda answer: order.index(answer.claim))


def table(answers: Sequence[Answer], link: Link | None = None, brief: bool = False) -> str:
    """Table with one row per answer; "" without answers."""
    if not answers:
        return ""
    lines = [list(BRIEF_COLUMNS if brief else COLUMNS)]
    lines.append(["---"] * len(lines[0]))
    lines += [cells_of(answer, link, brief) for answer in answers]
    separator = "|" if brief else " | "
    rows = []
    for line in lines:
        rows.append(f"{separator.lstrip()}{separator.join(line)}{separator.rstrip()}\n")
    return "".join(rows)


def cells_of(answer: Answer, link: Link | None = None, brief: bool = False) -> list[str]:
    """Cells of an answer's row in Markdown, in the order of the columns."""
    part = f" ({answer.restriction})" if answer.restriction else ""
    question = escape_markdown(f"{answer.question}{part}")
    if link and (target := link(answer)):
        question = f"[{question}]({target})"
    result, word = answer.result, answer.word_in_full()
    if answer.robust is not None and answer.robust.contradicting:
        word += f"; depends on {answer.robust.choice}"
    holds = answer.conditions.in_words() if answer.conditions else result.headline()
    others = result.others() if isinstance(result, Share) else ""
    row = [question, word, escape_markdown(holds), others, answer.how_much()]
    if not brief:
        row += [answer.as_stated(), escape_markdown(answer.changes()), result.decided_by()]
    return [cell.replace("|", "&#124;") for cell in row]


def _with_algebra(text: str, claims: Sequence[Claim]) -> str:
    """A table, followed by lines on the claims that algebra decides."""
    lines = [text]
    for claim in claims:
        if claim.algebra:
            verdict = f"false, {claim.counterexample}" if claim.counterexample else "true"
            text = escape_markdown(f"{verdict}: {claim.statement}")
            lines.append(f"- By algebra {text} (`{claim.algebra}`)")
    return "\n".join(lines).strip() + "\n"


def further_tables(
    answers: Sequence[Answer], link: Link | None = None, brief: bool = False
) -> dict[str, str]:
    """Tables of the answers on claims that are no paper's own, by title; "" without answers.

    Our claims come first, for all papers, with those decided by algebra. Then come our formulas,
    which are compared with simulation, and claims of no paper.
    """
    rows, claims = list[Answer](), list[Claim]()
    for paper in papers().values():
        rows += answers_on(paper, answers, "ours")
        claims += paper.ours
    tables = {"Further findings": _with_algebra(table(rows, link, brief), [] if brief else claims)}
    for title, subject in FURTHER.items():
        asked = [answer for answer in answers if answer.subject == subject]
        tables[title] = table(asked, link, brief)
    return tables


def all_tables(answers: Sequence[Answer]) -> str:
    """Tables of all answers with a word: by paper, then our claims, then our formulas."""
    sections = {}
    for paper in papers().values():
        sections[f"{paper.title} (arXiv {paper.arxiv})"] = listing(paper, answers)
    sections |= further_tables(answers)
    parts = [(title, text.strip()) for title, text in sections.items()]
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in parts if text)


def by_claim(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """Answers by the id of their claim, confirmatory ones first."""
    claims = dict[str, list[Answer]]()
    for answer in answers:
        claims.setdefault(answer.claim, []).append(answer)
    return {claim: sorted(rows, key=lambda answer: answer.status) for claim, rows in claims.items()}


def filled(readme: str, name: str, text: str) -> str:
    """README with a text between the mark ``<!--answers:NAME-->`` and the next ``<!--end-->``.

    Percentages are without a space. In tables ranges have a dash, except next to a minus sign,
    counts of problems have no noun, and slashes no spaces.
    """

    def narrow(row: re.Match[str]) -> str:
        cells = row[0].replace(" problems (", " (").replace(" / ", "/")
        return re.sub(r"(?<=[( ])(\d[\d.]*) to (?=\d)", r"\1–", cells)

    text = re.sub(r"(?<=\d) %", "%", text)
    text = re.sub(r"^\|.*", narrow, text, flags=re.MULTILINE)
    before, mark, rest = readme.partition(f"<!--answers:{name}-->\n")
    _, end, after = rest.partition("<!--end-->")
    return f"{before}{mark}{text}{end}{after}" if mark and end else readme
