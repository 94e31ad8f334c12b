"""Findings: what an experiment came to, in a headline, a sentence, a figure and its claims."""

import base64
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from sims import files
from sims.judgement import VERDICTS, Verdict
from sims.report.captions import VERDICT_TABLE
from sims.report.text import html
from sims.study.schema import ExperimentSpec

NAMED = 3
"""Regimes that a sentence names at most."""


class Finding(NamedTuple):
    """An experiment as the page shows it.

    Attributes:
        name: of the experiment.
        spec: the experiment file.
        headline: the caption's first words, which it has in bold, as HTML.
        sentence: what its verdicts come to; "" where questions are answered.
        claims: the claims that it tests, by paper and id, with how many rows came to each verdict.
        figure: its figure, as a ``data:`` address.
        caption: the rest of the caption, as HTML, without the table of verdicts that the page has.
        margins: claims by the reason why their margins are what they are.
    """

    name: str
    spec: ExperimentSpec
    headline: str
    sentence: str
    claims: dict[tuple[str, str], Counter[str]]
    figure: str
    caption: str
    margins: dict[str, str]


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
        whose: the experiment and the fidelity that both have to be of, "house at smoke".
        verdicts: the ledger's rows of this experiment.
        inside: as of :func:`sims.report.text.html`, for links in the caption.

    Raises:
        InputError: a file cannot be believed (:mod:`sims.files`).
    """
    caption = files.read(folder / "caption.md", f"caption.md of {whose}").decode()
    text = VERDICT_TABLE.sub("", caption)
    bold = re.match(r"\*\*(.+?)\*\*\s*", text, re.DOTALL)
    claims: dict[tuple[str, str], Counter[str]] = {}
    for v in verdicts:
        claims.setdefault((v.paper, v.claim), Counter())[v.verdict] += 1
    reasons: dict[str, list[str]] = {}
    for claim in spec.claims:
        where = "" if claim.regime == "all" else f" ({claim.regime})"
        reasons.setdefault(claim.rationale, []).append(f"{claim.id}{where}")
    return Finding(
        name=folder.name,
        spec=spec,
        headline=html(bold[1] if bold else spec.title, inside)[len("<p>") : -len("</p>\n")],
        sentence=sentence(verdicts) if spec.claims else "",
        claims=claims,
        figure=_figure(folder / "figure.png", f"figure.png of {whose}"),
        caption=html(text[bold.end() :] if bold else text, inside),
        margins={why: _some(of, ", ") for why, of in reasons.items() if why},
    )


def sentence(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts there are of each sort, and where they are not supported."""
    if not verdicts:
        return "No verdict yet."
    counts = Counter(v.verdict for v in verdicts)
    parts = [f"{kind} in {counts[kind]}" for kind in VERDICTS if counts[kind]]
    said = f"{', '.join(parts).capitalize()} of {len(verdicts)} regimes tried."
    for kind in VERDICTS[1:]:
        names = [v.claim if v.regime == "all" else v.regime for v in verdicts if v.verdict == kind]
        said += f" {kind.capitalize()}: {_some(names, '; ')}." if names else ""
    return said


def _some(names: Sequence[str], between: str) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(names[:NAMED]) + more


def _figure(path: Path, whose: str) -> str:
    """A figure with at most 1,000 pixels across and 32 colours; the file has more of both."""
    image = Image.open(io.BytesIO(files.read(path, whose))).convert("RGB")
    image.thumbnail((1000, image.height))
    small = io.BytesIO()
    few = image.quantize(32, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}"
