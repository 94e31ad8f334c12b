"""Page of a claim, in Markdown: the claim, our reading, the answer, and its background.

No JAX.
"""

from collections.abc import Callable, Sequence

from sims.judgement import conventions
from sims.judgement.answers import Answer
from sims.judgement.summaries import Result, Share
from sims.judgement.wording import significant
from sims.report.text import escape_markdown
from sims.study.declaration import PUBLISHED_FIDELITY, salt
from sims.study.papers import Claim, PaperClaim, papers
from sims.study.schema import ExperimentSpec

PUBLISHED = "results/published"
"""Folder of the published run."""
MOST_STRATA = 4
"""Maximum number of strata of an answer on its page."""
MOST_OTHERS = 5
"""Maximum number of further answers on a claim's page."""


def unfolded(title: str, text: str) -> str:
    """Section of a page that is always open."""
    return f"**{title}**\n\n{text}"


def page(
    answers: Sequence[Answer],
    picture: str = "",
    derivation: str = "",
    fold: Callable[[str, str], str] = unfolded,
    run: str = PUBLISHED,
    link: Callable[[str], str] = "`{}`".format,
) -> str:
    """Page of a claim, as Markdown below its title.

    Args:
        answers: answers on the claim, from :func:`sims.report.answers.by_claim`.
        picture: Markdown of the panel of the first answer.
        derivation: default section of the documentation, relative to ``docs/``.
        fold: function that makes a collapsible section from a title and a text.
        run: folder of the run, whose counterexamples the page names.
        link: function that makes Markdown from a path in the repository; default: as code.
    """
    first, *others = answers
    claim = claim_of(first)
    parts = [_sentence(claim, first), _answer(first), picture, *_details(first)]
    parts.append(_worst(first, run, link))
    parts.append(_formula(claim, claim.derivation or derivation if claim else derivation))
    if isinstance(claim, PaperClaim) and claim.fairness:
        failure = f"A failure would be: {claim.failure}" if claim.failure else ""
        reason = escape_markdown(f"{claim.fairness} {failure}".strip())
        parts.append(fold("Why this reading", reason))
    if others:
        parts.append(fold("Further questions", _others(others, run, link)))
    return "\n\n".join(part for part in parts if part) + "\n"


def claim_of(answer: Answer) -> Claim | None:
    """Claim of an answer."""
    paper = papers().get(answer.paper)
    listed = paper.every if paper else []
    return next((claim for claim in listed if claim.id == answer.claim), None)


def _sentence(claim: Claim | None, answer: Answer) -> str:
    """The claim, and our reading of it."""
    if claim is None:
        return f"**The claim.** {escape_markdown(answer.own)}" if answer.own else ""
    statement = escape_markdown(claim.statement)
    if not isinstance(claim, PaperClaim):
        return f"**Our claim.** {statement}"
    lines = [f"**The paper says** (arXiv {answer.paper}). {statement}"]
    lines.append(f"**Our reading.** {escape_markdown(claim.reconstruction)}")
    return "\n\n".join(lines)


def _answer(answer: Answer) -> str:
    """The question and its answer: how often, by how much, how many are undecided."""
    restriction = f" Problems: {answer.restriction}." if answer.restriction else ""
    question = f"**{escape_markdown(answer.question)}**{escape_markdown(restriction)}"
    word = f"- **{answer.spoken().capitalize()}**: {answer.result.details()}."
    lines = []
    if answer.conditions is not None:
        lines.append(f"- By condition: {answer.conditions.in_words()}.")
    if isinstance(answer.result, Share):
        lines += _share_lines(answer.result, answer.how_much())
    if answer.robust is not None:
        lines.append(f"- Other choices: {answer.robust.in_words()}.")
    return "\n".join([question, "", word, *map(escape_markdown, lines)])


def _share_lines(share: Share, how_much: str) -> list[str]:
    """Lines on the size of the change, and on the outcomes of all problems."""
    lines = []
    if share.size is not None:
        made_of = f"; {share.made_of()}" if share.made_of() else ""
        lines.append(f"- Change, median (quartiles): {how_much}{made_of}.")
    counted = share.deciding
    if counted is not None and counted.total >= conventions.SHOWN:
        parts = [f"{name} {100 * part:.0f} %" for name, part in counted.parts.items() if part]
        lines.append(f"- Of {counted.total} problems: {', '.join(parts)}.")
        if counted.why_undecided:
            lines.append(f"- Undecided problems: {counted.why_undecided}.")
    return lines


