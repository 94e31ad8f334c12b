"""The examples of docs/sweeps.md, and the listing docs/examples/one_page.py, executed."""

import re
import runpy
from pathlib import Path

import pytest

from sims.cli import main

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "sweeps.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_guide_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for _, info, text in BLOCKS:
        if info.startswith("file="):
            Path(info.removeprefix("file=")).write_text(text, encoding="utf-8")
        elif info == "commands":
            for line in text.splitlines():
                assert main(line.split()[1:]) == 0, (line, capsys.readouterr().err)
        elif info == "run":
            exec(text, names)
    assert {info for _, info, _ in BLOCKS} == {"file=bandwidths.yaml", "commands", "run", ""}
    assert Path("kernels.png").is_file()


def test_the_page_of_numpy_alone_judges_ten_problems(capsys):
    page = DOCS / "examples/one_page.py"
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert [line for line in lines if "import" in line] == ["import numpy as np"]
    runpy.run_path(str(page))
    problems = capsys.readouterr().out.splitlines()[1:]
    words = [re.findall(r"% +(falls|rises|\?)", line) for line in problems]
    assert [len(both) for both in words] == [2] * 10
