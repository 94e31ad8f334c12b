"""Captions: an experiment's Markdown template with the numbers of a run in it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sims import files
from sims.errors import InputError
from sims.judgement import Verdict
from sims.mathml import with_formulas
from sims.report.text import environment, is_relative, significant
from sims.study.results import Results

_HEAD = "| claim | where | verdict | effect | margin |"
VERDICT_TABLE = re.compile(rf"^{re.escape(_HEAD)}\n(?:\|.*\n?)*", re.MULTILINE)
"""The table of verdicts in a caption that was written."""


class _Anything(MarkdownIt):
    """Markdown with all that a caption may not have, so that it is found."""

    def validateLink(self, url: str) -> bool:
        return True


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

    The template is rendered in Jinja's sandbox.

    Raises:
        InputError: the file cannot be read, names something that is not there, has a formula that
            is no TeX (:func:`sims.mathml.mathml`), or has raw HTML, or a link or a picture from
            elsewhere.
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
    except InputError:
        raise
    except Exception as error:  # whatever its expressions raise
        raise InputError(str(path), str(error), "a Jinja template with known names") from None
    parser = with_formulas(_Anything("commonmark").enable("table"))
    try:
        parser.render(text)
    except InputError as error:
        raise InputError(str(path), str(error), "formulas in TeX") from None
    for token in _tokens(parser.parse(text)):
        target = str(token.attrs.get("href") or token.attrs.get("src") or "")
        if token.type.startswith("html") or not is_relative(target):
            allowed = "Markdown without raw HTML, links and pictures relative"
            raise InputError(str(path), target or token.content, allowed)
    return text.rstrip() + "\n"


def caption(folder: Path, whose: str) -> str:
    """The caption that was written into a folder of results.

    Raises:
        InputError: it cannot be believed (:mod:`sims.files`).
    """
    return files.read(folder / "caption.md", f"caption.md of {whose}").decode()


def _tokens(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or ())


def _verdict_table(verdicts: Sequence[Verdict]) -> str:
    lines = [_HEAD, "|---|---|---|---|---|"]
    for v in verdicts:
        effect = significant(v.effect, 2)
        if v.interval is not None and v.interval[0] < v.interval[1]:
            low, high = (significant(end, 2) for end in v.interval)
            effect += f" ({low} to {high})"
        lines.append(
            f"| `{v.claim}` | {v.regime} | {v.verdict} | {effect} | {significant(v.margin, 2)} |"
        )
    return "\n".join(lines)
