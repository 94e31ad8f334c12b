"""The sections of docs/theory.md and its chapters, by the anchors that claims name them with."""

import re
from pathlib import Path
from typing import NamedTuple

from sims.places import place

THEORY = Path("docs/theory.md")
"""The main text; further chapters stand in the folder of the same name without its suffix."""


class Section(NamedTuple):
    """A section of the theory.

    Attributes:
        path: of its chapter, from the top level of a checkout.
        heading: its heading.
        body: its Markdown text.
    """

    path: Path
    heading: str
    body: str


def sections() -> dict[str, Section]:
    """Anchor (without #) to section, of all chapters that are there."""
    found, main = {}, place(THEORY)
    for path in [main, *sorted(main.with_suffix("").glob("*.md"))]:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            chapter = THEORY.parent / path.relative_to(main.parent)
            found[_slug(heading)] = Section(chapter, heading, body)
    return found


def _slug(heading: str) -> str:
    """The anchor that a Markdown heading gets on code hosts."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
