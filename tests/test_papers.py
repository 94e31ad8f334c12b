"""Papers: their files, what an experiment may claim, and what starts without JAX."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sims.documents import read_yaml
from sims.errors import InputError
from sims.papers import MAIN, PAPERS, PaperClaim, claim_of, paper_of, papers
from sims.study.code import EXPERIMENTS, FIDELITIES
from sims.study.experiment import load_experiment
from sims.study.schema import ExperimentSpec
from sims.validation import parse

OTHER = "2601.22766"
PAPER = {
    "arxiv": OTHER, "title": "T", "authors": "A", "year": 2026, "read": "The abstract.",
    "claims": [{"id": "one", "statement": "S.", "source": "abstract", "reconstruction": "R."}],
    "ours": [{"id": "two", "statement": "S."}],
}  # fmt: skip
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
    "title": "T", "aim": "A", "data_generating_process": "D", "estimands": "E", "methods": "M",
    "performance_measures": "P", "fidelities": {name: {} for name in FIDELITIES},
}  # fmt: skip


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


def test_the_papers_of_this_repository():
    """The main one has 14 claims, all tested; every claim that an experiment makes is listed."""
    every = papers()
    assert next(iter(every)) == MAIN
    main = every[MAIN]
    assert len(main.claims) == 14
    assert {c.id for c in main.claims if c.source != "abstract"} == {"adding-heads"}
    assert {c.id for c in main.ours} == {
        "rates", "weighting", "exact", "first-order-range", "remainder-order", "evaporation",
        "hdi-conditions", "hdi-further", "diversity-penalty", "canonical-angles",
    }  # fmt: skip
    files = [read_yaml(path) for path in Path(EXPERIMENTS).glob("*/experiment.yaml")]
    made: dict[str, set[str]] = {}
    for file in files:
        for claim in file["claims"]:
            made.setdefault(claim.get("paper", file.get("paper", MAIN)), set()).add(claim["id"])
    listed = {id: {c.id for c in (*paper.claims, *paper.ours)} for id, paper in every.items()}
    assert made[MAIN] == listed[MAIN]
    assert all(ids <= listed[id] for id, ids in made.items())


def test_claims_by_id(folder):
    assert list(papers()) == [MAIN, OTHER]
    paper = paper_of(OTHER)
    assert isinstance(claim_of(paper, "one"), PaperClaim)
    assert claim_of(paper, "two").statement == "S."
    with pytest.raises(InputError, match=f"claim of {OTHER}: got 'three'; allowed: one, two"):
        claim_of(paper, "three")
    with pytest.raises(InputError, match=f"paper: got '1'; allowed: {OTHER}, {MAIN}"):
        paper_of("1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"titel": "T"}, "titel: got 'titel'; allowed: arxiv, authors, claims"),
        ({"arxiv": 2601.22766}, "arxiv: got 2601.22766"),
        ({"arxiv": MAIN}, f"arxiv: got '{MAIN}'; allowed: {OTHER}, as the file is named"),
        ({"claims": []}, "claims: got"),
        ({"claims": [{**PAPER["claims"][0], "source": "hearsay"}]}, "source: got 'hearsay'"),
        ({"ours": [{"id": "one", "statement": "S."}]}, "got 'one'; allowed: each id once"),
        ({"ours": [{"id": "two"}]}, "ours.0.statement: got 'nothing'"),
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
    for bad in ("x", [], ["x"]):
        with pytest.raises(InputError, match="claims"):
            parse(ExperimentSpec, EXPERIMENT | {"paper": OTHER, "claims": bad}, "file")


def test_a_claim_that_its_paper_does_not_list_is_refused(folder):
    def load(claim, **changes):
        folder("e/experiment.yaml", EXPERIMENT | changes | {"claims": [CLAIM | claim]})
        return load_experiment("e")

    assert load({"id": "two"}, paper=OTHER).claims[0].paper == OTHER
    assert load({"id": "two", "paper": OTHER}).spec.paper == MAIN
    with pytest.raises(InputError) as caught:
        load({"id": "two"})
    text = f"e/experiment.yaml: claim of {MAIN}: got 'two'; allowed: one"
    assert str(caught.value) == text
    with pytest.raises(InputError, match=f"paper: got '2511.20698'; allowed: {OTHER}"):
        load({}, paper="2511.20698")
    Path("experiments").mkdir()  # a folder that stands for itself, without papers
    for file in Path(PAPERS).glob("*"):
        file.unlink()
    Path(PAPERS).rmdir()
    assert load({"id": "two"}).claims[0].id == "two"  # nothing to hold it against


def test_ledger_report_and_contract_start_without_jax():
    code = (
        "import sys, sims.report, sims.papers, sims.judgement\n"
        "from sims.study.experiment import load_experiment\n"
        "load_experiment('decomposition', 'smoke').contract\n"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
