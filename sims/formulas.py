"""The sections of docs/theory.md and its chapters, by the anchors that claims name them with."""

import re
from pathlib import Path

THEORY = Path("docs/theory.md")
"""The main text; further chapters stand in the folder of the same name without its suffix."""


def sections() -> dict[str, tuple[str, str]]:
    """Anchor (without #) to heading and Markdown text; empty where there is no such file."""
    chapters = [THEORY, *sorted(THEORY.with_suffix("").glob("*.md"))]
    texts = [path.read_text(encoding="utf-8") for path in chapters if path.is_file()]
    parts = [re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE) for text in texts]
    pairs = [pair for part in parts for pair in zip(part[1::2], part[2::2], strict=True)]
    return {_slug(heading): (heading, body) for heading, body in pairs}


def _slug(heading: str) -> str:
    """The anchor that a Markdown heading gets on code hosts."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
