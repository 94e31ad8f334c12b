"""What a step depends on: everything that it executes or may read, and nothing by a list."""

import os
import sys
import threading
from pathlib import Path

import pytest
import yaml

from sims.steps.judge import judge
from sims.steps.plot import plot
from sims.steps.predict import predict
from sims.steps.simulate import simulate
from sims.steps.tabulate import tabulate
from sims.study import code, sources
from sims.study.declaration import Declaration
from sims.study.referenced_files import digest_of
from sims.study.running import Run
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import SPEC, write
from tests.cli.small import run as sims
from tests.pipeline import ROOT

pytestmark = pytest.mark.usefixtures("folder")
STEPS = {
    "simulate": (simulate, "simulation.nc"),
    "predict": (predict, "theory.nc"),
    "tabulate": (tabulate, "effects.nc"),
    "judge": (judge, "answers.json"),
    "plot": (plot, "figure.png"),
}


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
    assert (sources.content(Path("a.py")) == sources.content(Path("b.py"))) == same


@pytest.mark.parametrize(
    ("step", "name", "file", "inside"),
    [
        ("simulate", "temperature", "theory/first_order/closed_forms.py", True),  # solves it
        ("simulate", "temperature", "theory/first_order/adaptive.py", True),
        ("simulate", "hierarchy", "theory/first_order/closed_forms.py", False),
        ("simulate", "temperature", "simulation/native/sums.cc", True),
        ("simulate", "house", "figures/theme.py", False),
        ("simulate", "house", "steps/simulate.py", True),
        ("simulate", "house", "problem/tables/text.npy", True),
        ("predict", "house", "simulation/replicate.py", False),
        ("predict", "collapse", "theory/neighbours/collapse.py", True),
        ("tabulate", "hierarchy", "simulation/replicate.py", False),
        ("tabulate", "hierarchy", "figures/theme.py", False),
        ("plot", "house", "figures/theme.py", True),
        ("plot", "house", "study/panels.py", True),
    ],
)
def test_a_step_depends_on_what_it_imports(monkeypatch, step, name, file, inside):
    """Directly or not: a line of that file changes the digest of the step, or does not."""
    changed_file = sources.PACKAGE / file
    experiment = Declaration.read(ROOT / "experiments" / name)
    assert changed_file.is_file()
    before = code.code(step, experiment)
    code.package_code.cache_clear()
    content = sources.content

    def edited(path):
        return content(path) + "x" * (path == changed_file)

    monkeypatch.setattr(code, "content", edited)
    assert (code.code(step, experiment) != before) == inside
    code.package_code.cache_clear()


LATE = """
from importlib import import_module
from pathlib import Path

import xarray as xr

from sims.judgement.effects import gap
from sims.study.drawn import DrawnStudy


class Small(DrawnStudy):
    def theory(self, problem):
        factor = import_module(".tools", __package__).factor()
        return super().theory(problem) * factor
"""
TOOLS = """
import os


class Helper:
    scale = 1.0

    def parameters(self):
        with open(os.sep.join([os.path.dirname(__file__), "data", "f.csv"])) as file:
            return float(file.read())


def factor():
    return Helper().parameters() * Helper.scale
"""
SMALL = {"study.py": LATE, "tools.py": TOOLS, "data/f.csv": "1.0", "data/.hidden": "1", "x.so": "1"}


def write_small(files=SMALL):
    home = write()
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


def digests(home):
    declared = Declaration.read(home)
    return {step: code.digest(step, declared, "smoke") for step in STEPS}


@pytest.mark.parametrize(
    ("file", "old", "new", "seen"),
    [
        ("tools.py", "scale = 1.0", "scale = 3.0", "spt"),
        ("tools.py", "os.path.dirname", "3.0 + os.path.dirname", "spt"),
        ("data/f.csv", "1.0", "3.0", "spt"),
        ("data/.hidden", "1", "2", "spt"),
        ("x.so", "1", "2", "spt"),
        ("study.py", "* factor", "* 2 * factor", "spt"),
        ("experiment.yaml", "noise_sd: 0.5", "noise_sd: 0.6", "spt"),
        ("experiment.yaml", "batches: 4", "batches: 8", "spt"),
        ("experiment.yaml", "problems: 3", "problems: 4", "spt"),
        ("experiment.yaml", "tolerance: methods", "revision: 2", "spt"),
        ("experiment.yaml", "tolerance: methods", "tolerance: exact", "t"),
        ("experiment.yaml", "title: T", "title: U", ""),
        ("experiment.yaml", "Do the", "Do all", ""),
        ("caption.md", "Seen", "Found", ""),
        ("figure.py", "1", "2", ""),
        ("statistic.py", "1", "2", "t"),
        ("tables.py", "1", "2", "t"),
        ("predict.py", "1", "2", "pt"),
        ("data/results/f", "1", "2", "none"),
    ],
)
def test_everything_in_a_folder_counts_unless_it_is_excluded_by_name(file, old, new, seen):
    """For simulation, theory and table; what presents sees every edit but that of a result."""
    names = ("statistic.py", "figure.py", "tables.py", "predict.py", "data/results/f")
    beside = dict.fromkeys(names, "1")
    home = write_small(SMALL | beside | {"caption.md": "Seen"})
    text = (home / "experiment.yaml").read_text()
    (home / "experiment.yaml").write_text(f"presentation: [tables.py]\n{text}")
    before = digests(home)
    text = (home / file).read_text()
    assert old in text
    (home / file).write_text(text.replace(old, new))
    after = digests(home)
    changed = "".join(step[0] for step in STEPS if before[step] != after[step])
    assert changed == ("" if seen == "none" else f"{seen}jp")


