"""Text for people: templates, Markdown, numbers."""

from pathlib import Path

import jinja2
from markdown_it import MarkdownIt

# CommonMark without raw HTML: what a caption says cannot change the page.
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def environment(html: bool = False) -> jinja2.Environment:
    """The environment of all templates: an unknown name is an error; numbers have filters.

    Args:
        html: whether values are escaped for HTML.
    """
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "significant": significant}
    return made


def significant(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits, with a true minus and no e-notation for people."""
    if value is None:
        return "–"
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = f"{mantissa}·10{raised}"
    return text.replace("-", "−")


def percent(value: float | None, digits: int = 2) -> str:
    """A share in percent, to some significant digits."""
    return "–" if value is None else f"{significant(100 * value, digits)} %"
