"""Answers for people, in Markdown: the table of all, and the page of an experiment. No JAX."""

from collections.abc import Callable, Sequence

from sims.judgement.answers import Answer, Change
from sims.judgement.house import LEVEL
from sims.judgement.summaries import Share, Summary
from sims.papers import MAIN, Paper, papers
from sims.report.text import percent, significant
from sims.study.schema import ExperimentSpec

MOST_GROUPS = 4
"""Groups of a parameter that a table shows; of more, the lowest and the highest."""
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


def headline(of: Summary) -> str:
    """The number that decides the word, with its interval: a share, T95 or a mean."""
    if of.within is not None and of.within_interval is not None:
        return f"within {_span(*of.within)} in 95 % of problems ({_span(*of.within_interval)})"
    if of.share is not None:
        return f"{_span(*of.share.bracket)} of problems ({_span(*of.share.interval)})"
    if of.mean is not None and of.mean_interval is not None:
        return f"{significant(of.mean)} ({' to '.join(map(significant, of.mean_interval))})"
    return "–"


def _share(of: Share) -> str:
    return f"{_span(*of.bracket)} ({INTERVAL} {_span(*of.interval)}, {of.total} problems)"


def _span(low: float, high: float | None) -> str:
    first, last = percent(low), "∞" if high is None else percent(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


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
        brief: the first answer on each claim alone, and no algebra.
    """
    order = [claim.id for claim in (*paper.claims, *paper.ours)]
    rows = [one for one in answers if one.paper == paper.arxiv and one.status == "confirmatory"]
    rows.sort(key=lambda one: order.index(one.claim))
    if brief:
        rows = list({one.claim: one for one in reversed(rows)}.values())[::-1]
    lines = [["question", "answer", "how often, or how near", "where it changes"], ["---"] * 4]
    for one in rows:
        asked = f"{one.question} ({one.restriction})" if one.restriction else one.question
        asked = one.question if brief else f"[{asked}]({link(one)})" if link else asked
        changes = [_moved(change, one.kind != "estimate") for change in one.where[: 2 - brief]]
        numbers = [headline(one), "; ".join(changes) or "–"]
        lines.append([asked, spoken(one), *(map(_short, numbers) if brief else numbers)])
    cells = [[cell.replace("|", "&#124;") for cell in line] for line in lines]
    table = [f"|{'|'.join(c)}|" if brief else f"| {' | '.join(c)} |" for c in cells]
    proved = [c for c in (*paper.claims, *paper.ours) if c.algebra and not brief]
    algebra = [
        f"- By algebra {f'false, {c.counterexample}' if c.counterexample else 'true'}: "
        f"{c.statement} (`{c.algebra}`)"
        for c in proved
    ]
    return "\n".join([*(table if rows else ()), "", *algebra]).strip() + "\n"


def _moved(change: Change, percent_: bool) -> str:
    """Along what an answer changes, from the lowest to the highest group, or by name."""
    shown = [percent(v) if percent_ else significant(v) for v in change.values]
    if all(" to " in group for group in change.groups):
        return f"{change.parameter} ↑: {shown[0]} → {shown[-1]}"
    pairs = [*zip(change.values, change.groups, shown, strict=True)]
    if len(pairs) > MOST_GROUPS:
        pairs = [min(pairs), max(pairs)]
    return f"{change.parameter} " + ", ".join(f"{group}: {value}" for _, group, value in pairs)


def _short(text: str) -> str:
    """A cell of a README, ranges with a dash."""
    return (
        text.replace(" of problems", "")
        .replace(" %", "%")
        .replace("% to ", "–")
        .replace(" to ", "–")
    )


def tables(answers: Sequence[Answer]) -> dict[str, str]:
    """What a README shows of a run: its table of the main paper, and a line a neighbour."""
    neighbours = []
    for id, paper in (known := papers()).items():
        rows = [a for a in answers if a.paper == id and a.status == "confirmatory"]
        if rows and id != MAIN:
            names = [a.experiment for a in rows]
            one = next(a for a in rows if a.experiment == max(names, key=names.count))
            said = f"**{spoken(one).capitalize()}**: {_short(headline(one))}"
            neighbours.append(
                f"- [{paper.title}](https://arxiv.org/abs/{id}): {one.question} {said}."
            )
    main = listing(known[MAIN], answers, brief=True) if MAIN in known else ""
    return {"main": main, "neighbours": "\n".join(neighbours) + "\n"}


def filled(readme: str, name: str, text: str) -> str:
    """A README with a text between its mark ``<!-- answers NAME -->`` and the next ``<!-- end``."""
    before, mark, rest = readme.partition(f"<!-- answers {name} -->\n")
    _, end, after = rest.partition("<!-- end")
    return f"{before}{mark}{text}{end}{after}" if mark and end else readme


def page(
    name: str, spec: ExperimentSpec, answers: Sequence[Answer], caption: str, fidelity: str
) -> str:
    """What an experiment found, as Markdown below its heading: aim, law, answers, caption."""
    simulated = max(one.problems for one in answers)
    lines = [spec.aim, "", f"**The problems.** {spec.law.get('text', '')}", ""]
    for one in answers:
        lines += [f"### {one.question}", ""]
        where = f" Asked of: {one.restriction}." if one.restriction else ""
        lines += [f"**{spoken(one).capitalize()}.** {number(one, one.tolerance)}.{where}", ""]
        lines += [f"- {part}: {number(of, one.tolerance)}" for part, of in one.strata.items()]
        lines += [
            f"- It changes along {change.in_words(one.kind != 'estimate')}" for change in one.where
        ]
        if one.problem is not None:
            file = f"results/{fidelity}/counterexamples/{one.id}.yaml"
            by = " (by theory, in a search)" if one.searched else ""
            command = "sweep" if "sweep" in one.problem else "decompose"
            lines.append(f"- It fails most surely in: `sims {command} {file}`{by}")
        elif one.searched:
            lines.append(
                f"- No failure among these problems, nor in a search over {one.searched:,} more."
            )
        lines.append("")
    derived = f"[Formulas](../{spec.derivation}). " if spec.derivation else ""
    lines += [
        "### The figure and how it was computed",
        "",
        caption.strip(),
        "",
        f"{simulated} problems simulated. {derived}Again: "
        f"`make reproduce FIDELITY={fidelity} EXPERIMENT={name}`; seed {answers[0].seed}, salt "
        f"{answers[0].salt}.",
        "",
    ]
    return "\n".join(lines)
