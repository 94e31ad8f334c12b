"""The sections of docs/theory.md, by the anchors that claims name them with."""

import re
from pathlib import Path

THEORY = Path("docs/theory.md")


def sections() -> dict[str, tuple[str, str]]:
    """Anchor (without #) to heading and Markdown text; empty where there is no such file."""
    text = THEORY.read_text(encoding="utf-8") if THEORY.is_file() else ""
    parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {_slug(heading): (heading, body) for heading, body in pairs}


def _slug(heading: str) -> str:
    """The anchor that a Markdown heading gets on code hosts."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
