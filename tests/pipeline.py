"""The workflow in a folder of its own, with steps that only write what they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUB = f"""#!{sys.executable}
import json, os, sys, time
from pathlib import Path
from sims import files
step, output = sys.argv[2], Path(sys.argv[-1])
whose = f"{{output.parent.name}} at smoke" if output.parent.name != "smoke" else "smoke"
if os.environ.get("WAIT") == step:
    Path("begun.part").write_text(json.dumps(dict(os.environ) | {{"PID": os.getpid()}}))
    os.replace("begun.part", "begun")
    while not Path("go").exists():
        time.sleep(0.02)
more = [output.with_suffix(s) for s in (".png", ".svg")] + [output.with_name("caption.md")]
for path in (output, *(more if step == "plot" else ())):
    of = f"{{path.name}} of {{whose}}"
    write = files.write_json if path.suffix == ".json" else files.write
    row = {{"made": step, "experiment": "angles", "verdict": "supported"}}
    made = {{"ledger": [row]}}.get(step, row) if path.suffix == ".json" else step
    write(made, path, of)
if os.environ.get("WAIT") == step:
    Path("ended").touch()
"""


@pytest.fixture
def copy(tmp_path):
    """The code in a folder of its own, to be edited."""
    for name in ("sims", "profiles", "experiments/angles"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    lines = ['PATH = "PATH=./bin:$PATH; "' if x.startswith("PATH = ") else x
             for x in text.splitlines()]  # fmt: skip
    (tmp_path / "Snakefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sims").write_text(STUB)
    (tmp_path / "bin" / "sims").chmod(0o755)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
