"""The command line: help, listings, an experiment from both methods to the published page."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sims.base.files import read_json
from sims.base.places import CARRIED
from sims.cli.listing import print_table
from sims.study.papers import MAIN, papers
from tests.cli.small import HOST, OWN, run, write
from tests.inspect.models import LAYOUTS, H, matrices
from tests.inspect.models import write as save_model
from tests.pipeline import ROOT

COMMANDS = ["decompose", "sweep", "experiments", "run", "claims", "protocol", "new", "schema"]
COMMANDS += ["inspect", "advise"]
HOME = Path("results/smoke/small")


def steps(*names):
    """Pipeline steps of the small experiment."""
    return [run("step", name, "small", "--fidelity", "smoke") for name in names]


def known_folders(capsys):
    """Experiment to the folder of its answers, the first of each claim in any case this run's."""
    assert run("claims", "--fidelity", "smoke", "--json") == 0
    folders = {}
    for row in json.loads(capsys.readouterr().out):
        known = [answer["experiment"] for answer in row["answers"]]
        assert known == sorted(known, key=lambda name: name != "small")
        folders |= {answer["experiment"]: Path(answer["folder"]) for answer in row["answers"]}
    return folders


def test_help(capsys):
    assert run() == 0
    overview = capsys.readouterr().out
    examples = re.findall(r"^ +sims (\w+) ", overview.split("Options:")[0], re.MULTILINE)
    assert examples == ["decompose", "run", "inspect"]
    assert run("--help") == 0
    assert capsys.readouterr().out == overview
    assert re.findall(r"^  (\w+) ", overview.split("Commands:")[1], re.MULTILINE) == COMMANDS
    for command in COMMANDS:
        assert run(command, "--help") == 0
        text = capsys.readouterr().out
        assert f"Usage: sims {command}" in text
        assert re.search(rf"\n\n    sims {command}\b", text.split("Options:")[0])  # an example
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
    listed = [claim.id for claim in (*paper.claims, *paper.ours)]
    assert [row["claim"] for row in rows] == listed
    for what in ("experiment", "problem", "decompose", "sweep", "paper", "variables"):
        assert run("schema", what) == 0
        assert json.loads(capsys.readouterr().out)["type"] == "object"
    assert run("experiments") == run("claims") == 0
    text = capsys.readouterr().out
    assert "small" in text
    assert paper.title in text
    assert re.search("by algebra +tests/test_algebra.py", text)
    Path("experiments/begun").mkdir()
    for text in ("title: no questions", "questions: 3", "questions: [a]"):
        Path("experiments/begun/experiment.yaml").write_text(text)
        assert run("experiments") == 2
        assert capsys.readouterr().err.startswith("sims experiments: experiments/begun/")


