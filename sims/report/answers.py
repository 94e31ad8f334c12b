"""Answers for people: a row a question, in Markdown and for the page."""

from collections.abc import Sequence
from pathlib import Path

from sims import files
from sims.judgement.answers import Answer
from sims.judgement.house import LEVEL
from sims.judgement.summaries import Share, Summary
from sims.papers import OwnClaim, papers
from sims.report.text import percent, significant

INTERVAL = f"{100 * LEVEL:.0f} % interval"


def spoken(one: Answer) -> str:
    """The word, and whether the claim always holds where it says so or does not."""
    always = f"; always: {one.always}" if one.says or one.always == "no" else ""
    return f"{one.word or 'estimate'}{always}"


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


def _counterexample(one: Answer, link: str) -> str:
    if one.problem is None and one.searched:
        among = f"none among {one.problems} problems, nor " if one.problems else "none "
        return f"{among}in a search over {one.searched:,} more"
    if one.problem is None:
        return "–"
    return f"{link}{', by theory, in a search' if one.searched else ''}"


def _share(of: Share) -> str:
    return f"{_span(*of.bracket)} ({INTERVAL} {_span(*of.interval)}, {of.of} problems)"


def _span(low: float, high: float | None) -> str:
    first, last = percent(low), "∞" if high is None else percent(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def table(answers: Sequence[Answer], figure: str) -> str:
    """The answers as a Markdown table.

    Args:
        answers: one a row.
        figure: the link to a figure, with ``{}`` for the experiment.
    """
    head = ["question", "answer", "share or tolerance", "where it changes", "figure"]
    lines = [[*head, "counterexample"], ["---"] * 6]
    for one in answers:
        parts = [number(one, one.tolerance)]
        parts += [f"{name}: {number(of, one.tolerance)}" for name, of in one.strata.items()]
        link, where = f"counterexamples/{one.id}.yaml", one.restriction
        cells = [
            f"{one.question} ({where})" if where else one.question,
            spoken(one),
            "; ".join(parts),
            one.stops or "–",
            f"[{one.experiment}]({figure.format(one.experiment)})",
            _counterexample(one, f"[{link}]({link})"),
        ]
        lines.append([cell.replace("|", "\\|") for cell in cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _by_algebra(claim: OwnClaim) -> str:
    against = claim.counterexample
    return f"false by algebra, {against}" if against else "true by algebra"


def write_answers_page(answers: Sequence[Answer], fidelity: str, output: Path) -> None:
    """Write the answers of a run as Markdown, figures and counterexamples beside it."""
    laws = {f"- {one.experiment}: {one.law}": None for one in answers if one.law}
    asked = {one.paper for one in answers}
    algebra = [
        f"- `{claim.id}`: {_by_algebra(claim)}, tested in {claim.algebra}"
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
