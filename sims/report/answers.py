"""Answers for people, in Markdown: the table of all, and the page of an experiment. No JAX."""

from collections.abc import Callable, Iterable, Sequence

from sims.judgement.answers import Answer
from sims.judgement.summaries import Mean, Result, Share
from sims.judgement.wording import INTERVAL
from sims.study.papers import MAIN, Paper, PaperClaim, papers
from sims.study.schema import ExperimentSpec

COLUMNS = ("question", "answer", "how often", "by how much", "where it changes", "decided by")
BRIEF_COLUMNS = COLUMNS[:4]
MOST_STRATA = 4
"""Strata of an answer that its page shows, whether they differ or not."""
MOST_OTHERS = 5
"""Further answers on a claim that its page shows."""


def listing(
    paper: Paper,
    answers: Sequence[Answer],
    link: Callable[[Answer], str] | None = None,
    brief: bool = False,
) -> str:
    """The confirmatory answers on a paper's claims as a Markdown table, and what is algebra.

    Args:
        paper: which one.
        answers: of a run.
        link: of an answer, to what is said of it; None for no links.
        brief: the first answer on each claim alone; without links, as in a README, no algebra.
    """
    order = [claim.id for claim in (*paper.claims, *paper.ours)]
    rows = [
        answer
        for answer in answers
        if answer.paper == paper.arxiv and answer.status == "confirmatory"
    ]
    rows.sort(key=lambda answer: order.index(answer.claim))
    if brief:
        rows = list({answer.claim: answer for answer in reversed(rows)}.values())[::-1]
    lines = [list(BRIEF_COLUMNS if brief else COLUMNS)]
    lines.append(["---"] * len(lines[0]))
    for answer in rows:
        part = f" ({answer.restriction})" if answer.restriction else ""
        question = f"[{answer.question}{part}]({link(answer)})" if link else answer.question + part
        how_often, how_much = _sizes(answer, brief)
        line = [question, answer.spoken(), how_often, how_much]
        if not brief:
            changes = [change.in_words() for change in answer.where]
            line += ["; ".join(changes), answer.result.decided_by()]
        lines.append(line)
    cells = [[cell.replace("|", "&#124;") for cell in line] for line in lines]
    table = [f"|{'|'.join(c)}|" if brief else f"| {' | '.join(c)} |" for c in cells]
    algebraic = [c for c in (*paper.claims, *paper.ours) if c.algebra and (link or not brief)]
    algebra = [
        f"- By algebra {f'false, {c.counterexample}' if c.counterexample else 'true'}: "
        f"{c.statement} (`{c.algebra}`)"
        for c in algebraic
    ]
    return "\n".join([*(table if rows else ()), "", *algebra]).strip() + "\n"


def _sizes(answer: Answer, short: bool) -> tuple[str, str]:
    """How often a claim holds, with the number of problems, and by how much."""
    result = answer.result
    headline = result.headline(short=short)
    if answer.conditions is not None:
        return answer.conditions.in_words(short), ""
    if isinstance(result, Share):
        return f"{headline}, N {result.answered}", result.how_much(short=short)
    return "–" if isinstance(result, Mean) else f"N {result.problems}", headline


def tables(answers: Sequence[Answer]) -> dict[str, str]:
    """What a README shows of a run: its table of the main paper, and a line a neighbour."""
    neighbours = []
    for id, paper in (known := papers()).items():
        rows = [a for a in answers if a.paper == id and a.status == "confirmatory"]
        if rows and id != MAIN:
            names = [a.experiment for a in rows]
            answer = next(a for a in rows if a.experiment == max(names, key=names.count))
            verdict = f"**{answer.word.capitalize()}**: {answer.result.headline(short=True)}"
            neighbours.append(
                f"- [{paper.title}](https://arxiv.org/abs/{id}): {answer.question} {verdict}."
            )
    main = listing(known[MAIN], answers, brief=True) if MAIN in known else ""
    return {"main": main, "neighbours": "\n".join(neighbours) + "\n"}


def filled(readme: str, name: str, text: str) -> str:
    """A README with a text between its mark ``<!-- answers NAME -->`` and the next ``<!-- end``."""
    before, mark, rest = readme.partition(f"<!-- answers {name} -->\n")
    _, end, after = rest.partition("<!-- end")
    return f"{before}{mark}{text}{end}{after}" if mark and end else readme


