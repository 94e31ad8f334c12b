"""The command line: help, listings, an experiment from both roads to the published page."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
import yaml

from sims.files import read_json
from sims.papers import MAIN, papers
from sims.study.experiment import load_experiment
from tests.cli.small import EXPERIMENT, run

ROOT = Path(__file__).parents[2]
COMMANDS = ["decompose", "sweep", "run", "table", "experiments", "claims", "new", "schema"]
HOME = Path("results/smoke/small")


def steps(*names):
    """Pipeline steps of the small experiment."""
    return [run("step", name, "small", "--fidelity", "smoke") for name in names]


def test_help(capsys):
    assert run("--help") == 0
    overview = capsys.readouterr().out
    assert re.findall(r"^  (\w+) ", overview.split("Commands:")[1], re.MULTILINE) == COMMANDS
    for command in COMMANDS:
        assert run(command, "--help") == 0
        assert f"Usage: sims {command}" in capsys.readouterr().out
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("sims ")


def test_listings(folder, capsys):
    assert run("experiments", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"name": "small", "title": "T", "claims": ["decomposition"]}
    ]
    shutil.copytree(ROOT / "papers", "papers")
    assert run("claims", "--json", "--paper", MAIN) == 0
    paper, rows = papers()[MAIN], json.loads(capsys.readouterr().out)
    listed = [(claim.id, False) for claim in paper.claims] + [(own.id, True) for own in paper.ours]
    assert [(row["claim"], row["ours"]) for row in rows] == listed
    for what in ("experiment", "problem", "decompose", "sweep", "paper", "variables"):
        assert run("schema", what) == 0
        assert json.loads(capsys.readouterr().out)["type"] == "object"
    assert run("experiments") == run("claims") == 0
    text = capsys.readouterr().out
    assert "small" in text
    assert paper.title in text


def test_a_new_experiment_is_the_guides_example(folder, capsys):
    """Which is executed by the tests of the guide."""
    assert run("new", "my_question") == 0
    assert "sims run my_question --fidelity smoke" in capsys.readouterr().out
    guide = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    pattern = r"^```\w+ file=experiments/noise_level/(\S+)\n(.*?)^```$"
    blocks = dict(re.findall(pattern, guide, re.MULTILINE | re.DOTALL))
    for name in ("experiment.yaml", "effects.py", "figure.py", "caption.md"):
        assert Path("experiments/my_question", name).read_text(encoding="utf-8") == blocks[name]
    assert load_experiment("my_question", "smoke").claims


def test_from_an_experiment_to_the_published_page(folder, capsys):
    shutil.copytree(ROOT / "papers", "papers")
    assert run("run", "small", "--fidelity", "smoke", "--dry") == 0
    out = capsys.readouterr().out
    assert "points       2, at most 1 compile shape" in out
    assert "replicates   32 a point (4 batches of 8)\n" in out
    assert not Path("results").exists()
    assert run("run", "small", "--fidelity", "smoke") == 0
    out = capsys.readouterr().out
    assert out.startswith(("supported", "inconclusive"))
    assert Path(out.splitlines()[-1]).is_file()
    for step in ("ledger", "report", "publish"):
        assert run("step", step, "--fidelity", "smoke") == 0, capsys.readouterr().err
    (row,) = read_json("results/smoke/ledger.json")
    assert (row["claim"], row["experiment"], row["replicates"]) == ("decomposition", "small", 32)
    page = Path("results/smoke/report.html").read_text()
    assert "data:image/" in page
    assert 'src="http' not in page
    assert str(folder) not in page
    assert (HOME / "caption.md").read_text().startswith("**Seen** 2 points;")
    names = {"README.md", "ledger.json", "report.html", "small.png"}
    assert {path.name for path in Path("results/published").iterdir()} == names
    before = {p: p.read_bytes() for p in HOME.glob("figure.*")}
    assert steps("simulate", "predict", "judge", "plot") == [0] * 4
    assert {p: p.read_bytes() for p in before} == before, "the pipeline does what `run` does"
    capsys.readouterr()
    _check_table(capsys)
    file = Path("experiments/small/experiment.yaml")
    file.write_text(file.read_text().replace("effects: gaps", "effects: gap"))
    assert steps("judge") == [2]
    line = "small: claims, decomposition (all), effects: got 'gap'; allowed: gaps"
    assert line in capsys.readouterr().err
    for path in file.parent.glob("*.py"):  # reading results runs none of it
        path.write_text("raise SystemExit")
    readings = (["table", "small"], ["claims"], ["step", "ledger"], ["step", "report"])
    assert [run(*words, "--fidelity", "smoke") for words in readings] == [0] * 4


def _check_table(capsys):
    """`sims table` has every point, and the numbers of the two files."""
    assert run("table", "small", "--fidelity", "smoke") == 0
    frame = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype={"name": str})
    assert frame["heads.bandwidth"].tolist() == [0.7, 0.9]
    with xr.open_dataset(HOME / "simulation.nc") as data:
        mse = data["mse"].values
        assert data["mse"].attrs.keys() >= {"long_name", "units"}
        assert data.sel(bandwidth=0.9)["mse"].shape == (4,)
    np.testing.assert_allclose(frame["mse"], mse.mean(-1), rtol=1e-12)
    np.testing.assert_allclose(frame["mse_mcse"], mse.std(-1, ddof=1) / 2, rtol=1e-6)
    with xr.open_dataset(HOME / "theory.nc") as data:
        theory = data["mse"].sel(order="first").values
    np.testing.assert_allclose(frame["mse_theory"], theory, rtol=1e-12)
    assert run("table", "small", "--fidelity", "smoke", "--latex") == 0
    assert r"squared\_bias" in capsys.readouterr().out
    assert run("table", "small", "--fidelity", "smoke", "--order", "exact") == 2
    assert capsys.readouterr().err == "sims table: order: got 'exact'; allowed: first\n"


def test_finished_points_are_reused(folder, monkeypatch, capsys):
    """An interrupted or widened grid computes only what is new."""
    import sims.study.roads as roads

    calls = []
    real = roads.estimate

    def counting(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(roads, "estimate", counting)
    assert steps("simulate") == [130]
    assert "finished points are kept" in capsys.readouterr().err
    assert not (HOME / "simulation.nc").exists()
    assert steps("simulate") == [0]
    assert len(calls) == 3  # one finished, one interrupted, one again
    wider = {**EXPERIMENT, "grid": [{"heads.bandwidth": [0.5, 0.7, 0.9]}]}
    Path("experiments/small/experiment.yaml").write_text(yaml.safe_dump(wider))
    assert steps("simulate") == [0]
    assert len(calls) == 4


def test_modules_planted_in_the_folder_are_not_imported(folder):
    """Neither by the processes of a run, nor by ``python -m sims`` but for a sims.py."""
    drawn = {"label": "drawn", "problems": 2, "replicates": 4}
    grid = {"grid": [{"population": drawn, "heads.bandwidth": [0.7, 0.9]}]}
    Path("experiments/small/experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT | grid))
    for name in ("json", "random", "sims"):
        Path(f"{name}.py").write_text("open('PWNED', 'w'); raise SystemExit\n")
    command = [Path(sys.executable).with_name("sims"), "step", "simulate", "small"]
    subprocess.run(command, check=True, env=os.environ | {"SIMS_HOST_DEVICES": "2"})
    assert Path("results/standard/small/simulation.nc").exists()
    Path("sims.py").unlink()
    subprocess.run([sys.executable, "-m", "sims", "experiments"], check=True)
    assert not Path("PWNED").exists()


def test_a_command_that_is_asked_to_stop_says_so(folder, capsys, monkeypatch):
    def stopped(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("sims.cli.commands._names", stopped)
    assert run("experiments") == 75
    assert capsys.readouterr().err == "sims experiments: stopped; the same command goes on\n"
