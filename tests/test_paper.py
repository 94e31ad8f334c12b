"""The paper that ``make paper`` typesets: it says what the answers say, and is short and small."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sims.judgement.answers import write_answers
from sims.study.ledger import read_run

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results/published"
SOURCE = ROOT / "docs/paper/paper.md.j2"
FILLED_IN = r"\{\{.*?\}\}|\{%.*?%\}|```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\{ #[^}]*\}"
CITED = r"\([^()]*, \d{4}\)"


def test_no_number_of_the_paper_is_written_by_hand():
    """Outside formulas, citations and references."""
    text, _, _ = SOURCE.read_text("utf-8").partition("# References")
    text = re.sub(f"{FILLED_IN}|{CITED}", "", text, flags=re.DOTALL)
    assert re.findall(r"\S*\d\S*", text) == []


@pytest.mark.site
def test_the_paper_follows_the_answers(tmp_path):
    """Another size and another word in the file are another size and another word in the PDF."""
    reader = pytest.importorskip("pypdf").PdfReader
    typeset = pytest.importorskip("docs.paper.typeset").typeset
    run, pdf = tmp_path / "run", tmp_path / "paper.pdf"
    shutil.copytree(PUBLISHED, run, ignore=shutil.ignore_patterns("counterexamples"))

    def text():
        typeset(run, pdf)
        return re.sub(r"\s", "", "".join(page.extract_text() for page in reader(pdf).pages))

    before = text()
    assert len(reader(pdf).pages) <= 10
    assert pdf.stat().st_size <= 800_000
    answers = {answer.id: answer for answer in read_run(run)}
    old = answers["random-aligned"]
    result = replace(old.result, size=(-0.0876, -0.0654, -0.0432))
    answers["random-aligned"] = replace(old, result=result)
    stated = replace(answers["hdi-monotone-law"], word="never")
    answers["hdi-monotone-law"] = stated
    write_answers(answers.values(), run / "answers.json", "answers.json of standard")
    after = text()
    for new in ("−6.5%(−8.8to−4.3%)", "never;nofailurefound"):
        assert after.count(new) > before.count(new)
    size = re.sub(r"\s", "", old.result.how_much())
    assert after.count(size) <= before.count(size) - 2
