"""The steps of an experiment."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sims.steps.simulate import Schedule, schedule, simulate
from sims.study import run
from sims.study.running import Run
from sims.study.stored import results_of
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import EXPERIMENT, HOST, changed, write
from tests.cli.small import run as sims

pytestmark = pytest.mark.usefixtures("folder")
HOME = Path("results/smoke/small")


def test_a_run_ends_with_results_answers_and_a_figure():
    complete = run("small", "smoke")
    results = complete.results
    assert {p.name for p in HOME.glob("[!.]*")} == {
        "simulation.nc",
        "theory.nc",
        "effects.nc",
        "panels.nc",
        "answers.json",
        "caption.md",
        "figure.png",
    }
    assert [a.result.problems for a in complete.answers()] == [3]
    assert [*results.estimates] == ["0000", "0001", "0002"]
    kept = {p: p.stat().st_mtime_ns for p in HOME.glob(".points/*")}
    assert len(kept) == 3
    write(title="Another")
    run("small", "smoke", figure=False)
    assert {p: p.stat().st_mtime_ns for p in HOME.glob(".points/*")} == kept
    moved = run("small", "smoke", seed_offset=1, figure=False)
    assert not np.array_equal(moved.results.simulation["mse"], results.simulation["mse"])


@pytest.mark.parametrize("own", [{"study.py": HOST}, {}])
def test_numbers_do_not_depend_on_who_computes_them(own):
    """Plain Python in processes of its own, predictions beside it, parts as on a cluster."""
    write(own)
    experiment = Run.load("small", "smoke")
    found = []
    for name, processes in (("alone", 1), ("together", 2), ("parts", 1)):
        simulation = Path(name, "simulation.nc")
        if name == "parts":
            for index in (2, 1):
                simulate(experiment, simulation, part=(index, 2))
            assert not simulation.exists()
        simulate(experiment, simulation, processes=processes, predicting=True)
        found.append(results_of(experiment, Path(name)))
    for other in found[1:]:
        xr.testing.assert_equal(other.simulation, found[0].simulation)
        xr.testing.assert_equal(other.theory, found[0].theory)


@pytest.mark.parametrize(
    ("kept", "on_one_core", "processes", "here", "apart", "predicts", "count"),
    [
        ("", "abc", 1, "abc", "", False, 1),
        ("", "abc", 3, "", "abc", True, 3),
        ("", "ab", 3, "c", "ab", True, 2),  # one core is this process's
        ("c", "ab", 3, "c", "ab", True, 3),  # which finds c kept
        ("a", "ab", 2, "ac", "b", True, 1),
        ("", "", 2, "abc", "", True, 1),
        ("abc", "abc", 2, "abc", "", False, 1),  # nothing is left: theory is asked here
    ],
)
def test_schedule(kept, on_one_core, processes, here, apart, predicts, count):
    plan = schedule("abc", set(kept), set(on_one_core), processes, predicting=True)
    assert plan == Schedule([*here], [*apart], predicts, count)
    alone = schedule("abc", set(kept), set(on_one_core), processes, predicting=False)
    assert not alone.predicts_apart


QUESTION = EXPERIMENT["questions"][0]
STALE = [
    (
        "tabulate",
        {"law": changed(EXPERIMENT["law"], "problem.n", 65)},
        "simulation.nc: got 'problem ",
    ),
    ("tabulate", {"settings": {"problems": 2}}, "simulation.nc: got 'problem "),
    ("tabulate", {"questions": [QUESTION | {"revision": 2}]}, "simulation.nc: got 'problem "),
    ("plot", {"fidelities": {"smoke": {"simulation": {"batches": 5}}}}, "effects.nc: got 'bat"),
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
    files = b"".join((HOME / name).read_bytes() for name in ("simulation.nc", "theory.nc"))
    digest = hashlib.sha256(files).hexdigest()
    for name in ("figure.png", "../answers.json"):
        assert digest.encode() in (HOME / name).read_bytes(), name
    kept = (HOME / "answers.json").read_bytes()
    write(settings={"problems": 2})
    assert sims("step", "predict", "small", "--fidelity", "smoke") == 0
    refused("tabulate", "theory.nc: got 'problem ")
    run("small", "smoke", figure=False)
    (HOME / "answers.json").write_bytes(kept)
    refused("plot", "answers.json: got 'answers on other results")
