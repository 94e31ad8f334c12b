"""``sims verify``: what is damaged, missing or edited is named, and nothing else."""

from pathlib import Path

import pytest

from sims.files import read_json, write_json
from tests.cli.small import run

HOME = Path("results/smoke/small")
LEDGER = Path("results/smoke/ledger.json")


@pytest.fixture
def finished(folder):
    for step in ("simulate", "predict", "judge"):
        assert run(step, "small", "--fidelity", "smoke") == 0
    assert run("ledger", "--fidelity", "smoke") == 0
    assert run("plot", "small", "--fidelity", "smoke") == 0
    return folder


def _wrong(capsys, *arguments):
    """The lines that name something, which go with the exit code."""
    capsys.readouterr()
    code = run("verify", *arguments)
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("results/")]
    assert code == (1 if lines else 0)
    return lines


def test_everything_that_is_wrong_is_named(finished, capsys):
    assert _wrong(capsys) == []
    assert _wrong(capsys, "results/smoke") == []
    path = HOME / "theory.nc"
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"x" + data[101:])
    assert _wrong(capsys) == [f"{path}: damaged contents"]
    path.write_bytes((HOME / "simulation.nc").read_bytes())
    assert _wrong(capsys) == [f"{path}: simulation.nc of small at smoke"]
    path.write_bytes(data)
    (HOME / "figure.svg").rename("elsewhere")
    assert _wrong(capsys) == [f"{HOME / 'figure.svg'}: missing"]
    Path("elsewhere").rename(HOME / "figure.svg")
    rows = read_json(LEDGER)
    write_json([rows[0] | {"effect": 0.125}], LEDGER, "ledger.json of smoke")
    place = "results/smoke: small: decomposition (all)"
    assert _wrong(capsys) == [f"{place}: another verdict than its experiment's"]
    write_json([rows[0] | {"regime": "none"}], LEDGER, "ledger.json of smoke")
    assert f"{place}: no row" in _wrong(capsys)
    write_json(rows, LEDGER, "ledger.json of smoke")
    assert _wrong(capsys) == []
    file = Path("experiments/small/experiment.yaml")
    file.write_text(file.read_text().replace("margin: 0.5", "margin: 0.6"))
    later = "claims, settings, grid or code of effects edited since it was judged"
    assert _wrong(capsys) == [f"{place}: {later}"]
    for step in (("judge", "small"), ("ledger",)):
        assert run(*step, "--fidelity", "smoke") == 0
    assert _wrong(capsys) == [f"{place}: edited after the simulation began"]


@pytest.mark.parametrize("where", ["nowhere", "experiments/small/experiment.yaml", "papers"])
def test_there_has_to_be_something_to_look_at(folder, capsys, where):
    Path("papers").mkdir()
    assert run("verify", where) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_row_is_computed_again(finished, capsys):
    """As its result says it was made, whatever the file says today; a planted number is seen."""
    file = Path("experiments/small/experiment.yaml")
    file.write_text(file.read_text().replace("lengthscale: 2.0", "lengthscale: 1.0"))
    capsys.readouterr()
    assert run("replay", "1", "--fidelity", "smoke") == 0
    said = capsys.readouterr().out
    assert "largest difference 0, at most 1e-09" in said
    assert "Note" not in said
    assert not Path("results/replays/smoke/small").exists()
    rows = read_json(LEDGER)
    write_json([rows[0] | {"effect": rows[0]["effect"] + 1e-6}], LEDGER, "ledger.json of smoke")
    assert run("replay", "decomposition", "all", "--fidelity", "smoke") == 1
    for arguments, words in (
        (("0",), "row: got '0'; allowed: 1 to 1, or a claim's id"),
        (("2",), "row: got '2'; allowed: 1 to 1"),
        (("decompositoin",), "allowed: decomposition (did you mean decomposition?)"),
        (("decomposition", "none"), "regime of decomposition: got 'none'; allowed: all"),
    ):
        capsys.readouterr()
        assert run("replay", *arguments, "--fidelity", "smoke") == 2
        assert words in capsys.readouterr().err
