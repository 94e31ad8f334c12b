"""Every smoke run with verdicts has on a GPU those that a CPU found."""

import json
import subprocess
import sys

import jax
import pandas as pd
import pytest

from tests.golden.__main__ import FOLDER, ROW

pytestmark = pytest.mark.gpu
FROZEN = pd.read_csv(FOLDER / "ledger.csv").set_index(ROW)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FROZEN.index.unique("experiment"))
def test_smoke_run(name, tmp_path, pytestconfig):
    if jax.devices()[0].platform != "gpu":
        pytest.skip("no GPU here")
    for folder in ("experiments", "papers", "docs"):
        (tmp_path / folder).symlink_to(pytestconfig.rootpath / folder)
    command = [sys.executable, "-m", "sims", "run", name, "--fidelity", "smoke"]
    subprocess.run(command, cwd=tmp_path, check=True)
    expected = FROZEN["verdict_smoke"].loc[[name]]
    verdicts = json.loads((tmp_path / "results" / "smoke" / name / "verdicts.json").read_text())
    found = pd.DataFrame(verdicts).set_index(ROW)["verdict"]
    assert found.to_dict() == expected.to_dict()
