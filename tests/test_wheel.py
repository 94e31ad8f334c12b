"""The wheel, unpacked outside the checkout: what it carries is enough for every command."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sims.study.experiment import experiments
from sims.study.ledger import read_run
from sims.study.papers import papers

ROOT = Path(__file__).parents[1]
SOURCES = (
    "sims",
    "experiments",
    "papers",
    "profiles",
    "results/published",
    "Snakefile",
    "sweep.smk",
    "jobs.smk",
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "setup.py",
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel's contents; built of a copy, since building leaves folders beside its sources."""
    source, home = (tmp_path_factory.mktemp(name) for name in ("source", "wheel"))
    for name in SOURCES:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "notebooks")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--wheel-dir", home, source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = home.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(home / "site")
    return home / "site"


@pytest.fixture
def sims(unpacked, tmp_path):
    """Runs Python with the unpacked package in an empty folder; returns what it printed."""

    def python(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(unpacked)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

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
    assert len(rows) == sum(len((*p.claims, *p.ours)) for p in papers().values())
    assert sum(len(row["answers"]) for row in rows) == len(read_run(ROOT / "results/published"))
    assert places.split() == [str(unpacked / "sims" / name) for name in ("__init__.py", "share")]


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
    file = str(ROOT / "docs/examples/decompose.yaml")
    said = sims("-m", "sims", "sweep", file, "--set", "n=16,32", "--shards", "2", "--", "--dry-run")
    assert "rule gather:" in said


def test_code_of_experiments_is_sent_to_processes_and_not_looked_up_there(sims):
    """It lies in the package, yet cannot be imported by name as the package's modules can."""
    code = (
        "import sims; from sims.base.identity import known_by_name\n"
        "from sims.base.places import CARRIED\n"
        "own = CARRIED / 'experiments' / 'allocation' / 'simulate.py'\n"
        "print(own.is_file(), known_by_name(str(own)), known_by_name(sims.__file__))"
    )
    assert sims("-c", code).split() == ["True", "False", "True"]


def test_a_folder_with_experiments_stands_for_itself(sims, tmp_path):
    """Those that came with the package still run by name; papers are those of the package."""
    sims("-m", "sims", "new", "mine")
    file = tmp_path / "experiments/mine/experiment.yaml"
    file.write_text(file.read_text().replace("claim: decomposition", "claim: doubling"))
    said = sims(
        "-c",
        (
            "from sims.cli import main\n"
            "main(['run', 'mine', '--dry'])\n"
            "main(['experiments', '--json'])\n"
            "main(['run', 'rates', '--fidelity', 'smoke', '--dry'])"
        ),
    )
    assert "got 'doubling'; allowed: " in said
    assert re.findall('"name": "(.+?)"', said) == ["mine"]
    assert "results/smoke/rates" in said


@pytest.mark.slow
def test_an_experiment_runs_from_it(sims, tmp_path):
    sims("-m", "sims", "run", "unification", "--fidelity", "smoke")
    assert (tmp_path / "results/smoke/unification/figure.png").stat().st_size > 1000
