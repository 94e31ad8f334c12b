"""The paper that ``make paper`` typesets: it says what the answers say, and is short and small."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sims.base.errors import InputError
from sims.judgement.answers import write_answers
from sims.study.ledger import read_run

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results/published"
SOURCE = ROOT / "docs/paper/paper.md.j2"
FILLED_IN = r"\{\{.*?\}\}|\{%.*?%\}|```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\{ #[^}]*\}|width=100%"
CITED = r"\((?:[^()]*, )?\d{4}\)"


@pytest.fixture
def run(tmp_path):
    """A copy of the published run."""
    left_out = shutil.ignore_patterns("counterexamples", "claims")
    return Path(shutil.copytree(PUBLISHED, tmp_path / "run", ignore=left_out))


def change(run, id, **fields):
    """Change the result of one answer of a run."""
    answers = {answer.id: answer for answer in read_run(run)}
    result = replace(answers[id].result, **fields)
    answers[id] = replace(answers[id], result=result)
    write_answers(answers.values(), run / "answers.json", "answers.json of standard")


def test_no_number_of_the_paper_is_written_by_hand():
    """Outside formulas, citations and references."""
    text = re.sub(r"# References.*?# Proofs", "", SOURCE.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(f"{FILLED_IN}|{CITED}", "", text, flags=re.DOTALL)
    assert re.findall(r"(?<!\w)\d\S*", text) == []


@pytest.mark.site
def test_the_paper_follows_the_answers(run, tmp_path):
    """Another size in the file is another size in the PDF, wherever the paper states it."""
    reader = pytest.importorskip("pypdf").PdfReader
    typeset = pytest.importorskip("docs.paper.typeset").typeset
    pdf = tmp_path / "paper.pdf"

    def pages():
        typeset(run, pdf)
        return [" ".join(page.extract_text().split()) for page in reader(pdf).pages]

    before = pages()
    assert sum(page.startswith("Supplement") for page in before[:11]) == 1  # ten pages before it
    abstract = before[0].partition("Abstract.")[2].partition("1 Introduction")[0]
    assert 100 < len(abstract.split()) <= 200
    assert pdf.stat().st_size <= 1_500_000
    change(run, "random-aligned", size=(-0.0876, -0.0654, -0.0432))
    after = pages()
    for new in ("the error changes by −6.5 % in", "−6.5 % (quartiles −8.8 to −4.3 %)"):
        assert new in " ".join(after)
        assert new not in " ".join(before)


@pytest.mark.site
def test_a_sentence_that_the_answers_contradict_stops_the_paper(run, tmp_path):
    typeset = pytest.importorskip("docs.paper.typeset").typeset
    change(run, "random-aligned", size=(0.01, 0.02, 0.03))
    with pytest.raises(InputError, match="diverse heads err less"):
        typeset(run, tmp_path / "paper.pdf")
