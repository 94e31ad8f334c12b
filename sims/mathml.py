r"""Formulas: TeX in Markdown, as code hosts render it, becomes MathML, which browsers draw.

``$x$`` is a formula in a line and ``$$x$$`` one of its own. The page of a run and the site of the
documentation take both from here, at build time: neither loads anything to show them.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from sims.errors import InputError

_PARTS = {
    "mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3,
    "munderover": 3,
}  # fmt: skip
"""Elements of a fixed number of parts, and that number."""
_ACCENTS = frozenset("ˆˉ~˙¨⃗^_")
_RELATIONS = frozenset("=≠<>≤≥≈∝∼→↦≪≫∈")
LONG = 12
"""Parts of a formula in a line from which on it may be broken."""


def mathml(tex: str, block: bool = False) -> str:
    r"""A formula as an element ``<math>``, without white space between its parts.

    Args:
        tex: LaTeX's mathematics with the commands of amsmath that docutils knows, ``aligned``,
            ``cases`` and matrices among them; rows of a block may be ended by ``\\``.
        block: whether it stands on lines of its own, with limits above and below.

    Raises:
        InputError: an unknown command, brackets that do not match, or a fraction, root or index
            with a part missing.
    """
    braces = re.sub(r"\\.", "", tex)
    if braces.count("{") != braces.count("}"):
        raise InputError("formula", tex, "as many { as }")
    try:
        root = ElementTree.fromstring(_without_entities(tex2mathml(tex, as_block=block)))
    except (MathError, ElementTree.ParseError, AttributeError, IndexError, TypeError) as error:
        raise InputError("formula", tex, f"TeX that docutils knows ({error})") from None
    for element in root.iter():
        name = element.tag = element.tag.rpartition("}")[2]
        if name in _PARTS and len(element) != _PARTS[name]:
            raise InputError("formula", tex, f"{_PARTS[name]} parts of an {name}, in braces")
        element.text = (element.text or "").strip("\n ").replace("'", "′") or None
        element.tail = None
        if element.text == "/":  # which browsers do not stretch
            element.attrib.pop("stretchy", None)
    for element in list(root.iter()):
        _set_index(element)
    if block:
        root.set("display", "block")
    return ElementTree.tostring(root, encoding="unicode")


def _set_index(element: ElementTree.Element) -> None:
    r"""Put an index where TeX does: after an accented letter (``\hat f_h``), below a brace."""
    if element.tag == "munderover" and element[2].text in _ACCENTS:
        letter, index, accent = element
        accented = ElementTree.Element("mover", accent="true")
        accented.extend((letter, accent))
        element.tag = "msub"
        element[:] = [accented, index]
    elif element.tag == "msub" and element[0].tag == "munder" and element[0][1].text == "⏟":
        element.tag = "munder"


def with_formulas(markdown: MarkdownIt) -> MarkdownIt:
    """The same parser, which takes ``$…$`` and ``$$…$$`` for formulas; it is changed and returned.

    A dollar sign before a space, or beside a digit outside, stays one.
    """

    def block(_: object, tokens: Sequence[Token], place: int, *__: object) -> str:
        # It may be wider than the page: then it scrolls, and the keyboard has to reach it.
        formula = mathml(tokens[place].content.strip(), block=True)
        return f'<div class="math block" tabindex="0">{formula}</div>\n'

    def inline(_: object, tokens: Sequence[Token], place: int, *__: object) -> str:
        return _breakable(mathml(tokens[place].content.strip()))

    markdown.use(dollarmath_plugin, allow_space=False, allow_digits=False, allow_labels=False)

    markdown.add_render_rule("math_block", block)
    markdown.add_render_rule("math_inline", inline)
    return markdown


def _breakable(formula: str) -> str:
    """A long formula in a line, cut before its relations, and sums: browsers break none."""
    root = ElementTree.fromstring(formula)
    if len(root) < LONG:
        return formula
    pieces = [ElementTree.Element("math")]
    for element in root:
        long = len(pieces[-1]) >= LONG and element.text in ("+", "−")
        if (long or element.text in _RELATIONS) and len(pieces[-1]):
            element.set("form", "infix")
            pieces.append(ElementTree.Element("math"))
        pieces[-1].append(element)
    return "<wbr>".join(ElementTree.tostring(piece, encoding="unicode") for piece in pieces)


def _without_entities(text: str) -> str:
    """The one named entity that docutils writes, as the character that it stands for."""
    return text.replace("&ApplyFunction;", "\N{FUNCTION APPLICATION}")
