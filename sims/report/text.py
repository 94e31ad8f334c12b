"""Text for people: templates, Markdown, numbers."""

import re
from pathlib import Path

import jinja2
import jinja2.sandbox
from markdown_it import MarkdownIt

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def is_relative(link: str) -> bool:
    """Whether a link or a picture stays beside the page: no scheme, no host."""
    return not _ABSOLUTE.match(link.strip())


class _Relative(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return is_relative(url)


# CommonMark without raw HTML and without links and pictures from elsewhere, which stay text: what a
# caption says cannot change the page, nor load anything.
MARKDOWN = _Relative("commonmark", {"html": False}).enable("table")


def environment(html: bool = False) -> jinja2.Environment:
    """The environment of templates: an unknown name is an error; numbers have filters.

    Args:
        html: whether the templates are the page's own, which include one another and escape values
            for HTML. Others, captions, are rendered in Jinja's sandbox and include nothing.
    """
    kind = jinja2.Environment if html else jinja2.sandbox.ImmutableSandboxedEnvironment
    made = kind(
        loader=jinja2.FileSystemLoader(Path(__file__).parent) if html else None,
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
