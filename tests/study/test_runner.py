"""The steps of an experiment, and what each of them depends on."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sims.study import code, load_experiment, run, runner
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import EXPERIMENT, HOST, OWN, PREDICT, changed, write
from tests.cli.small import run as sims

pytestmark = pytest.mark.usefixtures("folder")
HOME = Path("results/smoke/small")


def test_a_run_ends_with_results_answers_and_a_figure():
    outcome = run("small", "smoke")
    assert {p.name for p in HOME.glob("[!.]*")} == {
        "simulation.nc",
        "theory.nc",
        "answers.json",
        "caption.md",
        "figure.png",
    }
    assert [a.problems for a in outcome.answers] == [3]
    assert outcome.results.points == ["0000", "0001", "0002"]
    kept = {p: p.stat().st_mtime_ns for p in HOME.glob(".points/*")}
    assert len(kept) == 3
    write(title="Another")
    run("small", "smoke", figure=False)
    assert {p: p.stat().st_mtime_ns for p in HOME.glob(".points/*")} == kept
    moved = run("small", "smoke", seed_offset=1, figure=False)
    assert not np.array_equal(moved.results.simulation["mse"], outcome.results.simulation["mse"])


@pytest.mark.parametrize("own", [{"simulate.py": HOST, "predict.py": PREDICT}, {}])
def test_numbers_do_not_depend_on_who_computes_them(own):
    """Plain Python in processes of its own, predictions beside it, parts as on a cluster."""
    write(own)
    experiment = load_experiment("small", "smoke")
    found = []
    for name, processes in (("alone", 1), ("together", 2), ("parts", 1)):
        simulation = Path(name, "simulation.nc")
        if name == "parts":
            for index in (2, 1):
                runner.simulate(experiment, simulation, part=(index, 2))
            assert not simulation.exists()
        runner.simulate(experiment, simulation, processes=processes, predicting=True)
        found.append(runner.results_of(experiment, Path(name)))
    for other in found[1:]:
        xr.testing.assert_equal(other.simulation, found[0].simulation)
        xr.testing.assert_equal(other.theory, found[0].theory)


QUESTION = EXPERIMENT["questions"][0]
STALE = [
    ("judge", {"law": changed(EXPERIMENT["law"], "problem.n", 65)}, "simulation.nc: got 'problem "),
    ("judge", {"settings": {"problems": 2}}, "simulation.nc: got 'problem "),
    ("judge", {"questions": [QUESTION | {"says": "always"}]}, "simulation.nc: got 'problem "),
    ("plot", {"fidelities": {"smoke": {"simulation": {"batches": 5}}}}, "simulation.nc: got 'bat"),
]


def test_what_was_made_otherwise_is_neither_judged_nor_drawn(capsys):
    """Each is one line; figure and ledger carry the digest of what they were made from."""
    run("small", "smoke", figure=False)

    def refused(step, words):
        capsys.readouterr()
        assert sims("step", step, "small", "--fidelity", "smoke") == 2, words
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert words in said
        assert "again" in said

    for step, changes, words in STALE:
        write(**changes)
        refused(step, words)
    write(title="Another")
    assert sims("step", "ledger", "--fidelity", "smoke") == 0
    assert sims("step", "plot", "small", "--fidelity", "smoke") == 0
    roads = b"".join((HOME / name).read_bytes() for name in ("simulation.nc", "theory.nc"))
    digest = hashlib.sha256(roads).hexdigest()
    for name in ("figure.png", "../answers.json"):
        assert digest.encode() in (HOME / name).read_bytes(), name
    kept = (HOME / "answers.json").read_bytes()
    write(settings={"problems": 2})
    assert sims("step", "predict", "small", "--fidelity", "smoke") == 0
    refused("judge", "theory.nc: got 'problem ")
    run("small", "smoke", figure=False)
    (HOME / "answers.json").write_bytes(kept)
    refused("plot", "answers.json: got 'answers on other results")


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


SEEDED = {"simulate", "predict", "judge"}


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("statistic.py", "effects, p", "p", SEEDED),
        ("figure.py", "COLUMN", "WIDE", {"plot"}),
        ("caption.md", "Seen", "Found", {"plot"}),
        ("beside.py", "1", "2", {"simulate"}),
        ("experiment.yaml", "tolerance: roads", "tolerance: exact", SEEDED),
        ("experiment.yaml", "noise_sd: 0.5", "noise_sd: 0.6", SEEDED),
        ("experiment.yaml", "title: T", "title: U", {"plot"}),
        ("experiment.yaml", "batches: 4", "batches: 8", {"simulate"}),
        ("experiment.yaml", "problems: 3", "problems: 4", SEEDED | {"plot"}),
        ("experiment.yaml", "Do the", "Do all", {"judge"}),
    ],
)
def test_own_files_behind_a_step(path, old, new, changed):
    """An edited question or statistic is asked of other problems."""
    beside = {"simulate.py": "from .beside import size\n", "beside.py": "size = 1\n"}
    file = write(OWN | beside) / path
    steps = ("simulate", "predict", "judge", "plot")
    before = {step: code.digest(step, file.parent, "smoke") for step in steps}
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    after = {step: code.digest(step, file.parent, "smoke") for step in steps}
    assert {step for step in steps if before[step] != after[step]} == changed
