"""Formulas as MathML, which browsers draw themselves: no script and no font is loaded for them."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

try:
    from sims.mathml import mathml
except ImportError:
    from docutils.utils.math.latex2mathml import tex2mathml

    def mathml(tex: str, block: bool = False) -> str:
        return tex2mathml(tex, as_block=block)


def inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    formula = mathml(node.astext().strip(), block=True)
    self.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
