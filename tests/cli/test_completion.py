"""What a shell is offered where TAB is pressed, by argcomplete's protocol; without JAX."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from pathlib import Path
def said(code, leave=os._exit):
    Path(sys.argv[1]).write_text(" ".join(sys.modules))
    leave(code)
os._exit = said  # argcomplete leaves by it
from sims.cli import main
main([])
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sims tab", {"table"}),
        ("sims open head_", {"head_count", "head_recovery"}),
        ("sims table angles --for", {"--format"}),
        ("sims run angles --fidelity s", {"smoke", "standard"}),
    ],
)
def test_commands_options_and_experiments_are_completed(tmp_path, line, offered):
    found = tmp_path / "found"
    environment = os.environ | {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line,
        "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "loaded")],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {word.strip() for word in found.read_text().split("\n")} == offered
    assert not {"jax", "numpy", "xarray"} & set((tmp_path / "loaded").read_text().split())
