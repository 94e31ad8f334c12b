"""The code of docs/testing.md, executed, and a bound that fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def test_a_bound_in_a_test_suite(tmp_path):
    """Three of its problems pass; a theory that is half as large again is found out."""
    for _, info, text in blocks("testing.md"):
        name, text = info.removeprefix("file="), text.replace("(LAW, 20)", "(LAW, 3)")
        (tmp_path / name).write_text(text)
        if name.startswith("test_"):
            wrong = text.replace(
                "(simulated, theory", "(simulated, theory.assign(mse=1.5 * theory.mse)"
            )
            (tmp_path / "test_wrong.py").write_text(wrong)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True)
    failed = re.findall(r"^FAILED (\w+)", done.stdout, re.MULTILINE)
    assert {*failed} == {"test_wrong"}, done.stdout
    assert f"{6 - len(failed)} passed" in done.stdout
    message = r" mse: simulated .+ standard errors beyond .+; a gap from .+ on fails"
    assert len({*re.findall(message, done.stdout)}) == 3  # a summary may say each again