def page(answers: Sequence[Answer], fidelity: str, derivation: str = "") -> str:
    """What is known of a claim, as Markdown below its first question.

    The first answer in full, with the worst problem and the command that runs it; the claim's
    sentence; up to :data:`MOST_OTHERS` further answers in a line each; and the formula.

    Args:
        answers: on the claim, as :func:`by_claim` has them.
        fidelity: whose folder of results has the problems.
        derivation: the section of the documentation, from ``docs/``, where the claim names none.
    """
    first, *others = answers
    where = f" Asked of: {first.restriction}." if first.restriction else ""
    lines = [f"**{first.spoken().capitalize()}.** {first.result.details()}.{where}", ""]
    lines += _strata(first)
    if first.where:
        changes = [change.in_words(short=True) for change in first.where]
        lines.append(f"- decided problems: {'; '.join(changes)}")
    if first.problem is not None:
        by = " (by theory, in a search)" if first.searched else ""
        lines.append(f"- It fails most surely in {_command(first, fidelity)}{by}.")
    elif first.searched:
        lines.append(
            f"- No failure was found, nor in a search over {first.searched:,} more problems."
        )
    paper = papers().get(first.paper)
    listed = (*paper.claims, *paper.ours) if paper else ()
    claim = next((claim for claim in listed if claim.id == first.claim), None)
    if claim:
        whose = f"arXiv {first.paper}" if isinstance(claim, PaperClaim) else "ours"
        lines += ["", f"**The claim** ({whose}). {claim.statement}"]
        derivation = claim.derivation or derivation
    if others:
        lines += ["", f"**Also asked** ({INTERVAL}s in parentheses).", ""]
    for answer in others[:MOST_OTHERS]:
        word, value = answer.spoken().capitalize(), answer.result.headline(short=True)
        fails = f"; it fails in {_command(answer, fidelity)}" if answer.problem is not None else ""
        lines.append(f"- {answer.question} **{word}.** {value}{fails}.")
    if rest := len(others[MOST_OTHERS:]):
        lines.append(f"- {rest} more: `sims claims --paper {first.paper}`")
    if derivation:
        lines += ["", f"**Formula**, derived in [docs/{derivation}](../{derivation})."]
    if claim and claim.formula:
        lines += ["", f"$$\n{claim.formula}\n$$"]
    return "\n".join(lines) + "\n"


def _strata(answer: Answer) -> list[str]:
    """A line for each stratum; of many, for those that differ from the whole."""
    shown = answer.strata
    if len(shown) > MOST_STRATA:
        shown = {name: part for name, part in shown.items() if _apart(part, answer.result)}
    lines = [f"- {name}: {part.headline(short=True)}" for name, part in shown.items()]
    if alike := len(answer.strata) - len(shown):
        lines.append(f"- {alike} {'other ' if shown else ''}strata agree with the whole.")
    return lines


def _apart(part: Result, whole: Result) -> bool:
    if part.interval is None or whole.interval is None:
        return False
    return part.interval[0] > whole.interval[1] or part.interval[1] < whole.interval[0]


def by_claim(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """The answers on each claim by its id, confirmatory ones first."""
    claims = dict[str, list[Answer]]()
    for answer in answers:
        claims.setdefault(answer.claim, []).append(answer)
    return {claim: sorted(rows, key=lambda answer: answer.status) for claim, rows in claims.items()}


def _command(answer: Answer, fidelity: str) -> str:
    kind = "sweep" if "sweep" in (answer.problem or {}) else "decompose"
    return f"`sims {kind} results/{fidelity}/counterexamples/{answer.id}.yaml`"


def background(spec: ExperimentSpec, answer: Answer, fidelity: str) -> str:
    """The law of an experiment's problems, and how its answers were computed, as Markdown."""
    return (
        f"**The problems.** {spec.law.get('text', '')}\n\n**How it was computed.** "
        f"`make reproduce FIDELITY={fidelity} EXPERIMENT={answer.experiment}`, with "
        f"seed {answer.seed} and salt {answer.salt}.\n"
    )
