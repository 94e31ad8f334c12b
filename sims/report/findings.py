"""Findings: what an experiment came to, in a headline, a sentence, a figure and its claims."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sims.judgement import VERDICTS, Verdict
from sims.kinds import is_tested
from sims.report.captions import VERDICT_TABLE, caption
from sims.report.pictures import Figure, figure
from sims.report.text import html, significant
from sims.study.schema import ExperimentSpec

NAMED = 3
"""Regimes that a sentence names at most."""
DESIGN = (
    ("Data-generating process", "data_generating_process"),
    ("Estimands", "estimands"),
    ("Methods", "methods"),
    ("Performance measures", "performance_measures"),
)
"""The design of a simulation study after its aim (ADEMP): heading, key of the experiment file."""
_WORDS = {"supported": "supported", "refuted": "refuted", "inconclusive": "open"}


@dataclass(frozen=True)
class Finding:
    """An experiment as the page shows it.

    Attributes:
        name: of the experiment.
        paper: arXiv id of the one that it is about.
        title: the experiment file's.
        aim: likewise.
        headline: the caption's first words, which it has in bold, as HTML.
        sentence: what its verdicts come to.
        claims: the claims that it tests, by paper and id, with how many rows came to each verdict.
        figure: its figure.
        caption: the rest of the caption, as HTML, without the table of verdicts that the page has.
        design: headings and texts of the study's design.
        seen_before: what of its results had been seen before its claims were fixed; "": nothing.
        margins: why margins are what they are, each with the claims that it is about.
    """

    name: str
    paper: str
    title: str
    aim: str
    headline: str
    sentence: str
    claims: dict[tuple[str, str], Counter[str]]
    figure: Figure
    caption: str
    design: list[tuple[str, str]]
    seen_before: str
    margins: list[tuple[str, str]]


def finding(
    spec: ExperimentSpec,
    folder: Path,
    whose: str,
    verdicts: Sequence[Verdict],
    inside: Callable[[str], str | None],
) -> Finding:
    """What a run made of an experiment.

    Args:
        spec: the experiment file.
        folder: with caption.md and figure.png.
        whose: the experiment and the fidelity that both have to be of, "angles at smoke".
        verdicts: the ledger's rows of this experiment.
        inside: as of :func:`sims.report.text.html`, for links in the caption.

    Raises:
        InputError: a file cannot be believed (:mod:`sims.files`).
    """
    text = VERDICT_TABLE.sub("", caption(folder, whose))
    bold = re.match(r"\*\*(.+?)\*\*\s*", text, re.DOTALL)
    claims: dict[tuple[str, str], Counter[str]] = {}
    for v in verdicts:
        claims.setdefault((v.paper, v.claim), Counter())[v.verdict] += 1
    return Finding(
        name=folder.name,
        paper=spec.paper,
        title=spec.title,
        aim=spec.aim,
        headline=html(bold[1] if bold else spec.title, inside)[len("<p>") : -len("</p>\n")],
        sentence=sentence(verdicts),
        claims=claims,
        figure=figure(folder, whose),
        caption=html(text[bold.end() :] if bold else text, inside),
        design=[(heading, getattr(spec, key)) for heading, key in DESIGN],
        seen_before=spec.seen_before,
        margins=_margins(spec),
    )


def sentence(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts there are of each sort, where not supported, and how sure they are."""
    if not verdicts:
        return "No verdict yet."
    counts = Counter(v.verdict for v in verdicts)
    if len(counts) == 1:
        (only,) = counts
        regimes = "the one regime" if len(verdicts) == 1 else f"all {len(verdicts)} regimes"
        said = f"{_WORDS[only].capitalize()} in {regimes} tried."
    else:
        parts = [f"{_WORDS[kind]} in {counts[kind]}" for kind in VERDICTS if counts[kind]]
        said = f"{', '.join(parts)} of {len(verdicts)} regimes tried."
        said = said[0].upper() + said[1:]
    for kind in VERDICTS[1:]:
        if counts[kind] and (len(counts) > 1 or len(verdicts) > 1):
            named = [_named(v) for v in verdicts if v.verdict == kind]
            more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
            said += f" {_WORDS[kind].capitalize()}: {'; '.join(named[:NAMED])}{more}."
    return said + _sureness(verdicts)


def _named(v: Verdict) -> str:
    return v.claim if v.regime == "all" else v.regime


def _sureness(verdicts: Sequence[Verdict]) -> str:
    """The largest adjusted p-value of what was decided by draws."""
    decided = [v for v in verdicts if is_tested(v.kind) and v.verdict != "inconclusive"]
    known = [v.adjusted for v in decided if v.adjusted is not None]
    if not known:
        return ""
    least = f"p = {significant(max(known), 2)}".replace(" ", "\N{NO-BREAK SPACE}")
    return (
        f" Draws could have turned {len(decided)} of these verdicts: the least sure has {least} "
        "among all tested claims of its paper."
    )


def _margins(spec: ExperimentSpec) -> list[tuple[str, str]]:
    """Each reason once, after the claims and regimes that it is given for."""
    reasons: dict[str, list[str]] = {}
    for claim in spec.claims:
        if claim.rationale:
            where = "" if claim.regime == "all" else f" ({claim.regime})"
            reasons.setdefault(claim.rationale, []).append(f"{claim.id}{where}")
    return [
        (", ".join(of[:NAMED]) + (f" and {len(of) - NAMED} more" if len(of) > NAMED else ""), why)
        for why, of in reasons.items()
    ]
