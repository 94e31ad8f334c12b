"""Text for people: templates, Markdown with formulas, numbers."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import jinja2.sandbox
from docutils.utils.math.latex2mathml import tex2mathml
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin

from sims.base.errors import InputError
from sims.judgement.wording import percent, significant

if TYPE_CHECKING:
    from sims.judgement.answers import Answers

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_ACCENTED = re.compile(r"(\\(?:hat|bar|tilde) ?(?:\w|\{[^{}]*\}|\\[a-zA-Z]+))(?=[_^])")
"""An accented letter before its index, which docutils would set below the letter."""
_SPECIAL = re.compile(
    r"(?:[\\*\[\]$~]|<(?=\S)|(?<!\w)_|_(?!\w))"
    r"(?=(?:[^`]*`[^`]*`)*[^`]*$)"
)
"""A character with a meaning in Markdown outside code: an even number of backticks follows."""


class _Relative(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return not _ABSOLUTE.match(url.strip())


def mathml(tex: str, options: Mapping[str, bool]) -> str:
    """A formula as MathML; ``options["display_mode"]`` says whether it is a displayed formula.

    Raises:
        InputError: docutils cannot read the TeX.
    """
    block = options["display_mode"]
    try:
        formula = tex2mathml(_ACCENTED.sub(r"{{}\1}", tex), as_block=block)
    except Exception as error:  # of many kinds, by what is wrong
        raise InputError("formula", tex, f"TeX that docutils knows ({error})") from None
    # The keyboard must reach formulas that are wider than the page and scroll.
    return f'<div class="wide" tabindex="0">{formula}</div>' if block else formula


# Without raw HTML and without links and pictures from elsewhere, which stay text: what a caption
# says cannot change the page, nor load anything.
MARKDOWN = _Relative("commonmark", {"html": False}).enable("table")
MARKDOWN.use(
    dollarmath_plugin, allow_space=False, allow_digits=False, allow_labels=False, renderer=mathml
)
"""CommonMark with tables and formulas: ``$x$`` in a line and ``$$x$$`` displayed."""


def escape_markdown(text: str) -> str:
    """Markdown that shows a plain text, with a backslash before every star; code stays code."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def title_of(caption: str) -> str:
    """Title of a caption, its first words in bold type, as plain text."""
    title = caption.removeprefix("**").partition("**")[0]
    return Markup(MARKDOWN.renderInline(title)).striptags()


def html(markdown: str, inside: Callable[[str], str | None]) -> str:
    """Markdown as HTML, whose links lead to places of the same page.

    Args:
        markdown: the text.
        inside: from the target of a link to the id of an element of the page; None leaves the
            link's words without a link. Pictures become their descriptions.

    Raises:
        InputError: a formula is not valid TeX.
    """

    def link(match: re.Match[str]) -> str:
        id = inside(match[1])
        return f'<a href="#{id}">{match[2]}</a>' if id else match[2]

    text = re.sub(r'<img [^>]*alt="([^"]*)"[^>]*>', r"\1", MARKDOWN.render(markdown))
    return re.sub(r'<a href="([^"]*)"[^>]*>(.*?)</a>', link, text, flags=re.DOTALL)


def environment(html: bool = False) -> jinja2.Environment:
    """Environment of templates, in which unknown names are errors and numbers have filters.

    Args:
        html: whether the templates belong to the page: they include one another and escape values
            for HTML. Captions are rendered in Jinja's sandbox and include nothing.
    """
    kind = jinja2.Environment if html else jinja2.sandbox.ImmutableSandboxedEnvironment
    templates = kind(
        loader=jinja2.FileSystemLoader(Path(__file__).parent) if html else None,
        undefined=jinja2.StrictUndefined,
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    texts = {"percent": percent, "significant": significant, "escaped": escape_markdown}
    templates.filters |= texts
    return templates


def render_caption(
    path: Path,
    fidelity: str,
    settings: Mapping[str, object],
    answers: "Answers",
    numbers: Mapping[str, object],
) -> str:
    """Caption of an experiment with the numbers of this run.

    ``caption.md`` is a Jinja template of Markdown, rendered in Jinja's sandbox. It can use
    ``answers`` by id, ``fidelity``, ``settings``, the experiment's ``numbers``, and the filters
    ``percent`` and ``significant``.

    Raises:
        InputError: the file cannot be read, uses an unknown name, or has a formula that is not
            valid TeX.
    """
    try:
        text = (
            environment()
            .from_string(path.read_text(encoding="utf-8"))
            .render(
                answers=answers,
                fidelity=fidelity,
                settings=settings,
                **numbers,
            )
        )
        MARKDOWN.render(text)
    except Exception as error:  # whatever the template's expressions raise
        allowed = "a Jinja template with known names, of Markdown with formulas in TeX"
        raise InputError(str(path), str(error), allowed) from None
    return text.rstrip() + "\n"
