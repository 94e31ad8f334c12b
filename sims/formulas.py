"""The sections of docs/theory.md and its chapters, by the anchors that claims name them with."""

import re
from pathlib import Path

THEORY = Path("docs/theory.md")
"""The first chapter; the others are the Markdown files of the folder of that name beside it."""


def sections() -> dict[str, tuple[str, str]]:
    """Anchor (without #) to heading and Markdown text; empty where there is no such file."""
    chapters = [THEORY, *sorted(THEORY.with_suffix("").glob("*.md"))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in chapters if path.is_file())
    parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {_slug(heading): (heading, body) for heading, body in pairs}


def _slug(heading: str) -> str:
    """The anchor that a Markdown heading gets on code hosts."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
