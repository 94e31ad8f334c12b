"""Answers for people: a row a question, in Markdown and for the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sims import files
from sims.judgement.answers import Answer, Share, Summary
from sims.judgement.house import LEVEL
from sims.papers import papers
from sims.report.text import percent, significant

INTERVAL = f"{100 * LEVEL:.0f} % interval"


class Row(NamedTuple):
    """A question and its answer in words.

    Attributes:
        question: in one line.
        answer: the word, if it is a paper's sentence, and whether it always holds.
        number: share, T95 or mean with its interval, of all problems and of the strata.
        stops: along which parameters it changes.
        experiment: that has the figure.
        counterexample: its file beside the answers; "" if there is none.
    """

    question: str
    answer: str
    number: str
    stops: str
    experiment: str
    counterexample: str


def row(one: Answer) -> Row:
    """An answer in words."""
    word = one.word or "estimate"
    always = f"always: {one.always}" if one.says or one.always == "no" else ""
    parts = [number(one, one.tolerance)]
    parts += [f"{name}: {number(part, one.tolerance)}" for name, part in one.strata.items()]
    return Row(
        one.question + (f" ({one.restriction})" if one.restriction else ""),
        "; ".join(filter(None, [word, always])),
        "; ".join(parts),
        one.stops or "–",
        one.experiment,
        f"counterexamples/{one.id}.yaml" if one.problem is not None else "",
    )


def number(of: Summary, tolerance: float | None = None) -> str:
    """Share, T95 or mean with its interval and the number of problems."""
    said = []
    if of.within is not None and of.within_interval is not None:
        interval = f"{INTERVAL} {_span(*of.within_interval)}, {of.problems} problems"
        said.append(f"T95 {_span(*of.within)} ({interval})")
    inside = f"within {percent(tolerance)} in " if tolerance else ""
    if of.theory is not None:
        said.append(f"{_share(of.theory)} by theory")
    if of.simulated is not None:
        contradict = f", {of.contradictions} contradict theory" if of.contradictions else ""
        said.append(f"{inside}{_share(of.simulated)} by simulation{contradict}")
    if of.mean is not None and of.mean_interval is not None:
        ends = " to ".join(map(significant, of.mean_interval))
        said.append(f"{significant(of.mean)} ({INTERVAL} {ends}, {of.mean_of} problems)")
    return "; ".join(said) or "–"


def _share(of: Share) -> str:
    return f"{_span(*of.bracket)} ({INTERVAL} {_span(*of.interval)}, {of.of} problems)"


def _span(low: float, high: float | None) -> str:
    first, last = percent(low), "∞" if high is None else percent(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def table(answers: Sequence[Answer], figures: str = "") -> str:
    """The answers as a Markdown table.

    Args:
        answers: one a row.
        figures: where a figure is, with ``{}`` for the experiment; "" leaves figures and
            counterexamples out.
    """
    head = ["question", "answer", "share or tolerance", "where it changes"]
    rows = []
    for one in map(row, answers):
        cells = [one.question, one.answer, one.number, one.stops]
        if figures:
            link = f"[{one.counterexample}]({one.counterexample})" if one.counterexample else "–"
            cells += [f"[{one.experiment}]({figures.format(one.experiment)})", link]
        rows.append([cell.replace("|", "\\|") for cell in cells])
    head += ["figure", "counterexample"] if figures else []
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_answers_page(answers: Sequence[Answer], fidelity: str, output: Path) -> None:
    """Write the answers of a run as Markdown, figures and counterexamples beside it."""
    laws = {f"- {one.experiment}: {one.law}": None for one in answers if one.law}
    asked = {one.paper for one in answers}
    algebra = [
        f"- `{claim.id}`: true by algebra, tested in {claim.algebra}"
        for paper in papers().values()
        for claim in (*paper.claims, *paper.ours)
        if claim.algebra and paper.arxiv in asked
    ]
    salts = ", ".join(dict.fromkeys(one.salt for one in answers))
    lines = [
        "# Answers",
        "",
        f"Each question is asked of problems drawn from a law, at fidelity {fidelity}. "
        "The unit of every interval is the problem.",
        "",
        table(answers, "{}/figure.png"),
        "",
        *algebra,
        *laws,
        f"- Salt of the seeds: {salts}",
        "",
    ]
    files.write("\n".join(lines), output, f"answers.md of {fidelity}")
