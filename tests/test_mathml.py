"""Formulas: TeX becomes MathML, and every formula of the documentation is TeX that does."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from sims.errors import InputError
from sims.mathml import mathml, with_formulas

ROOT = Path(__file__).parents[1]
CHAPTERS = [ROOT / "docs/theory.md", *sorted((ROOT / "docs/theory").glob("*.md"))]
FORMULA = re.compile(r"\$\$\n(.*?)\n\$\$|\$([^$]+)\$", re.DOTALL)


@pytest.mark.parametrize(
    ("tex", "inside"),
    [
        (r"\frac{a}{2}", "<mfrac><mi>a</mi><mn>2</mn></mfrac>"),
        ("K'", "<mi>K</mi><mo>′</mo>"),
        # An index belongs beside an accented letter, not below it.
        (r"\hat f_h", '<msub><mover accent="true"><mi>f</mi><mo stretchy="false">ˆ</mo></mover>'
                      "<mi>h</mi></msub>"),
        (r"\underbrace{a}_{b}", "<munder><munder><mi>a</mi><mo>⏟</mo></munder><mi>b</mi></munder>"),
        (r"\text{a <script>}", "<mtext>a &lt;script&gt;</mtext>"),
    ],
)  # fmt: skip
def test_a_formula_is_mathml(tex, inside):
    assert mathml(tex) == f"<math>{inside}</math>"


@pytest.mark.parametrize(
    "tex", [r"\nothing", r"\frac{a", r"\frac12", "{a", r"\href{javascript:x}{y}"]
)
def test_what_is_no_tex_is_refused(tex):
    with pytest.raises(InputError, match="formula"):
        mathml(tex)


def test_markdown_has_formulas_and_code():
    markdown = with_formulas(MarkdownIt("commonmark"))
    assert markdown.render("a $b$, `$c$`, 5 $ and 6 $\n") == (
        "<p>a <math><mi>b</mi></math>, <code>$c$</code>, 5 $ and 6 $</p>\n"
    )
    block = markdown.render("$$\na &= b \\\\\n&= c\n$$\n")
    assert block.startswith('<div class="math block" tabindex="0"><math display="block"><mtable')
    assert block.count("<mtr>") == 2


def test_a_long_formula_in_a_line_may_be_broken_before_its_relations():
    markdown = with_formulas(MarkdownIt("commonmark"))
    assert "<wbr>" not in markdown.render("$a = b + c$")
    long = markdown.render("$a + b + c + d + e = f \\le g + h$")
    pieces = long.split("<wbr>")
    assert [re.sub("<[^>]*>", "", piece).strip()[0] for piece in pieces] == ["a", "=", "≤"]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_formula_of_the_theory_is_tex(path):
    text = path.read_text(encoding="utf-8")
    found = FORMULA.findall(text)
    assert len(found) > 20
    for block, inline in found:
        mathml((block or inline).strip(), block=bool(block))
    # In a line code hosts take a backslash before punctuation for Markdown's own.
    assert [inline for _, inline in found if re.search(r"\\[^A-Za-z\s]", inline)] == []
