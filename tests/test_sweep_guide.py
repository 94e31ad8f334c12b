"""The examples of docs/sweeps.md, executed."""

import re
from pathlib import Path

import pytest

from sims.cli import main

TEXT = (Path(__file__).parents[1] / "docs/sweeps.md").read_text(encoding="utf-8")
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
