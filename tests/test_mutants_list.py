"""The lists of mutants: each fits the tree, and no room or experiment is without one."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.run import FIRST, RESULT, ROOT, mutants, recorded

EVERY = mutants()
LEAST, MECHANICAL = 120, 1 / 3
ROOMS = {
    "problem", "weights", "first_order", "exact", "simulation", "native", "montecarlo", "judgement",
    "study", "results", "experiments_effects", "experiments_predict", "experiments_simulate",
}  # fmt: skip
"""Lists that there must be; ``results`` is of terms, estimates and effects."""


@pytest.mark.parametrize("mutant", EVERY, ids=lambda mutant: mutant.id)
def test_a_mutant_fits_the_tree(mutant):
    """Its old text occurs once; what comes of it is another program, which can be parsed."""
    text = mutant.text(ROOT)
    assert text is not None, f"{mutant.file} has not once:\n{mutant.old}"
    assert mutant.old != mutant.new
    if mutant.file.endswith(".py"):
        compile(text, mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        path, _, node = test.partition("::")
        assert (ROOT / path).is_file(), test
        assert not node or f"def {node.partition('[')[0]}(" in (ROOT / path).read_text("utf-8")


def test_the_lists_are_long_and_varied():
    assert {count for count in Counter(m.id for m in EVERY).values()} == {1}
    assert all(m.id.startswith(m.room) and m.does.endswith(".") for m in EVERY)
    kinds = Counter(m.kind for m in EVERY)
    assert set(kinds) == {"hand", "mechanical"}
    assert kinds.total() >= LEAST
    assert kinds["mechanical"] >= MECHANICAL * kinds.total()
    lists = (ROOT / "tests/mutants").glob("*.yaml")
    assert {p.name: n for p in lists if (n := len(p.read_text("utf-8").splitlines())) > 400} == {}


def test_every_room_and_every_experiment_has_mutants():
    assert {m.room for m in EVERY} >= ROOMS
    modules = {
        str(path.relative_to(ROOT))
        for name in ("effects", "predict", "simulate")
        for path in Path(ROOT, "experiments").glob(f"*/{name}.py")
    }
    assert modules - {m.file for m in EVERY} == set()


def test_records_are_of_these_mutants():
    """Of the first run of each, before any test was written for it, and of the last."""
    ids = {mutant.id for mutant in EVERY}
    for path in (FIRST, RESULT):
        outcomes = recorded(path)
        assert outcomes.keys() <= ids
        assert set(outcomes.values()) <= {"caught", "survived"}


def test_no_mutant_begins_after_the_minutes():
    """What is left out is counted, and is neither caught nor missed."""
    chosen = [mutant.id for mutant in EVERY if mutant.room == "first_order"][:2]
    asked = [sys.executable, "tests/mutants/run.py", "--minutes", "0", "--only", *chosen]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["2 mutants", "0 of 0 caught, 2 not run"], done.stderr
    assert done.returncode == 0
