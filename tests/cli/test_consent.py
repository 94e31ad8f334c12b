"""Files that a problem names: what is refused, and whose code runs."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.cli.small import EXPERIMENT, SPEC, changed, run

EXPERIMENT_FILE = Path("experiments/small/experiment.yaml")


TARGET = {"kind": "python", "file": "my.py", "name": "m"}
NAMED = [
    ("target", TARGET | {"file": "no.py"}, "problem.target.file: no.py: file not found"),
    (
        "target",
        TARGET | {"name": "mm"},
        "my.py: name: got 'mm'; allowed: defined in this file: m (did",
    ),
    ("target", TARGET | {"slop": 1}, "slop"),
    ("target", {"kind": "python", "file": "my.py"}, "target.name: got 'nothing'; allowed: a value"),
    ("design", {"kind": "empirical", "file": "no.npy"}, "design.file: no.npy: file not found"),
    ("design", {"kind": "empirical", "file": "my.py"}, "design.file"),
    ("design", {"kind": "empirical", "file": "rows.csv"}, "allowed: numbers of shape (N, 4)"),
]


@pytest.mark.parametrize(("part", "value", "words"), NAMED, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("command", ["decompose", "sweep"])
def test_a_file_that_a_problem_names(refuses, command, part, value, words):
    Path("my.py").write_text("def m(x, slope=1.0):\n    return slope * x[..., 0]\n")
    np.savetxt("rows.csv", np.ones((30, 3)), delimiter=",")
    Path("spec.yaml").write_text(yaml.safe_dump(changed(SPEC, f"problem.{part}", value)))
    refuses(words, command, "spec.yaml", "--allow-code")


EVIL = """
from os import system
from pathlib import Path
def m(x):
    return x[..., 0]
"""
MARK = EVIL + "Path('PWNED').touch()\n"
ELSEWHERE = "allowed: a .py file in the YAML file's folder or below"
DATA = "allowed: a file in the YAML file's folder or below; elsewhere only with --allow-code"
REFUSED = "allowed: only with --allow-code, for code you trust (SIMS_ALLOW_CODE=1"
HOSTILE = [
    ({"file": "marks.py"}, [], REFUSED),
    ({"file": "marks.py", "_allow_code": True, "allow_code": True}, [], REFUSED),
    ({"file": os.__file__, "name": "popen"}, ["--allow-code"], ELSEWHERE),
    ({"file": "../marks.py"}, ["--allow-code"], ELSEWHERE),
    ({"file": "../deep/marks.py"}, ["--allow-code"], ELSEWHERE),
    ({"file": "link.py"}, ["--allow-code"], ELSEWHERE),
    ({"kind": "empirical", "file": "link.py"}, [], DATA),
    ({"kind": "empirical", "file": "../marks.py"}, [], DATA),
    ({"file": "marks.txt"}, ["--allow-code"], ELSEWHERE),
    ({"name": "system", "command": "touch PWNED"}, ["--allow-code"], "defined in this file: m"),
    ({"name": "__loader__"}, ["--allow-code"], "SourceFileLoader with options none"),
]


@pytest.fixture
def deep(folder):
    """Files of problems in a folder of other people."""
    for path, text in (("deep/my.py", EVIL), ("deep/marks.py", MARK), ("marks.py", MARK)):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    Path("deep/link.py").symlink_to("../marks.py")
    Path("deep/marks.txt").touch()

    def write(value):
        problem = changed(SPEC["problem"], "target", TARGET | value)
        law = {"law": EXPERIMENT["law"] | {"problem": problem}}
        for name, data in (("spec", SPEC | {"problem": problem}), ("experiment", EXPERIMENT | law)):
            Path(f"deep/{name}.yaml").write_text(yaml.safe_dump(data))

    return write


@pytest.mark.parametrize(("value", "options", "words"), HOSTILE, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize(
    "command", ["decompose deep/spec.yaml", "sweep deep/spec.yaml", "run deep"]
)
def test_code_runs_by_consent(deep, refuses, command, value, options, words):
    deep(value)
    refuses(words, *command.split(), *options)


def test_a_plan_and_a_list_run_no_code(deep, capsys):
    deep({"file": "marks.py"})
    Path("experiments/small/simulate.py").write_text(MARK)
    for name in ("deep", "experiments/small"):
        Path(name, "study.py").write_text(MARK)
    files = "decompose deep/spec.yaml,sweep deep/spec.yaml,run deep,run small"
    for line in f"{files},decompose deep#1,sweep small#1".split(","):
        assert run(*line.split(), "--dry") == 0
        assert re.search(r"\.py: not read", capsys.readouterr().out)
    for line in ("experiments", "claims", "schema experiment"):
        assert run(*line.split()) == 0
    assert not list(Path().rglob("PWNED"))