def _details(answer: Answer) -> list[str]:
    """Lines on changes of the answer along parameters and in declared strata."""
    lines = []
    if answer.where:
        changes = "; ".join(change.in_words() for change in answer.where)
        lines.append(f"- {changes}")
    shown = answer.strata
    if len(shown) > MOST_STRATA:
        shown = {name: part for name, part in shown.items() if _apart(part, answer.result)}
    lines += [f"- {name}: {part.headline()}" for name, part in shown.items()]
    if alike := len(answer.strata) - len(shown):
        lines.append(f"- {alike} {'other ' if shown else ''}strata agree with all problems.")
    if not lines:
        return []
    return ["**Where it changes** (decided problems)", escape_markdown("\n".join(lines))]


def _apart(part: Result, whole: Result) -> bool:
    if part.interval is None or whole.interval is None:
        return False
    return part.interval[0] > whole.interval[1] or part.interval[1] < whole.interval[0]


def _worst(answer: Answer, run: str, link: Callable[[str], str]) -> str:
    """Lines on the most certain failure: its numbers, its file, and the command that runs it."""
    if answer.problem is None:
        if answer.searched:
            return f"No failure was found, nor in a search over {answer.searched:,} more problems."
        return ""
    truth = {"True": "yes", "False": "no"}
    facts = []
    for name, value in answer.worst.items():
        if value != "nan":
            facts.append(f"{name} {truth.get(value, value)}")
    name = file = _file_of(answer, run)
    if not answer.searched and answer.salt == salt(answer.experiment, PUBLISHED_FIDELITY):
        name = f"{answer.experiment}#{answer.counterexample}"
    if answer.searched:
        facts.append(
            f"effect {significant(answer.least)} by theory (above 0 where the claim holds), "
            f"found in a search over {answer.searched:,} more problems"
        )
    known = f" {escape_markdown(', '.join(facts))}." if facts else ""
    kind = "sweep" if "sweep" in answer.problem else "decompose"
    return f"**The surest failure.**{known} File: {link(file)}. Run it: `sims {kind} {name}`."


def _file_of(answer: Answer, run: str) -> str:
    """Path of the file of the most certain failure."""
    return f"{run}/counterexamples/{answer.id}.yaml"


def _others(answers: Sequence[Answer], run: str, link: Callable[[str], str]) -> str:
    """Further answers on the claim."""
    lines = []
    for answer in answers[:MOST_OTHERS]:
        values = [answer.result.headline(short=True), answer.how_much(short=True)]
        if answer.problem is not None:
            values.append(f"surest failure: {link(_file_of(answer, run))}")
        question, word = escape_markdown(answer.question), answer.spoken().capitalize()
        lines.append(f"- {question} **{word}.** {'; '.join(filter(None, values))}.")
    if rest := len(answers[MOST_OTHERS:]):
        lines.append(f"- {rest} more: `sims claims --paper {answers[0].paper}`")
    return "\n".join(lines)


def _formula(claim: Claim | None, derivation: str) -> str:
    """Lines on the formula, its symbols and its derivation."""
    lines = []
    if claim and claim.formula:
        lines.append(f"**Formula**\n\n$$\n{claim.formula}\n$$")
        if claim.symbols:
            lines.append(f"Symbols: {escape_markdown(claim.symbols)}")
    if derivation:
        lines.append(f"[Derivation](../{derivation}).")
    return "\n\n".join(lines)


def background(spec: ExperimentSpec, answer: Answer, fidelity: str) -> str:
    """The law of an experiment's problems, and how its answers were computed, as Markdown."""
    law = escape_markdown(spec.law.get("text", ""))
    return (
        f"**The problems.** {law}\n\n**How it was computed.** "
        f"`make reproduce FIDELITY={fidelity} EXPERIMENT={answer.experiment}`, with "
        f"seed {answer.seed} and salt {answer.salt}.\n"
    )
