"""The workflow in a folder of its own, with steps that only write what they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.small import EXPERIMENT

ROOT = Path(__file__).parents[1]
STUB = f"""#!{sys.executable}
import json, os, sys, time
from pathlib import Path
step, output = sys.argv[2], Path(sys.argv[sys.argv.index("--output") + 1])
if os.environ.get("WAIT") == step:
    Path("begun.part").write_text(json.dumps(dict(os.environ) | {{"PID": os.getpid()}}))
    os.replace("begun.part", "begun")
    while not Path("go").exists():
        time.sleep(0.02)
beside = {{"plot": "caption.md", "ledger": "answers.md", "tabulate": "panels.nc"}}
more = beside.get(step, output.name)
for path in {{output, output.with_name(more)}}:
    if "--part" in sys.argv:
        part = sys.argv[sys.argv.index("--part") + 1].replace("/", "-of-")
        path = path.parent / f"shards/{{part}}.json"
    path.write_text(step)
"""
STUBBED = 'os.environ["PATH"] = "./bin:" + os.environ["PATH"]'


@pytest.fixture
def copy(tmp_path):
    """The workflow and one experiment in a folder of their own, with a stub for ``sims``."""
    own = tmp_path / "experiments/small"
    own.mkdir(parents=True)
    (own / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    (own / "caption.md").touch()
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    shutil.copy(ROOT / "jobs.smk", tmp_path)
    text = text.replace("OUT = ", f"{STUBBED}\nOUT = ")
    (tmp_path / "Snakefile").write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sims").write_text(STUB)
    (tmp_path / "bin" / "sims").chmod(0o755)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
