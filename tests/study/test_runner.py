"""The steps of an experiment, and what each of them depends on."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from sims.errors import InputError
from sims.study import code, load_experiment, run, runner
from sims.study.experiment import Experiment
from sims.study.schema import ExperimentSpec
from sims.validation import parse
from tests.cli.small import EXPERIMENT, HOST
from tests.cli.small import run as sims

PREDICT = """
import xarray as xr


def predict(experiment):
    return {f"{k}": xr.Dataset({"mse": k / 2}) for k in (1, 2, 3)}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with one small experiment."""
    from tests.cli.small import CAPTION, EFFECTS, FIGURE

    monkeypatch.chdir(tmp_path)
    own = tmp_path / "experiments/small"
    own.mkdir(parents=True)
    (own / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    for name, text in {"effects.py": EFFECTS, "figure.py": FIGURE, "caption.md": CAPTION}.items():
        (own / name).write_text(text)
    return own


def test_a_run_ends_with_results_verdicts_and_a_figure(folder):
    outcome = run("small", "smoke")
    home = Path("results/smoke/small")
    assert {p.name for p in home.glob("[!.]*")} == {
        "simulation.nc",
        "theory.nc",
        "verdicts.json",
        "caption.md",
        "figure.pdf",
        "figure.png",
        "figure.svg",
    }
    assert [v.edited for v in outcome.verdicts] == [False]
    assert outcome.results.points == ["0000", "0001"]
    kept = {p: p.stat().st_mtime_ns for p in home.glob(".points/*")}
    assert len(kept) == 4
    text = (folder / "experiment.yaml").read_text()
    (folder / "experiment.yaml").write_text(text.replace("margin: 0.5", "margin: 0.4"))
    # What is finished is kept, and says under which claims it was begun.
    again = run("small", "smoke", figure=False)
    assert {p: p.stat().st_mtime_ns for p in home.glob(".points/*")} == kept
    assert [v.edited for v in again.verdicts] == [True]
    moved = run("small", "smoke", seed_offset=1, figure=False)
    assert not np.array_equal(moved.results.simulation["mse"], outcome.results.simulation["mse"])


@pytest.mark.parametrize("own", [True, False])
def test_numbers_do_not_depend_on_who_computes_them(folder, own):
    """Plain Python in processes of its own, predictions beside it, parts as on a cluster."""
    if own:
        spec = {k: v for k, v in EXPERIMENT.items() if k not in ("problem", "grid")}
        (folder / "experiment.yaml").write_text(yaml.safe_dump(spec))
        (folder / "simulate.py").write_text(HOST)
        (folder / "predict.py").write_text(PREDICT)
    experiment = load_experiment("small", "smoke")
    found = []
    for name, processes in (("alone", 1), ("together", 2), ("parts", 1)):
        simulation = Path(name, "simulation.nc")
        if name == "parts":
            for index in (2, 1):
                runner.simulate(experiment, simulation, part=(index, 2))
            assert not simulation.exists()
        runner.simulate(experiment, simulation, processes=processes, predicting=True)
        results = runner.results_of(experiment, Path(name))
        found.append(results.table().drop(columns=["name"]).to_numpy(float))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_roads_of_different_problems_are_not_compared(folder):
    """Predicted again after an edit, simulated before it."""
    experiment = load_experiment("small", "smoke")
    runner.simulate(experiment, Path("simulation.nc"))
    spec = experiment.spec.model_copy(update={"problem": {**EXPERIMENT["problem"], "n": 65}})
    runner.predict(replace(experiment, spec=spec), Path("theory.nc"))
    with pytest.raises(InputError, match=r"theory\.nc: got .*the problem of simulation\.nc"):
        runner.judge(experiment, Path("verdicts.json"))


SEEDED = {"simulation": EXPERIMENT["simulation"] | {"seed": 1}}
STALE = [
    ("judge", {"problem": EXPERIMENT["problem"] | {"n": 65}}, "simulation.nc: got 'problem "),
    ("judge", {"grid": [{"heads.bandwidth": 0.7}]}, "simulation.nc: got 'problem "),
    ("judge", {"settings": {"least": 1}}, "simulation.nc: got 'problem "),
    ("judge", SEEDED, "simulation.nc: got 'seed 0'; allowed: 1, as "),
    ("judge", {"theory": {"order": "exact"}}, "theory.nc: got 'order first'; allowed: exact, as "),
    ("plot", {"fidelities": {"smoke": SEEDED}}, "simulation.nc: got 'seed 0'; allowed: 1, as "),
    ("plot", {"claims": [EXPERIMENT["claims"][0] | {"margin": 0.4}]}, "verdicts.json: got 'verd"),
]


def test_what_was_made_otherwise_is_neither_judged_nor_drawn(folder, capsys):
    """Each is one line; figure and ledger carry the digest of what they were made from."""
    run("small", "smoke")
    home, file = Path("results/smoke/small"), folder / "experiment.yaml"

    def refused(step, words):
        capsys.readouterr()
        assert sims("step", step, "small", "--fidelity", "smoke") == 2, words
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert words in said
        assert "again" in said

    for step, changes, words in STALE:
        file.write_text(yaml.safe_dump(EXPERIMENT | changes))
        refused(step, words)
    file.write_text(yaml.safe_dump(EXPERIMENT | {"title": "Another"}))
    assert sims("step", "ledger", "--fidelity", "smoke") == 0
    assert sims("step", "plot", "small", "--fidelity", "smoke") == 0
    roads = b"".join((home / name).read_bytes() for name in ("simulation.nc", "theory.nc"))
    digest = hashlib.sha256(roads).hexdigest()
    for name in ("figure.pdf", "figure.png", "figure.svg", "../ledger.json"):
        assert digest.encode() in (home / name).read_bytes(), name
    kept = (home / "verdicts.json").read_bytes()
    file.write_text(yaml.safe_dump(EXPERIMENT | SEEDED))
    run("small", "smoke", figure=False)
    (home / "verdicts.json").write_bytes(kept)
    refused("plot", "verdicts.json: got 'verdicts on other results")


SOURCE = '"""A module."""\nimport numpy as np\n\nX = 1.0\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of a file a room."""
    rooms = {room for rooms in code._ROOMS.values() for room in rooms}
    paths = [room if room.endswith(".py") else f"{room}/a.py" for room in rooms]
    for path in (*paths, "estimates.py", "simulation/sums.cc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(SOURCE)
    (tmp_path / "errors.py").write_text("X = 1.0\n")
    monkeypatch.setattr(code, "PACKAGE", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("simulation/a.py", "1.0", "2.0", {"simulate"}),
        ("simulation/a.py", '"""A module."""\n', "# Of ours.\n", set()),
        ("simulation/a.py", "X = 1.0", "X =  (1.0)", set()),
        ("simulation/sums.cc", "1.0", "2.0", {"simulate"}),
        ("theory/a.py", "1.0", "2.0", {"predict", "search"}),
        ("problem/a.py", "1.0", "2.0", {"simulate", "predict", "search"}),
        ("judgement/a.py", "1.0", "2.0", {"judge", "search", "ledger"}),
        ("figures/a.py", "1.0", "2.0", {"plot"}),
        ("estimates.py", "1.0", "2.0", set(code.STEPS)),
        ("errors.py", "1.0", "2.0", set()),
    ],
)
def test_code_behind_a_step_is_that_of_its_rooms(package, path, old, new, changed):
    def digests():
        code._rooms.cache_clear()
        return {step: code.code(step, None) for step in code.STEPS}

    before = digests()
    text = (package / path).read_text()
    (package / path).write_text(text.replace(old, new))
    after = digests()
    assert {step for step in before if before[step] != after[step]} == changed


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("effects.py", "- 1", "- 2", {"judge"}),
        ("figure.py", "COLUMN", "WIDE", {"plot"}),
        ("caption.md", "Seen", "Found", {"plot"}),
        ("beside.py", "1", "2", {"simulate"}),
        ("experiment.yaml", "margin: 0.5", "margin: 0.4", {"judge"}),
        ("experiment.yaml", "title: T", "title: U", {"plot"}),
        ("experiment.yaml", "noise_sd: 0.5", "noise_sd: 0.6", {"simulate", "predict"}),
        ("experiment.yaml", "batches: 4", "batches: 8", {"simulate"}),
        ("experiment.yaml", "statement: The", "statement: All", set()),
    ],
)
def test_own_files_behind_a_step(folder, path, old, new, changed):
    (folder / "simulate.py").write_text("from .beside import size\n")
    (folder / "beside.py").write_text("size = 1\n")
    steps = ("simulate", "predict", "judge", "plot")
    before = {step: code.digest(step, folder, "smoke") for step in steps}
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new))
    after = {step: code.digest(step, folder, "smoke") for step in steps}
    expected = changed | ({"judge"} if new == "statement: All" else set())  # verdicts quote it
    assert {step for step in steps if before[step] != after[step]} == expected


CLAIM = EXPERIMENT["claims"][0]


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"title": "Another", "simulation": {"seed": 5}}, True),
        ({"claims": [CLAIM | {"statement": "Said better.", "seen_before": "At seed 5."}]}, True),
        ({"grid": [{"heads.bandwidth": 0.7}, {"heads.bandwidth": 0.9}]}, True),
        ({"claims": [CLAIM | {"margin": 0.4}]}, False),
        ({"settings": {"least": 40}}, False),
        ({"grid": [{"heads.bandwidth": [0.7, 0.8]}]}, False),
        ({"theory": {"order": "exact"}}, False),
    ],
)
def test_the_contract_is_of_what_decides_a_test(folder, changes, same):
    def contract(data):
        return Experiment(folder, parse(ExperimentSpec, data, "file"), "smoke").contract

    assert (contract(EXPERIMENT | changes) == contract(EXPERIMENT)) == same
    before = contract(EXPERIMENT)
    text = (folder / "effects.py").read_text()
    (folder / "effects.py").write_text(f'"""Effects."""\n{text}  # of MSE\n')
    assert contract(EXPERIMENT) == before
    (folder / "effects.py").write_text(text.replace("- 1", "- 2"))
    assert contract(EXPERIMENT) != before
