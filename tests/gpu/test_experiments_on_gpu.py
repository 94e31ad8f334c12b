"""Every experiment's smoke run on a GPU, against the verdicts and effects expected of a CPU."""

import json
import subprocess
import sys

import jax
import pytest

from sims.study.experiment import experiments
from tests.expected_smoke import FILE, differences, found

pytestmark = pytest.mark.gpu


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", experiments())
def test_smoke_run(name, tmp_path, pytestconfig):
    if jax.devices()[0].platform != "gpu":
        pytest.skip("no GPU here")
    for folder in ("experiments", "papers", "docs"):
        (tmp_path / folder).symlink_to(pytestconfig.rootpath / folder)
    command = [sys.executable, "-m", "sims", "run", name, "--fidelity", "smoke"]
    subprocess.run(command, cwd=tmp_path, check=True)
    home = tmp_path / "results" / "smoke"
    rows = found([name], home, home / name / "verdicts.json")
    expected = json.loads(FILE.read_text(encoding="utf-8"))
    assert not differences({key: expected[key] for key in rows}, rows)
