"""Formulas of the site as MathML, by the report's renderer: no page needs a script to show them."""

from docutils.nodes import Element, SkipNode
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from sims.report.text import mathml


def inline(writer: HTML5Translator, node: Element) -> None:
    writer.body.append(mathml(node.astext(), {"display_mode": False}))
    raise SkipNode


def block(writer: HTML5Translator, node: Element) -> None:
    writer.body.append(mathml(node.astext(), {"display_mode": True}))
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
