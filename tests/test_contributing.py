"""The worked examples of docs/extending.md, executed in a copy of the repository.

A block's info string says what a reader does with it: ``insert=FILE before="LINE"`` (or ``after``,
or ``end``), ``file=PATH``, ``run``, ``commands``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
RULES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def insert(folder: Path, path: str, where: str, text: str) -> None:
    file = folder / path
    content = file.read_text(encoding="utf-8")
    if where == "end":
        gap = "\n\n" if file.suffix == ".py" else ""
        file.write_text(f"{content}{gap}{text}", encoding="utf-8")
        return
    match = re.fullmatch(r'(before|after)="(.+)"', where)
    assert match, where
    side, line = match.groups()
    assert content.count(f"\n{line}\n") == 1, f"{path} has not exactly one line {line!r}"
    new = f"{text}{line}" if side == "before" else f"{line}\n{text.rstrip()}"
    file.write_text(content.replace(f"\n{line}\n", f"\n{new}\n"), encoding="utf-8")


def python(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "SIMS_HOST_DEVICES": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The repository with all that the guide adds to it."""
    folder = tmp_path_factory.mktemp("repository")
    unfinished = shutil.ignore_patterns("*.pyc.*")  # what Python has compiled is not compiled again
    for name in ("sims", "tests", "papers"):
        shutil.copytree(ROOT / name, folder / name, ignore=unfinished)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for _, info, text in BLOCKS:
        if found := re.match(r"insert=(\S+) (.+)", info):
            insert(folder, *found.groups(), text)
        elif found := re.match(r"file=(\S+)", info):
            (folder / found[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / found[1]).write_text(text, encoding="utf-8")
    return folder


def test_every_block_is_of_a_known_kind():
    """So that no example escapes execution by a misspelt word."""
    kinds = [re.split(r"[= ]", info)[0] for _, info, _ in BLOCKS if info]
    assert sorted(set(kinds)) == ["file", "insert", "run"]
    assert TEXT.count("\n```") == 2 * len(BLOCKS)


SCRIPTS = [text for _, info, text in BLOCKS if info == "run"]


def agree(said: str) -> None:
    """Exact theory within 6 Monte Carlo errors of four batches: t, 3 degrees of freedom, 1 %."""
    exact, value, error = map(float, re.findall(r"\d+\.\d+", said))
    assert 0 < abs(exact - value) < 6 * error < 0.5 * value


def test_scripts_and_what_is_registered(copy):
    """A kernel and a design of one's own, weight rules, one in a file, a replicate function.

    The contract tests pick up the registered target and kernel, and the schema lists them.
    """
    ends = """
import pytest
from sims.cli import main
main(["schema", "problem"])
names = "-k=plane_wave or tricube"
files = "tests/problem/test_targets.py", "tests/problem/test_task.py"
raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", *files, names]))
"""
    said = python(copy, "-c", "\n".join([*SCRIPTS, ends])).split("\n", maxsplit=5)
    by_both, by_rule, by_driver, by_file, by_name, listed = said
    agree(by_both)
    agree(by_name)
    assert by_file.startswith("entmax (distance) ")
    for line in (by_rule, by_file, by_driver):
        value, error = map(float, re.findall(r"\d+\.\d+", line))
        assert 0 < error < value
    assert by_driver.endswith("precision")
    assert "plane_wave" in listed
    assert "tricube" in listed
    assert int(re.search(r"(\d+) passed", listed)[1]) >= 3


def test_a_weight_rule_in_a_file(copy, capsys):
    """The command of the text takes the file."""
    from sims.cli import main

    assert "`sims decompose sparse.yaml`" in TEXT
    assert main(["decompose", str(copy / "sparse.yaml"), "--dry"]) == 0
    assert capsys.readouterr().out


def test_parts_of_a_file(copy, capsys):
    """Target and kernel of my.py at one query, by both methods; 6 Monte Carlo errors as above."""
    from sims.cli import main

    assert "`sims decompose own.yaml --allow-code`" in TEXT
    text = (copy / "own.yaml").read_text(encoding="utf-8")
    for old, new in (("count: 2, scale", "count: 1, scale"), ("exact}", "exact, rtol: 0.01}")):
        text = text.replace(old, new)
    (copy / "one.yaml").write_text(text)
    assert main(["decompose", str(copy / "one.yaml"), "--json", "--allow-code"]) == 0
    row = json.loads(capsys.readouterr().out)["terms"]["mse"]
    agree(f"{row['theory']:.9f} {row['simulation']:.9f} {row['mcse']:.9f}")


def test_the_table_counts_the_lines_of_the_blocks():
    def lines(start):
        texts = [text for _, info, text in BLOCKS if info.startswith(start)]
        return sum(bool(line.strip()) for text in texts for line in text.splitlines())

    counts = {
        "target": lines("insert=sims/problem/targets.py"),
        "kernel": lines("insert=sims/problem/kernels.py"),
    }
    for name, count in counts.items():
        assert f"| {name} | {count} |" in TEXT
    for name, scaffold in (("experiment", "gap"), ("statistic", "statistic")):
        files = (ROOT / "sims/study/scaffold" / scaffold).glob("*.txt")
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        counts[name] = sum(bool(line.strip()) for line in text.splitlines())
    for name, count in counts.items():
        assert f"| {name} | {count} |" in RULES


def test_what_both_pages_name_exists():
    """Targets of make, and files and folders, in blocks, code and links."""
    makefile, both = (ROOT / "Makefile").read_text(encoding="utf-8"), RULES + TEXT
    for target in set(re.findall(r"(?:^|`)make ([\w-]+)", both, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    paths = re.findall(r"`((?:sims|tests|docs|experiments|papers)/[\w/.]+)`", both)
    for path in [*paths, *re.findall(r"\]\(([^)#]+)\)", RULES)]:
        assert (ROOT / path).exists(), path
    assert "docs/extending.md" in RULES
