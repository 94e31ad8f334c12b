"""Captions: an experiment's Markdown template with the numbers of a run in it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sims.errors import InputError
from sims.judgement import Verdict
from sims.judgement.answers import Answer
from sims.report.answers import number
from sims.report.text import MARKDOWN, environment, significant
from sims.study.results import Results

_HEAD = "| claim | where | verdict | effect | margin |"
VERDICT_TABLE = re.compile(rf"^{re.escape(_HEAD)}\n(?:\|.*\n?)*", re.MULTILINE)
"""The table of verdicts in a caption that was written."""


def render_caption(
    path: Path,
    results: Results,
    judged: Sequence[Verdict] | Sequence[Answer],
    numbers: Mapping[str, object],
) -> str:
    """An experiment's caption with the numbers of this run in it.

    ``caption.md`` is a Jinja template of Markdown. It can use ``verdict(claim, regime)``,
    ``points``, ``replicates`` (the fewest of the points), ``fidelity``, ``settings``, the
    experiment's own ``numbers``, the filters ``percent`` and ``significant``, and
    ``verdict_table``, which has a row for every claim of the experiment. An experiment with
    questions has ``answers``, by id, and the filter ``number`` in their place.

    The template is rendered in Jinja's sandbox.

    Raises:
        InputError: the file cannot be read, names something that is not there, or has a formula
            that is no TeX.
    """
    verdicts = [v for v in judged if isinstance(v, Verdict)]
    answers = [a for a in judged if isinstance(a, Answer)]

    def verdict(claim: str, regime: str | None = None) -> Verdict:
        fitting = [v for v in verdicts if v.claim == claim and regime in (None, v.regime)]
        if len(fitting) != 1:
            known = ", ".join(f"{v.claim} ({v.regime})" for v in verdicts)
            raise InputError("verdict", f"{claim} ({regime or 'any'})", f"one of {known}")
        return fitting[0]

    try:
        surroundings = environment()
        surroundings.filters["number"] = number
        template = surroundings.from_string(path.read_text(encoding="utf-8"))
        text = template.render(
            verdict=verdict,
            verdict_table=_verdict_table(verdicts),
            answers={one.id: one for one in answers},
            points=len(results.points),
            replicates=results.replicates,
            fidelity=results.fidelity,
            settings=results.settings,
            **numbers,
        )
        MARKDOWN.render(text)
    except Exception as error:  # whatever the template's expressions raise
        allowed = "a Jinja template with known names, of Markdown with formulas in TeX"
        raise InputError(str(path), str(error), allowed) from None
    return text.rstrip() + "\n"


def _verdict_table(verdicts: Sequence[Verdict]) -> str:
    lines = [_HEAD, "|---|---|---|---|---|"]
    for v in verdicts:
        effect = significant(v.effect, 2)
        if v.interval is not None and v.interval[0] < v.interval[1]:
            low, high = (significant(end, 2) for end in v.interval)
            effect += f" ({low} to {high})"
        margin = significant(v.margin, 2)
        lines.append(f"| `{v.claim}` | {v.regime} | {v.verdict} | {effect} | {margin} |")
    return "\n".join(lines)
