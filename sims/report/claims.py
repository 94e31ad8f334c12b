"""Page of a claim, in Markdown: the claim, our reading, the answer, and its background.

No JAX.
"""

from collections.abc import Callable, Sequence

from sims.judgement import house
from sims.judgement.answers import Answer
from sims.judgement.summaries import Result, Share
from sims.study.papers import Claim, PaperClaim, papers
from sims.study.schema import ExperimentSpec

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
) -> str:
    """Page of a claim, as Markdown below its title.

    Args:
        answers: answers on the claim, from :func:`sims.report.answers.by_claim`.
        picture: Markdown of the panel of the first answer.
        derivation: default section of the documentation, relative to ``docs/``.
        fold: function that makes a collapsible section from a title and a text.
    """
    first, *others = answers
    claim = claim_of(first)
    parts = [_sentence(claim, first), _answer(first), picture, *_details(first), _worst(first)]
    parts.append(_formula(claim, claim.derivation or derivation if claim else derivation))
    if isinstance(claim, PaperClaim) and claim.fairness:
        failure = f"A failure would be: {claim.failure}" if claim.failure else ""
        parts.append(fold("Why this reading", f"{claim.fairness} {failure}".strip()))
    if others:
        parts.append(fold("Further questions", _others(others)))
    return "\n\n".join(part for part in parts if part) + "\n"


def claim_of(answer: Answer) -> Claim | None:
    """Claim of an answer."""
    paper = papers().get(answer.paper)
    listed = (*paper.claims, *paper.ours) if paper else ()
    return next((claim for claim in listed if claim.id == answer.claim), None)


def _sentence(claim: Claim | None, answer: Answer) -> str:
    """The claim, and our reading of it."""
    if claim is None:
        return ""
    if not isinstance(claim, PaperClaim):
        return f"**Our claim.** {claim.statement}"
    lines = [f"**The paper says** (arXiv {answer.paper}). {claim.statement}"]
    lines.append(f"**Our reading.** {claim.reconstruction}")
    return "\n\n".join(lines)


def _answer(answer: Answer) -> str:
    """The question and its answer: how often, by how much, how many are undecided."""
    restriction = f" Problems: {answer.restriction}." if answer.restriction else ""
    lines = [f"**{answer.question}**{restriction}", ""]
    lines.append(f"- **{answer.spoken().capitalize()}**: {answer.result.details()}.")
    if answer.conditions is not None:
        lines.append(f"- By condition: {answer.conditions.in_words()}.")
    if isinstance(answer.result, Share):
        lines += _share_lines(answer.result, answer.how_much())
    if answer.robust is not None:
        lines.append(f"- Other choices: {answer.robust.in_words()}.")
    return "\n".join(lines)


def _share_lines(share: Share, how_much: str) -> list[str]:
    """Lines on the size of the change, and on the outcomes of all problems."""
    lines = []
    if share.size is not None:
        made_of = f"; {share.made_of()}" if share.made_of() else ""
        lines.append(f"- Change, median (quartiles): {how_much}{made_of}.")
    counted = share.deciding
    if counted is not None and counted.total >= house.SHOWN:
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
    return ["**Where it changes** (decided problems)", "\n".join(lines)] if lines else []


def _apart(part: Result, whole: Result) -> bool:
    if part.interval is None or whole.interval is None:
        return False
    return part.interval[0] > whole.interval[1] or part.interval[1] < whole.interval[0]


def _worst(answer: Answer) -> str:
    """Lines on the most certain failure: its numbers, its file, and the command that runs it."""
    if answer.problem is None:
        if answer.searched:
            return f"No failure was found, nor in a search over {answer.searched:,} more problems."
        return ""
    truth = {"True": "yes", "False": "no"}
    known = []
    for name, value in answer.worst.items():
        if value != "nan":
            known.append(f"{name} {truth.get(value, value)}")
    facts = ", ".join(known)
    by = " It was found by theory, in a search." if answer.searched else ""
    run = f"Run it: {command(answer)}."
    return f"**The surest failure.** {facts or 'Its file has all numbers'}.{by} {run}"


def command(answer: Answer) -> str:
    """Command that runs the most certain failure."""
    if answer.counterexample is not None and not answer.searched:
        kind = "sweep" if "sweep" in (answer.problem or {}) else "decompose"
        return f"`sims {kind} {answer.experiment}#{answer.counterexample}`"
    return f"`sims decompose results/published/counterexamples/{answer.id}.yaml`"


def _others(answers: Sequence[Answer]) -> str:
    """Further answers on the claim."""
    lines = []
    for answer in answers[:MOST_OTHERS]:
        value = answer.result.headline(short=True)
        lines.append(f"- {answer.question} **{answer.spoken().capitalize()}.** {value}.")
    if rest := len(answers[MOST_OTHERS:]):
        lines.append(f"- {rest} more: `sims claims --paper {answers[0].paper}`")
    return "\n".join(lines)


def _formula(claim: Claim | None, derivation: str) -> str:
    """Lines on the formula, its symbols and its derivation."""
    lines = []
    if claim and claim.formula:
        lines.append(f"**Formula**\n\n$$\n{claim.formula}\n$$")
        if claim.symbols:
            lines.append(f"Symbols: {claim.symbols}")
    if derivation:
        lines.append(f"[Derivation](../{derivation}).")
    return "\n\n".join(lines)


def background(spec: ExperimentSpec, answer: Answer, fidelity: str) -> str:
    """The law of an experiment's problems, and how its answers were computed, as Markdown."""
    return (
        f"**The problems.** {spec.law.get('text', '')}\n\n**How it was computed.** "
        f"`make reproduce FIDELITY={fidelity} EXPERIMENT={answer.experiment}`, with "
        f"seed {answer.seed} and salt {answer.salt}.\n"
    )