def test_from_an_experiment_to_the_published_page(folder, capsys):
    shutil.copytree(ROOT / "papers", "papers")
    own = write(OWN | {"caption.md": "{{ misspelt }}"})
    assert run("run", "small", "--fidelity", "smoke", "--dry") == 0
    out = capsys.readouterr().out
    assert "law          Bandwidths of 0.7 to 0.9.\n" in out
    assert "replicates   4 batches of 8 per unit" in out
    assert not Path("results").exists()
    assert run("run", "small", "--fidelity", "smoke") == 0
    out, err = capsys.readouterr()
    assert "caption and figure: left out (" in err
    assert "figure.png" not in out
    assert "Do the mean squared errors agree?" in out
    write(OWN)
    assert run("run", "small", "--fidelity", "smoke") == 0
    out = capsys.readouterr().out
    assert all(Path(line).is_file() for line in out.splitlines()[:5])
    assert re.search("Do the mean squared errors agree\\? +too few to say +There are too few ", out)
    assert known_folders(capsys)["small"] == HOME.parent, "without a complete run"
    for step in ("ledger", "report", "publish"):
        assert run("step", step, "--fidelity", "smoke") == 0, capsys.readouterr().err
    (row,) = read_json("results/smoke/answers.json")
    assert (row["claim"], row["experiment"], row["result"]["problems"]) == (
        "decomposition",
        "small",
        3,
    )
    capsys.readouterr()
    assert run("step", "compare", "--fidelity", "smoke") == 0
    compared = (
        "results/smoke/report.html\nThis run and the published one gave the same answer to 0 of 0 "
    )
    assert capsys.readouterr().out.startswith(compared)
    page = Path("results/published/report.html").read_text()
    assert 'src="http' not in page
    assert str(folder) not in page
    assert (HOME / "caption.md").read_text().startswith("**Seen** ")
    names = "answers.json answers.md report.html small"
    assert sorted(path.name for path in Path("results/published").iterdir()) == names.split()
    before = {p: p.read_bytes() for p in HOME.glob("figure.*")}
    assert steps("simulate", "predict", "tabulate", "judge", "plot") == [0] * 5
    assert {p: p.read_bytes() for p in before} == before, "the pipeline does what `run` does"
    capsys.readouterr()
    folders = known_folders(capsys)
    assert (folders["small"], folders["house"]) == (HOME.parent, CARRIED / "results/published")
    for path in own.glob("*.py"):  # reading results runs none of it
        path.write_text("raise SystemExit")
    readings = (["claims"], ["step", "ledger"], ["step", "report"])
    assert [run(*words, "--fidelity", "smoke") for words in readings] == [0] * 3
    assert re.search("Do the mean squared .*too few to say", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("command", "function", "said"),
    [
        ("sweep spec.yaml --set n=32,64", "cli.sweep._print_range", "results/sweeps/spec.png"),
        ("sweep spec.yaml --set n=32,64", "figures.overview", "Least MSE"),
        ("sweep spec.yaml --set n=32,64", "cli.sweep.digest", "results/sweeps/spec.nc"),
        ("advise --n 64 --budget 4 --noise 2", "cli.advise.rests_on", "First order in 1/n"),
        ("advise --n 64 --budget 4 --noise 2 --json", "cli.advise.rests_on", '"rests_on": []'),
        ("inspect model --output m.nc", "cli.inspect.digest", "m.nc"),
        ("inspect model --compare model", "cli.inspect._compare", "QK rank"),
    ],
)
def test_what_follows_a_result_cannot_take_it(folder, capsys, monkeypatch, command, function, said):
    def fail(*_):
        raise KeyError("misspelt")

    config = {"num_attention_heads": H, "model_type": "bert"}
    save_model(Path("model"), LAYOUTS["bert"](*matrices()), config)
    monkeypatch.setattr(f"sims.{function}", fail)
    monkeypatch.setenv("MPLBACKEND", "module://nowhere.inline")
    assert run(*command.split()) == 0
    out, err = capsys.readouterr()
    assert said in out
    assert "left out (KeyError: 'misspelt'; " in err


def test_finished_problems_are_reused(folder, monkeypatch, capsys):
    """An interrupted or longer simulation computes only what is new."""
    import sims.study.units as units

    calls = []
    real = units.run

    def counting(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(units, "run", counting)
    assert steps("simulate") == [130]
    assert "finished points are kept" in capsys.readouterr().err
    assert not (HOME / "simulation.nc").exists()
    assert steps("simulate") == [0]
    assert len(calls) == 4  # one finished, one interrupted, two more
    write(settings={"problems": 4})
    assert steps("simulate") == [0]
    assert len(calls) == 5


def test_modules_planted_in_the_folder_are_not_imported(folder):
    """Neither by the processes of a run, nor by ``python -m sims`` but for a sims.py."""
    write({"study.py": HOST})
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

    monkeypatch.setattr("sims.cli.claims.experiments", stopped)
    assert run("experiments") == 75
    assert capsys.readouterr().err == "sims experiments: stopped; repeat the command to resume\n"


def test_a_long_sentence_leaves_the_other_columns_room(capsys):
    print_table(("question", "answer"), [(f"Does it {'really ' * 20}fall?", "usually")])
    assert re.search(r"question +answer", text := capsys.readouterr().out)
    assert "usually" in text


@pytest.mark.parametrize("numbers", [True, False])
def test_words_and_numbers_are_not_broken(capsys, numbers):
    row = ("model.decoder.layers.0.encoder_attn", *["−0.01234567"] * 10)
    print_table(("layer", *["largest overlap"] * 10), [row], numbers)
    words = capsys.readouterr().out.split()
    assert {*row, "largest", "overlap"} <= {*words}
