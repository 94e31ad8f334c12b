"""Text for people: templates, Markdown, numbers."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import jinja2
import jinja2.sandbox
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sims.mathml import with_formulas

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def is_relative(link: str) -> bool:
    """Whether a link or a picture stays beside the page: no scheme, no host."""
    return not _ABSOLUTE.match(link.strip())


class _Relative(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return is_relative(url)


# CommonMark with formulas, without raw HTML and without links and pictures from elsewhere, which
# stay text: what a caption says cannot change the page, nor load anything.
MARKDOWN = with_formulas(_Relative("commonmark", {"html": False}).enable("table"))


def html(markdown: str, inside: Callable[[str], str | None]) -> str:
    """Markdown as HTML, whose links lead to places of the same page.

    Args:
        markdown: the text.
        inside: from the target of a link, which is relative, to the id of an element of the page;
            None leaves the link's words without a link, since a page that was mailed has nothing
            beside it. Pictures become their descriptions.

    Raises:
        InputError: a formula is no TeX (:func:`sims.mathml.mathml`).
    """
    tokens = MARKDOWN.parse(markdown)
    for token in tokens:
        if token.children:
            token.children = list(_linked(token.children, inside))
    return str(MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}))


def _linked(tokens: list[Token], inside: Callable[[str], str | None]) -> Iterator[Token]:
    kept: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            target = inside(str(token.attrs["href"]))
            kept.append(target is not None)
            token.attrs["href"] = f"#{target}"
        if token.type == "image":
            token = Token("text", "", 0, content=token.content)
        if token.type not in ("link_open", "link_close") or kept[-1]:
            yield token
        if token.type == "link_close":
            kept.pop()


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
    """A share in percent, to some significant digits; below 10⁴ % without a power of ten."""
    if value is None:
        return "–"
    rounded = float(f"{100 * value:.{digits}g}")
    whole = 100 <= abs(rounded) < 1e4
    return f"{f'{rounded:.0f}'.replace('-', '−') if whole else significant(rounded, digits)} %"