def test_a_module_that_was_not_foreseen_counts_from_the_next_check_on():
    """It reruns the step once."""
    late = LATE.replace(".tools", ".statistic")
    home = write_small(SMALL | {"study.py": late, "statistic.py": TOOLS})
    out = Path("results/smoke/small")
    states = [code.digest("predict", Declaration.read(home), "smoke", out)]
    for _ in range(2):
        assert sims("step", "predict", "small", "--fidelity", "smoke") == 0
        states.append(code.digest("predict", Declaration.read(home), "smoke", out))
        for name in [name for name in sys.modules if name.startswith("own_")]:
            del sys.modules[name]
    assert states[0] != states[1]
    assert states[1] == states[2]
    (home / "statistic.py").write_text(TOOLS.replace("scale = 1.0", "scale = 3.0"))
    assert code.digest("predict", Declaration.read(home), "smoke", out) != states[2]


def executed(function, *arguments):
    """Files whose functions a call executes, in all threads."""
    files = set()

    def note(frame, event, argument):
        files.add(frame.f_code.co_filename)

    threading.settrace(note)
    sys.settrace(note)
    try:
        function(*arguments)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return {Path(os.path.realpath(file)) for file in files if file.endswith(".py")}


@pytest.mark.parametrize("name", ["small", "angles", "rates"])
def test_every_executed_file_lies_in_the_digest(name, tmp_path):
    home = write_small() if name == "small" else ROOT / "experiments" / name
    opened = Run.load(home, "smoke", allow_code=True)
    opened.settings["simulated"] = 4  # problems, where a study has that setting
    for step, (function, file) in STEPS.items():
        files = executed(function, opened, tmp_path / "out" / file)
        counted = sources.folder_sources(home, code.EXCLUDED.get(step, code.WORDS))
        known = {path.resolve() for path in counted.files}
        modules = {f"sims.steps.{step}", *counted.modules, "sims.study.drawn"}
        known |= {*sources.package_sources(modules)}
        own = {
            f
            for f in files
            if f.is_relative_to(sources.PACKAGE) or f.is_relative_to(home.resolve())
        }
        assert own - known == set(), step


def test_a_python_file_of_a_sweep_is_known_with_its_folder_and_imports(monkeypatch):
    """However it names a file, here or where a module that it imports lies."""
    for name in ("my/deep", "lib"):
        Path(name).mkdir(parents=True)
    Path("my/m.py").write_text("import library")
    Path("lib/library.py").touch()
    monkeypatch.syspath_prepend("lib")
    sources.home_of.cache_clear()
    digests = [digest_of(Path("my/m.py"))]
    for name in ("my/deep/.f", "lib/g.csv", "lib/library.py"):
        Path(name).write_text("X = 2")
        digests.append(digest_of(Path("my/m.py")))
    assert len({*digests}) == 4
    sources.home_of.cache_clear()


def test_results_of_a_sweep_are_no_part_of_its_code():
    Path("my").mkdir()
    Path("my/m.py").write_text("def m(x):\n    return x[..., 0]\n")
    problem = SPEC["problem"] | {"target": {"kind": "python", "file": "m.py", "name": "m"}}
    sweep = SPEC | {"problem": problem, "theory": {"order": "none"}}
    Path("my/s.yaml").write_text(yaml.safe_dump(sweep))
    before = digest_of(Path("my/m.py"))
    options = ("--output", "my/s.nc", "--allow-code")
    assert sims("sweep", "my/s.yaml", *options) == 0
    assert digest_of(Path("my/m.py")) == before
