"""Results as a table, beside those of another run, and on screen."""

import io
import re
import shutil
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sims.effects import of_batches
from sims.judgement import read_ledger, write_verdicts
from tests.cli.small import run

HOME = Path("results/smoke/small")


@pytest.fixture
def done(folder, capsys):
    """A finished run of the small experiment, with a ledger."""
    assert run("run", "small", "--fidelity", "smoke") == 0
    assert run("ledger", "--fidelity", "smoke") == 0
    capsys.readouterr()
    return folder


def test_table_has_every_point_and_scalar_in_every_format(done, capsys):
    assert run("table", "small", "--fidelity", "smoke") == 0
    frame = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype={"name": str})
    assert frame["name"].tolist() == ["0000", "0001"]
    assert frame["heads.bandwidth"].tolist() == [0.7, 0.9]
    with xr.open_dataset(HOME / "simulation.nc") as data:
        assert frame["mse"].to_numpy() == pytest.approx(data["mse"].mean("batch").values, rel=1e-12)
        spread = data["mse"].std("batch", ddof=1).values / np.sqrt(data.sizes["batch"])
    assert frame["mse_mcse"].to_numpy() == pytest.approx(spread, rel=1e-6)
    with xr.open_dataset(HOME / "theory.nc") as data:
        assert frame["mse_theory"].to_numpy() == pytest.approx(
            data["mse"].sel(order="first").values, rel=1e-12
        )
    assert run("table", "small", "--fidelity", "smoke", "--format", "latex") == 0
    text = capsys.readouterr().out
    assert text.startswith(r"\begin{tabular}")
    assert r"squared\_bias" in text
    assert run("table", "small", "--fidelity", "smoke", "--format", "md", "--output", "t.md") == 0
    lines = Path("t.md").read_text().splitlines()
    assert len(lines) == 4
    assert {line.count(" | ") for line in lines} == {frame.shape[1] - 1}


def test_table_of_what_is_not_there_is_one_line(done, capsys):
    assert run("table", "small", "--fidelity", "paper") == 2
    assert run("table", "small", "--fidelity", "smoke", "--format", "parquet") == 2
    assert run("table", "small", "--fidelity", "smoke", "--order", "exact") == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert "results/paper/small/simulation.nc" in errors[0]
    assert "--output: got None" in errors[1]
    assert errors[2] == "sims table: order: got 'exact'; allowed: first"


def _gap(home):
    """The first effect of the small experiment, by hand."""
    with xr.open_dataset(f"{home}/small/simulation.nc") as data:
        simulated = data["mse"].values[0]
    with xr.open_dataset(f"{home}/small/theory.nc") as data:
        return of_batches("gap", simulated / float(data["mse"].values[0, 0]) - 1)


def test_diff_says_what_turned_and_what_moved(done, capsys):
    shutil.copytree("results/smoke", "other")
    assert run("diff", "results/smoke", "other") == 0
    same = capsys.readouterr().out.splitlines()
    assert same[-1] == "1 and 1 verdicts, 0 differ"
    assert "small: 0 of" in same[0]
    simulate = ("simulate", "small", "--fidelity", "smoke", "--seed-offset", "1")
    assert run(*simulate, "--output", "other/small/simulation.nc") == 0
    assert run("diff", "results/smoke", "other") == 0
    moved, effects = capsys.readouterr().out.splitlines()[:2]
    beyond, compared = (int(word) for word in moved.split()[1:4:2])
    # Two independent runs with three degrees of freedom an error: more than none, far from all.
    assert 0 < beyond < 0.5 * compared
    (value, error), (value2, error2) = (
        (float(e.value), float(e.error)) for e in map(_gap, ("results/smoke", "other"))
    )
    worst = float(effects.split("at most ")[1].split()[0])
    assert re.match(r"small: \d of 2 effects more than 2 joint MCSE apart", effects)
    assert worst >= abs(value - value2) / np.hypot(error, error2) * 0.99
    assert "(gaps: 000" in effects
    ledger = Path("changed.json")
    (row,) = read_ledger("results/smoke/ledger.json")
    turned = replace(row, verdict="refuted" if row.verdict == "supported" else "supported")
    write_verdicts([turned, replace(row, regime="more")], ledger, "ledger.json of smoke")
    assert run("diff", "results/smoke", str(ledger)) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"decomposition (small, all): {row.verdict} -> {turned.verdict}",
        f"decomposition (small, more): absent -> {row.verdict}",
        "1 and 2 verdicts, 2 differ",
    ]
    assert run("diff", "results/smoke", "nowhere") == 2
    assert "nowhere: got 'no ledger'" in capsys.readouterr().err


def test_open_names_the_file_it_shows(done, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    assert run("open", "small", "--fidelity", "smoke") == 0
    assert capsys.readouterr().out == f"{HOME / 'figure.svg'}\n"
    assert shown == [(HOME / "figure.svg").resolve().as_uri()]
    assert run("open", "--fidelity", "smoke") == 2  # no report was made
    assert "results/smoke/report.html: got 'no such file'" in capsys.readouterr().err
