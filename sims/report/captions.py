"""Captions: an experiment's Markdown template with the numbers of a run in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from sims.errors import InputError
from sims.judgement import Verdict
from sims.report.text import environment, significant
from sims.study.results import Results


def render_caption(
    path: Path,
    results: Results,
    verdicts: Sequence[Verdict],
    numbers: Mapping[str, object],
) -> str:
    """An experiment's caption with the numbers of this run in it.

    ``caption.md`` is a Jinja template of Markdown. It can use ``verdict(claim, regime)``,
    ``points``, ``replicates`` (the fewest of the points), ``fidelity``, ``settings``, the
    experiment's own ``numbers``, the filters ``percent`` and ``significant``, and
    ``verdict_table``, which has a row for every claim of the experiment.

    Raises:
        InputError: the file cannot be read, or names something that is not there.
    """

    def verdict(claim: str, regime: str | None = None) -> Verdict:
        fitting = [v for v in verdicts if v.claim == claim and regime in (None, v.regime)]
        if len(fitting) != 1:
            known = ", ".join(f"{v.claim} ({v.regime})" for v in verdicts)
            raise InputError(f"{path}: verdict", f"{claim} ({regime or 'any'})", f"one of {known}")
        return fitting[0]

    try:
        template = environment().from_string(path.read_text(encoding="utf-8"))
        text = template.render(
            verdict=verdict,
            verdict_table=_verdict_table(verdicts),
            points=len(results.points),
            replicates=results.replicates,
            fidelity=results.fidelity,
            settings=results.settings,
            **numbers,
        )
    except OSError as error:
        raise InputError(str(path), error.strerror, "a readable caption") from None
    except jinja2.TemplateError as error:
        raise InputError(str(path), str(error), "a Jinja template with known names") from None
    return text.rstrip() + "\n"


def _verdict_table(verdicts: Sequence[Verdict]) -> str:
    lines = ["| claim | where | verdict | effect | margin |", "|---|---|---|---|---|"]
    for v in verdicts:
        effect = significant(v.effect, 2)
        if v.interval is not None and v.interval[0] < v.interval[1]:
            low, high = (significant(end, 2) for end in v.interval)
            effect += f" ({low} to {high})"
        lines.append(
            f"| `{v.claim}` | {v.regime} | {v.verdict} | {effect} | {significant(v.margin, 2)} |"
        )
    return "\n".join(lines)
