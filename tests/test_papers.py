"""Papers: their files, and what an experiment may ask."""

import shutil
from pathlib import Path

import pytest
import yaml

from sims.base.validation import parse
from sims.study.declaration import Declaration
from sims.study.papers import MAIN, PAPERS, paper_of, papers
from sims.study.schema import ExperimentSpec
from tests.by_hand import refused
from tests.cli.small import EXPERIMENT

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
QUESTION = {"id": "one", "question": "Q?", "asks": "share", "effect": "e"}
QUESTION |= {"status": "confirmatory"}


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
    with refused(f"paper: got '1'; allowed: {OTHER}, {MAIN}"):
        paper_of("1")


def test_families_are_the_questions_of_our_experiments_that_say_always(pytestconfig, monkeypatch):
    monkeypatch.chdir(pytestconfig.rootpath)
    ours = {path.stem for path in Path("tests/experiments/planted").glob("[a-z]*.py")} - {"made"}
    questions = [q for name in ours for q in Declaration.read(name).spec.questions]
    for id, paper in papers().items():
        declared = [q.id for q in questions if q.says and q.paper == id]
        assert sorted(paper.family) == sorted(declared)


PROVENANCE = (
    "We read the full text of three papers and the abstract of five; what an abstract leaves open "
    "is our reconstruction."
)


def test_what_was_read_is_said_in_one_sentence_everywhere(pytestconfig, monkeypatch):
    monkeypatch.chdir(pytestconfig.rootpath)
    read = [paper.full_text for paper in papers().values()]
    assert (len(read), sum(read)) == (8, 3)
    places = "README.md CONTRIBUTING.md docs/index.md docs/limits.md docs/paper/paper.md.j2 "
    for place in (places + "papers/README.md sims/report/page.html.j2").split():
        assert PROVENANCE in Path(place).read_text(encoding="utf-8"), place


def test_what_is_true_by_algebra_has_its_test(pytestconfig, monkeypatch):
    monkeypatch.chdir(pytestconfig.rootpath)
    every = [c for paper in papers().values() for c in (*paper.claims, *paper.ours)]
    shown = {c.id: Path(c.algebra) for c in every if c.algebra}
    assert {"identity", "ensemble"} <= set(shown)
    assert all(path.is_file() for path in shown.values())


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
    with refused(rf"^papers/{OTHER}.yaml: .*{words}"):
        papers()


def test_a_question_is_of_its_experiments_paper_unless_it_names_another():
    for given, expected in (({}, MAIN), ({"paper": OTHER}, OTHER)):
        asked = [QUESTION, QUESTION | {"id": "two", "paper": "2511.20698"}]
        spec = parse(ExperimentSpec, EXPERIMENT | given | {"questions": asked}, "file")
        assert [question.paper for question in spec.questions] == [expected, "2511.20698"]


def test_a_question_of_a_claim_that_its_paper_does_not_list_is_refused(folder):
    def load(question, **changes):
        folder("e/experiment.yaml", EXPERIMENT | changes | {"questions": [QUESTION | question]})
        return Declaration.read("e").spec

    assert load({"id": "any", "claim": "two"}, paper=OTHER).questions[0].paper == OTHER
    assert load({"id": "two", "paper": OTHER}).paper == MAIN
    line = f"e/experiment.yaml: claim of {MAIN}: got 'two'; allowed: one; or, for a claim of no"
    with refused(rf"^{line} paper, own: TEXT$"):
        load({"id": "two"})
    assert load({"id": "two", "own": "S."}, paper=OTHER).questions[0].paper == ""
    for change in ({"claim": "one"}, {"paper": OTHER}, {"own": ""}):
        with refused(next(iter(change))):
            load({"own": "S."} | change)
    with refused(f"paper: got '2511.20698'; allowed: {OTHER}"):
        load({}, paper="2511.20698")
    shutil.rmtree(PAPERS)
    Path("experiments").mkdir()  # a folder of its own experiments; papers are the package's
    assert load({"id": "any", "claim": "decomposition"}).paper == MAIN
    for change, words in (({"claim": "doubling"}, "got 'doubling'"), ({"paper": "1"}, "got '1'")):
        with refused(words):
            load(change)
