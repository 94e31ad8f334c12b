"""Answers, captions, figures and pages from tables alone, and the publication of one experiment."""

from pathlib import Path

import pytest

from sims.base.errors import InputError
from sims.study.ledger import read_run
from sims.study.panels import PANELS, TABLE
from sims.study.running import Run
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import EXPERIMENT, OWN, run, write

HOME = Path("results/smoke")
PUBLISHED = Path("results/published")


@pytest.fixture
def finished(folder, capsys):  # noqa: F811
    """A run of two experiments, of which nothing is left but the tables."""
    other = write().with_name("other")
    other.mkdir()
    asked = EXPERIMENT["questions"][0] | {"id": "other-gaps"}
    for path in write(questions=[asked]).iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    write(OWN)
    for name in ("small", "other"):
        assert run("run", name, "--fidelity", "smoke") == 0
    for step in ("ledger", "report"):
        assert run("step", step, "--fidelity", "smoke") == 0
    made = contents(HOME)
    for path in HOME.rglob("*"):
        if path.is_file() and path.name not in (TABLE, PANELS):
            path.unlink()
    return made


def contents(home):
    """Relative path of every file that words and looks make, to its bytes."""
    files = {}
    for path in home.rglob("*"):
        if path.suffix in (".json", ".md", ".png", ".html") and ".seconds" not in path.parts:
            files[str(path.relative_to(home))] = path.read_bytes()
    return files


def test_pages_are_made_of_tables_alone(finished, capsys):
    """With what was drawn last, to the byte; and not of a table of other settings."""
    assert run("step", "pages", "--fidelity", "smoke") == 0, capsys.readouterr().err
    assert contents(HOME) == finished
    write(OWN, settings={"problems": 4})
    with pytest.raises(InputError, match=r"effects\.nc: got 'problem .* again"):
        Run.load("small", "smoke").figure()


def test_one_experiment_is_published_beside_the_others(finished, capsys):
    assert run("step", "publish", "--fidelity", "smoke") == 0, capsys.readouterr().err
    before = contents(PUBLISHED)
    renamed = EXPERIMENT["questions"][0] | {"question": "Are they equal?"}
    write(OWN, questions=[renamed])
    assert run("step", "publish", "small", "--fidelity", "smoke") == 0, capsys.readouterr().err
    after = contents(PUBLISHED)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"answers.json", "answers.md", "report.html", "small/caption.md"}
    assert {"answers.json", "answers.md", "report.html"} <= changed
    assert [one.question for one in read_run(PUBLISHED)] == [
        "Do the mean squared errors agree?",
        "Are they equal?",
    ]
    assert set(after) == set(before)
    (PUBLISHED / "other" / TABLE).unlink()
    write(OWN)
    assert run("step", "publish", "small", "--fidelity", "smoke") == 0, capsys.readouterr().err
    kept = contents(PUBLISHED)
    assert {name: kept.get(name) for name in after if name.startswith("other/")} == {
        name: after[name] for name in after if name.startswith("other/")
    }
    assert kept["answers.md"] == before["answers.md"]
