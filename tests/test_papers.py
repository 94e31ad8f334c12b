"""Papers: their files, and what an experiment may claim."""

import shutil
from pathlib import Path

import pytest
import yaml

from sims.errors import InputError
from sims.papers import MAIN, PAPERS, paper_of, papers
from sims.study.code import FIDELITIES
from sims.study.experiment import load_experiment
from sims.study.schema import ExperimentSpec
from sims.validation import parse

OTHER = "2601.22766"
PAPER = {
    "arxiv": OTHER,
    "title": "T",
    "authors": "A",
    "year": 2026,
    "read": "The abstract.",
    "claims": [{"id": "one", "statement": "S.", "source": "abstract", "reconstruction": "R."}],
    "ours": [{"id": "two", "statement": "S."}],
}
CLAIM = {
    "id": "one",
    "statement": "S.",
    "margin": 0.1,
    "formula": "none",
    "kind": "simulation",
    "over": ["seeds"],
    "test": "bound",
    "effects": "e",
}
EXPERIMENT = {
    "title": "T",
    "aim": "A",
    "data_generating_process": "D",
    "estimands": "E",
    "methods": "M",
    "performance_measures": "P",
    "fidelities": {name: {} for name in FIDELITIES},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with papers: the main one and another; returns a writer of files."""
    monkeypatch.chdir(tmp_path)

    def write(path, content):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(yaml.safe_dump(content), encoding="utf-8")

    write(f"papers/{OTHER}.yaml", PAPER)
    write(f"papers/{MAIN}.yaml", PAPER | {"arxiv": MAIN, "ours": []})
    return write


def test_the_main_paper_comes_first(folder):
    assert list(papers()) == [MAIN, OTHER]
    with pytest.raises(InputError, match=f"paper: got '1'; allowed: {OTHER}, {MAIN}"):
        paper_of("1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arxiv": MAIN}, f"arxiv: got '{MAIN}'; allowed: {OTHER}, as the file is named"),
        ({"claims": [{**PAPER["claims"][0], "source": "hearsay"}]}, "source: got 'hearsay'"),
        ({"ours": [{"id": "one", "statement": "S."}]}, "got 'one'; allowed: each id once"),
    ],
)
def test_a_bad_file_is_one_line(folder, changes, words):
    folder(f"papers/{OTHER}.yaml", PAPER | changes)
    with pytest.raises(InputError) as caught:
        papers()
    assert str(caught.value).startswith(f"papers/{OTHER}.yaml: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_claim_is_of_its_experiments_paper_unless_it_names_another():
    for given, expected in (({}, MAIN), ({"paper": OTHER}, OTHER)):
        claims = [CLAIM, CLAIM | {"regime": "other", "paper": "2511.20698"}]
        spec = parse(ExperimentSpec, EXPERIMENT | given | {"claims": claims}, "file")
        assert [claim.paper for claim in spec.claims] == [expected, "2511.20698"]


def test_a_claim_that_its_paper_does_not_list_is_refused(folder):
    def load(claim, **changes):
        folder("e/experiment.yaml", EXPERIMENT | changes | {"claims": [CLAIM | claim]})
        return load_experiment("e", allow_code=None)

    assert load({"id": "two"}, paper=OTHER).claims[0].paper == OTHER
    assert load({"id": "two", "paper": OTHER}).spec.paper == MAIN
    with pytest.raises(InputError) as caught:
        load({"id": "two"})
    text = f"e/experiment.yaml: claim of {MAIN}: got 'two'; allowed: one"
    assert str(caught.value) == text
    with pytest.raises(InputError, match=f"paper: got '2511.20698'; allowed: {OTHER}"):
        load({}, paper="2511.20698")
    shutil.rmtree(PAPERS)
    Path("experiments").mkdir()  # a folder that stands for itself, without papers
    assert load({"id": "two"}).claims[0].id == "two"  # nothing to hold it against
