"""The wheel, unpacked outside the checkout: what it carries is enough for every command."""

import json
import re
import sys
from pathlib import Path

import pytest

from sims.base.places import experiments
from sims.study.ledger import read_run
from sims.study.papers import papers
from tests.checkout import ROOT, build_wheel, call, copy_checkout

UNTRACKED = (
    "experiments/mine/experiment.yaml",
    "papers/9999.00001.yaml",
    "sims/mine/__init__.py",
    "sims/study/scaffold/gap/mine.txt",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout with files of one's own, among them one that an earlier build has left."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_checkout(folder)
    for name in (*UNTRACKED, "build/lib/sims/share/experiments/mine/experiment.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("title: mine\n")
    return folder


@pytest.fixture(scope="module")
def unpacked(checkout, tmp_path_factory):
    """The contents of the wheel that is built of the checkout."""
    return build_wheel(checkout, tmp_path_factory.mktemp("wheel"))


def test_only_what_is_under_version_control_is_shipped(checkout, unpacked, tmp_path):
    """So too by way of an sdist, which is built without git."""
    call(checkout, sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    call(tmp_path, "tar", "--extract", "--file", archive)
    (source,) = tmp_path.glob("*/")
    again = build_wheel(source, tmp_path / "wheel")
    names, others = (
        {str(p.relative_to(home)) for p in home.rglob("*")} for home in (unpacked, again)
    )
    assert names == others
    assert "sims/share/experiments/rates/experiment.yaml" in names
    assert not [name for name in names if re.search(r"\bmine\b|9999", name)]


@pytest.fixture
def sims(unpacked, tmp_path):
    """Runs Python with the unpacked package in an empty folder; returns what it printed."""

    def python(*arguments):
        return call(tmp_path, sys.executable, *arguments, PYTHONPATH=str(unpacked))

    return python


def test_it_lists_experiments_and_claims_with_their_answers(sims, unpacked, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = sims(
        "-c",
        (
            "import sims, sims.base.places; from sims.cli import main\n"
            "main(['experiments', '--json']); print('---')\n"
            "main(['claims', '--json']); print('---')\n"
            "print(sims.__file__, sims.base.places.CARRIED)"
        ),
    )
    listed, rows, places = said.split("---\n")
    assert [row["name"] for row in json.loads(listed)] == experiments()
    rows = json.loads(rows)
    published = read_run(ROOT / "results/published")
    own = {answer.claim for answer in published if not answer.paper}
    assert len(rows) == sum(len((*p.claims, *p.ours)) for p in papers().values()) + len(own)
    assert sum(len(row["answers"]) for row in rows) == len(published)
    assert places.split() == [str(unpacked / "sims" / name) for name in ("__init__.py", "share")]


def test_models_that_a_page_names_have_reports(sims, tmp_path):
    """In an empty folder, from the packages that `make models` unpacks."""
    page = (ROOT / "docs/inspect.md").read_text()
    pins = [path.read_text() for path in ROOT.glob("requirements/models*.txt")]
    assert {*re.findall(r"[\w-]+==[\d.]+", page)} <= {*" ".join(pins).split()}
    for name in re.findall("`models/(.+?)`", page):
        model = Path(sys.prefix, "models", name)
        if not model.exists():
            pytest.skip(f"{name} is not installed")
        sims("-m", "sims", "inspect", str(model), "--output", "report.nc")
        (tmp_path / "report.png").unlink()


def test_experiments_and_workflow_start_from_it(sims):
    """Questions are held against papers, which are there."""
    said = sims(
        "-c",
        (
            "import subprocess, sys; from sims.base.places import CARRIED\n"
            "run = [sys.executable, '-m', 'snakemake', '-n', '-s', str(CARRIED / 'Snakefile')]\n"
            "sys.exit(subprocess.call([*run, '--config', 'fidelity=smoke', 'experiment=rates']))"
        ),
    )
    assert "rule simulate:" in said


def test_code_of_experiments_is_sent_to_processes_and_not_looked_up_there(sims):
    """It lies in the package, yet cannot be imported by name as the package's modules can."""
    code = (
        "import sims; from sims.base.members import known_by_name\n"
        "from sims.base.places import CARRIED\n"
        "own = CARRIED / 'experiments' / 'allocation' / 'simulate.py'\n"
        "print(own.is_file(), known_by_name(str(own)), known_by_name(sims.__file__))"
    )
    assert sims("-c", code).split() == ["True", "False", "True"]


def test_a_folder_with_experiments_stands_for_itself(sims, tmp_path):
    """Those that came with the package still run by name; papers and answers are the package's."""
    sims("-m", "sims", "new", "mine")
    file = tmp_path / "experiments/mine/experiment.yaml"
    file.write_text(re.sub("^    own: .*$", "    claim: doubling", file.read_text(), flags=re.M))
    said = sims(
        "-c",
        (
            "from sims.cli import main\n"
            "main(['run', 'mine', '--dry'])\n"
            "main(['experiments', '--json'])\n"
            "main(['advise', '--n', '1024', '--budget', '16', '--noise', '2'])\n"
            "main(['run', 'rates', '--fidelity', 'smoke', '--dry'])\n"
            "main(['protocol', 'rates'])"
        ),
    )
    assert "got 'doubling'; allowed: " in said
    assert re.findall('"name": "(.+?)"', said) == ["mine"]
    assert "results/smoke/rates" in said
    assert "# Protocol of `rates`" in said
    assert re.search(r"Rests on: .* \[allocation: dk-log\] (?!not published)", said)
