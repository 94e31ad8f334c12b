"""The steps of an experiment, and what each of them depends on."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sims.study import code, load_experiment, run, runner, sources
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import EXPERIMENT, HOST, OWN, changed, write
from tests.cli.small import run as sims
from tests.pipeline import ROOT

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
    assert [a.result.problems for a in outcome.answers] == [3]
    assert outcome.results.points == ["0000", "0001", "0002"]
    kept = {p: p.stat().st_mtime_ns for p in HOME.glob(".points/*")}
    assert len(kept) == 3
    write(title="Another")
    run("small", "smoke", figure=False)
    assert {p: p.stat().st_mtime_ns for p in HOME.glob(".points/*")} == kept
    moved = run("small", "smoke", seed_offset=1, figure=False)
    assert not np.array_equal(moved.results.simulation["mse"], outcome.results.simulation["mse"])


@pytest.mark.parametrize("own", [{"study.py": HOST}, {}])
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
    plan = runner.schedule("abc", set(kept), set(on_one_core), processes, predicting=True)
    assert plan == runner.Schedule([*here], [*apart], predicts, count)
    alone = runner.schedule("abc", set(kept), set(on_one_core), processes, predicting=False)
    assert not alone.predicts_apart


QUESTION = EXPERIMENT["questions"][0]
STALE = [
    ("judge", {"law": changed(EXPERIMENT["law"], "problem.n", 65)}, "simulation.nc: got 'problem "),
    ("judge", {"settings": {"problems": 2}}, "simulation.nc: got 'problem "),
    ("judge", {"questions": [QUESTION | {"revision": 2}]}, "simulation.nc: got 'problem "),
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
    files = b"".join((HOME / name).read_bytes() for name in ("simulation.nc", "theory.nc"))
    digest = hashlib.sha256(files).hexdigest()
    for name in ("figure.png", "../answers.json"):
        assert digest.encode() in (HOME / name).read_bytes(), name
    kept = (HOME / "answers.json").read_bytes()
    write(settings={"problems": 2})
    assert sims("step", "predict", "small", "--fidelity", "smoke") == 0
    refused("judge", "theory.nc: got 'problem ")
    run("small", "smoke", figure=False)
    (HOME / "answers.json").write_bytes(kept)
    refused("plot", "answers.json: got 'answers on other results")


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""A module."""\n', "# Of ours.\n", True),
        ("X = 1.0", "X =  (1.0)", True),
        ("X = 1.0", "X = 2.0", False),
    ],
)
def test_comments_and_layout_are_no_part_of_code(old, new, same):
    text = '"""A module."""\nimport numpy as np\n\nX = 1.0\n'
    Path("a.py").write_text(text)
    Path("b.py").write_text(text.replace(old, new))
    assert (sources.syntax(Path("a.py")) == sources.syntax(Path("b.py"))) == same


@pytest.mark.parametrize(
    ("step", "name", "file", "inside"),
    [
        ("simulate", "temperature", "theory/first_order/closed_forms.py", True),  # solves it
        ("simulate", "temperature", "theory/first_order/adaptive.py", True),
        ("simulate", "hierarchy", "theory/first_order/closed_forms.py", False),
        ("simulate", "temperature", "simulation/native/sums.cc", True),
        ("simulate", "house", "figures/theme.py", False),
        ("predict", "house", "simulation/replicate.py", False),
        ("predict", "collapse", "theory/neighbours/collapse.py", True),
        ("judge", "house", "judgement/conventions.py", True),
        ("judge", "house", "simulation/replicate.py", False),
        ("plot", "house", "figures/theme.py", True),
    ],
)
def test_a_step_depends_on_what_it_imports(monkeypatch, step, name, file, inside):
    """Directly or not: a line of that file changes the digest of the step, or does not."""
    experiment, changed_file = ROOT / "experiments" / name, sources.PACKAGE / file
    before = code.code(step, experiment)
    code._package_digest.cache_clear()
    syntax = sources.syntax

    def edited(path, without=frozenset()):
        return syntax(path, without) + "x" * (path == changed_file)

    monkeypatch.setattr(code, "syntax", edited)
    assert (code.code(step, experiment) != before) == inside
    code._package_digest.cache_clear()


READS = """
import numpy as np
from pathlib import Path

FACTOR = float((Path(__file__).parent / "{name}").read_text())
"""
FILES = {
    "study.py": OWN["study.py"] + "\nfrom .tools import near\nimport a_library.inner\n",
    "tools/__init__.py": "from .deep.far import FAR as near\n",
    "tools/deep/__init__.py": "",
    "tools/deep/far.py": READS.format(name="shift.txt") + "from ... import beside\nFAR = 1.0\n",
    "tools/deep/shift.txt": "1.0",
    "beside.py": READS.format(name="factor.csv"),
    "factor.csv": "1.0",
    "table/of.npy": "1.0",
    "library/a_library/__init__.py": "",
    "library/a_library/inner.py": "X = 1.0",
}


@pytest.mark.parametrize("file", [name for name in FILES if name != "study.py"])
def test_own_code_is_all_that_it_imports_and_reads(file, monkeypatch):
    """Packages, modules levels down, data files, a library on the path: each edit is seen."""
    home = write(OWN)
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    monkeypatch.syspath_prepend(home / "library")
    sources.home_of.cache_clear()
    before = code.digest("judge", home, "smoke")
    (home / file).write_text(FILES[file] + "\nX = 2\n")
    assert code.digest("judge", home, "smoke") != before
    sources.home_of.cache_clear()


SEEDED = {"simulate", "predict", "judge"}


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("study.py", "super().effects(results)", "{}", {"judge", "plot"}),
        ("study.py", "COLUMN", "WIDE", {"plot"}),
        ("caption.md", "Seen", "Found", {"plot"}),
        ("beside.py", "1", "2", {"simulate"}),
        ("drawing.py", "1", "2", {"plot"}),
        ("experiment.yaml", "tolerance: roads", "tolerance: exact", {"judge"}),
        ("experiment.yaml", "tolerance: roads", "revision: 2", SEEDED),
        ("experiment.yaml", "noise_sd: 0.5", "noise_sd: 0.6", SEEDED),
        ("experiment.yaml", "title: T", "title: U", {"plot"}),
        ("experiment.yaml", "batches: 4", "batches: 8", {"simulate"}),
        ("experiment.yaml", "problems: 3", "problems: 4", SEEDED | {"plot"}),
        ("experiment.yaml", "Do the", "Do all", {"judge"}),
    ],
)
def test_own_files_behind_a_step(path, old, new, changed):
    """An effect of another revision is asked of other problems; imports are their steps' alone."""
    study = OWN["study.py"].replace(
        "def figure(self, results, answers):\n",
        "def figure(self, results, answers):\n        from .drawing import size\n\n",
    )
    study += "\n    def sampler(self, problem):\n        from .beside import size\n"
    beside = {"drawing.py": "size = 1\n", "beside.py": "size = 1\n", "study.py": study}
    file = write(OWN | beside) / path
    steps = ("simulate", "predict", "judge", "plot")
    before = {step: code.digest(step, file.parent, "smoke") for step in steps}
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    after = {step: code.digest(step, file.parent, "smoke") for step in steps}
    assert {step for step in steps if before[step] != after[step]} == changed
