"""The paper, typeset from a published run: ``make paper``.

Every number, every word of an answer and every figure of ``paper.md.j2`` comes from the answers,
captions and figures of the run, from ``papers/``, from the law's ``experiment.yaml``, or from the
documentation. Pandoc turns the filled-in Markdown into Typst, which sets it in ``layout.typ``.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pypandoc
import typst
import yaml

from sims.base.errors import InputError
from sims.judgement import conventions
from sims.judgement.answers import Answer, by_id
from sims.judgement.summaries import Gap, Result
from sims.report.answers import COLUMNS, cells_of
from sims.report.text import environment
from sims.study.declaration import Declaration
from sims.study.ledger import read_run
from sims.study.papers import MAIN, papers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MARKDOWN = (
    "markdown-citations-example_lists-fancy_lists-raw_html-startnum-strikeout-subscript-superscript"
)
"""Pandoc's Markdown without what a code host reads otherwise."""
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]*)\)")
VERBATIM = re.compile(r"(```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]+\$)", re.DOTALL)
SYMBOL = re.compile(
    r"\b\w+\^\((?:[^()]|\([^()]*\))*\)|\b\w+\^−?\w+|\b[A-Za-z]_[A-Za-z]+(?:\\?\*)?"
    r"|(?<=\s)[A-Z]\\?\*(?=[\s,.?])"
)
"""Symbols that plain text spells: d_k*, H*, R^8, 2^−12, n^(−1/2)."""
LONG_INDEX, INDEX = re.compile(r"_([A-Za-z]{2,})"), r"_{\\text{\1}}"
Row = dict[str, str]


def read_table(text: str, *columns: str) -> list[Row]:
    """Rows of the first Markdown table with these columns, each a cell by its column.

    Raises:
        InputError: there is none.
    """
    for table in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        header, _, *rows = (split_cells(line) for line in table.splitlines())
        if set(columns) <= set(header):
            return [dict(zip(header, row, strict=True)) for row in rows]
    raise InputError("table", ", ".join(columns), "columns of a published table")


def split_cells(line: str) -> list[str]:
    """Cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def write_table(rows: Iterable[Row], caption: str, widths: Mapping[str, int] | None = None) -> str:
    """A Markdown table with its caption.

    Args:
        rows: its rows.
        caption: what stands above it.
        widths: columns that are shown and their relative widths; else all, by their longest cells.
    """
    rows = list(rows)
    if widths is None:
        widths = {}
        for column in rows[0]:
            words = [*column.split(), *(row[column] for row in rows)]
            widths[column] = max(map(len, words)) + 1
    lines = [list(widths), ["-" * width for width in widths.values()]]
    lines += [[row[column] for column in widths] for row in rows]
    return "\n".join([*(f"|{'|'.join(line)}|" for line in lines), "", f": {caption}"])


def tabulate(answers: Iterable[Answer]) -> list[Row]:
    """Rows of a table of answers, each with a drawing of its outcomes."""
    rows = []
    for answer in answers:
        row = dict(zip(COLUMNS, cells_of(answer), strict=True))
        row["how often"] = row["holds"].replace(" problems", "")
        rows.append(row | {"outcomes": draw_outcomes(answer.result)})
    return rows


def draw_outcomes(result: Result) -> str:
    """The call that draws a share's outcomes; "" without a count."""
    counted = result.near if isinstance(result, Gap) else getattr(result, "deciding", None)
    if counted is None:
        return ""
    shares = counted.parts
    named = ", ".join(str(shares[name]) for name in ("holds", "level", "undecided", "fails"))
    return f"`#outcomes({named})`{{=typst}}"


def set_symbols(text: str) -> str:
    """Markdown whose plain symbols are formulas, and whose numbers keep their percent signs."""

    def as_formula(match: re.Match[str]) -> str:
        symbol = match[0].replace("\\", "").replace("*", "^*")
        symbol = re.sub(r"\^\((.*)\)$", r"^{\1}", symbol)
        symbol = re.sub(r"\^([−\w]+)$", r"^{\1}", symbol)
        return f"${LONG_INDEX.sub(INDEX, symbol)}$"

    text = re.sub(r"<sub>(.*?)</sub>", r"`#sub[\1]`{=typst}", text)
    parts = VERBATIM.split(text.replace(" %", "\N{NO-BREAK SPACE}%"))
    parts[::2] = [SYMBOL.sub(as_formula, part) for part in parts[::2]]
    return "".join(parts)


def name_author(author: Mapping[str, str]) -> str:
    """Name of an author of CITATION.cff, a person or a group."""
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


def gather_facts(folder: Path) -> dict[str, Any]:
    """What the paper's source can use, of the run published in that folder.

    Raises:
        InputError: there are no answers, a published table lacks a column, or answers contradict a
            sentence on what we learnt.
    """

    def read_caption(name: str) -> str:
        caption = (folder / name / "caption.md").read_text(encoding="utf-8")
        return caption.partition("<!--")[0].strip()

    def read_page(name: str) -> str:
        return LINK.sub(r"\1", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))

    def require(condition: bool, sentence: str) -> str:
        if not condition:
            raise InputError("paper.md.j2", sentence, "a sentence that the answers bear out")
        return ""

    answers = read_run(folder)
    if not answers:
        raise InputError(str(folder), "no answers", "a published run: make publish")
    confirmatory = [answer for answer in answers if answer.status == "confirmatory"]
    return {
        "answers": by_id(answers),
        "asked": [answer for answer in confirmatory if answer.subject == "paper"],
        "citation": yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8")),
        "papers": papers(),
        "MAIN": MAIN,
        "law": Declaration.read("house").spec.law,
        "require": require,
        "read_caption": read_caption,
        "read_page": read_page,
        "read_table": read_table,
        "write_table": write_table,
        "tabulate": tabulate,
        "conventions": conventions,
    }


def typeset(folder: Path, output: Path) -> str:
    """Write the paper on the run published in a folder as PDF; returns its Typst source.

    Args:
        folder: of answers.json, captions and figures.
        output: the PDF.

    Raises:
        InputError: as :func:`gather_facts`.
    """
    facts = gather_facts(folder)
    citation = facts["citation"]["preferred-citation"]
    meta = {
        "title": citation["title"],
        "authors": ", ".join(name_author(author) for author in citation["authors"]),
        "date": str(facts["citation"]["date-released"]),
    }
    template = environment().from_string((HERE / "paper.md.j2").read_text(encoding="utf-8"))
    body = pypandoc.convert_text(set_symbols(template.render(**facts)), "typst", MARKDOWN)
    source = (HERE / "layout.typ").read_text(encoding="utf-8") + body
    output.write_bytes(typst.compile(source.encode(), root=str(folder), sys_inputs=meta))
    return source


if __name__ == "__main__":
    published = Path(sys.argv[1])
    try:
        typeset(published, published / "paper.pdf")
    except InputError as error:
        sys.exit(f"paper: {error}")
    print(published / "paper.pdf")
