"""What each step depends on, and the Snakefile."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import grimp
import pytest

from sims.study.code import STEPS, files, part
from sims.study.workflow import remember_job_age
from tests.pipeline import ROOT, run

PRINT = """
from pathlib import Path
from sims.study.code import STEPS, digest
import sys
for step in STEPS: print(step, digest(step, Path("experiments/angles"), "smoke"))
heavy = {"jax", "xarray", "numpy"} & set(sys.modules)
assert not heavy, heavy
"""


def _digests(folder: Path) -> dict[str, str]:
    done = run(folder, "-c", PRINT)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


def _edit(path: Path, old: str = "", new: str = "# edited\n") -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")


YAML, EFFECTS = "experiments/angles/experiment.yaml", "experiments/angles/effects.py"


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("sims/figures/theme.py", "", "# edited\n", {"plot"}),
        ("sims/simulation/engine.py", "", "# edited\n", {"simulate"}),
        ("sims/simulation/native/sums.cc", "", "// edited\n", {"simulate"}),
        ("sims/montecarlo/driver.py", "", "# edited\n", {"simulate"}),
        ("sims/theory/__init__.py", "", "# edited\n", {"predict"}),
        ("sims/problem/kernels.py", "", "# edited\n", {"simulate", "predict"}),
        ("sims/judgement/settle.py", "", "# edited\n", {"judge", "ledger"}),
        ("sims/report/page.html.j2", "", " ", {"report"}),
        ("sims/errors.py", "", "# edited\n", set()),
        ("sims/cli/decompose.py", "", "# edited\n", set()),
        (EFFECTS, "", "# edited\n", {"judge", "plot"}),
        ("experiments/angles/figure.py", "", "# edited\n", {"plot"}),
        ("experiments/angles/caption.md", "", "x", {"plot"}),
        (YAML, "title: ", "title: New ", {"plot"}),
        (YAML, "margin: 0.05", "margin: 0.04", {"judge"}),
        (YAML, "seed: 7", "seed: 8", {"simulate", "predict"}),  # problems drawn by it
        (YAML, "noise_sd: 1", "noise_sd: 2", {"simulate", "predict"}),
        (YAML, "replicates_per_batch: 4", "replicates_per_batch: 6", {"simulate"}),
        (YAML, "problem: {n: 4096", "problem: {n: 8192", set()),  # of another fidelity
    ],
)
def test_digests_follow_what_a_step_depends_on(copy, path, old, new, changed):
    before = _digests(copy)
    assert set(before) == set(STEPS)
    _edit(copy / path, old, new)
    after = _digests(copy)
    assert {step for step in before if before[step] != after[step]} == changed


def test_what_rows_say_to_readers_simulates_nothing_anew(tmp_path):
    """Where margins say when sampling stops, statements and what had been seen do not."""
    text, own = (ROOT / YAML).read_text(encoding="utf-8"), tmp_path / "experiment.yaml"

    def behind(old: str, new: str) -> str:
        assert old in text
        own.write_text(text.replace(old, new, 1), encoding="utf-8")
        return part("simulate", tmp_path, "standard")

    unchanged = behind("", "")
    assert behind("    margin: ", "    seen_before: At seed 5.\n    margin: ") == unchanged
    assert behind("\nseen_before: >-\n", "\nseen_before: >-\n  At seed 5.\n") == unchanged
    assert behind("    margin: 0.0", "    margin: 0.00") != unchanged


NO_RESULT = (
    "errors", "validation", "documents", "files", "identity", "formulas", "provenance", "papers",
    "places", "study",
)  # fmt: skip
"""Modules that change no number: words of errors, files, provenance, and what only plans."""
OTHER_ROAD = {"simulate": "sims.theory", "predict": ("sims.simulation", "sims.montecarlo")}


@pytest.mark.parametrize("folder", sorted(ROOT.glob("experiments/*/")), ids=lambda p: p.name)
def test_every_module_of_an_experiment_is_behind_a_step(folder):
    """Also those beside ``simulate.py`` and its like, which these import."""
    behind = {Path(path).resolve() for step in STEPS for path in files(step, folder)}
    assert {path for path in folder.glob("*.py") if path.name != "__init__.py"} <= behind
    simulated = {Path(path).name for path in files("simulate", folder)}
    assert "predict.py" not in simulated


def test_an_edit_of_a_module_beside_is_seen(tmp_path):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "simulate.py").write_text("from .parts import size\n")
    (own / "parts.py").write_text("from . import deep\nsize = 1\n")
    (own / "deep.py").write_text("")
    (own / "other.py").write_text("")
    names = {Path(path).name for path in files("simulate", own)}
    assert {"parts.py", "deep.py"} <= names
    assert "other.py" not in names


@pytest.mark.parametrize("step", STEPS)
def test_no_file_that_a_step_imports_is_left_out(step):
    """What the modules behind a step import is behind it, too, but for the other road."""
    graph = grimp.build_graph("sims")
    names = {_module(path) for path in files(step) if path.endswith(".py")}
    missing = {
        imported
        for name in names
        for imported in graph.find_modules_directly_imported_by(name)
        if imported not in names
        and imported != "sims"
        and imported.split(".")[1] not in NO_RESULT
        and not imported.startswith(OTHER_ROAD.get(step, "none"))
        and not (step in ("ledger", "plot", "report") and imported.startswith("sims.judgement"))
    }
    assert missing == set()


def _module(path: str) -> str:
    parts = Path(path).with_suffix("").parts
    parts = parts[parts.index("sims") :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _rules(folder: Path) -> set[str]:
    done = run(folder, "-m", "snakemake", "-n", "--config", "fidelity=smoke")
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return {name for x in lines for name in STEPS if x.split()[:1] == [name]}


@pytest.mark.slow
def test_snakemake_reruns_what_changed_and_nothing_else(copy):
    done = run(copy, "-m", "snakemake", "--config", "fidelity=smoke")
    assert done.returncode == 0, done.stderr
    assert (copy / "results/smoke/report.html").is_file()
    assert _rules(copy) == set()
    _edit(copy / "sims/figures/theme.py")
    assert _rules(copy) == {"plot", "report"}
    _edit(copy / "sims/simulation/engine.py")
    assert _rules(copy) >= {"simulate", "judge", "plot", "ledger", "report"}
    assert "predict" not in _rules(copy)


def test_shards_are_jobs_of_their_own(copy):
    """As many as asked for, before the simulation that they are parts of."""
    done = run(copy, "-m", "snakemake", "-n", "--config", "fidelity=smoke", "shards=3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("9 steps: 1 judge, 1 ledger, 1 plot, 1 predict")
    shards = {line for line in lines if line.startswith("would shard ")}
    assert shards == {f"would shard angles {i} 3" for i in (1, 2, 3)}


@pytest.mark.parametrize(
    ("experiment", "fidelity", "cores"),
    [("angles", "standard", 6), ("", "standard", 1), ("angles", "smoke", 1)],
)
def test_a_single_experiment_has_all_cores(copy, experiment, fidelity, cores):
    """Of several a quarter each; a smoke run mostly starts up."""
    shutil.copytree(copy / "experiments/angles", copy / "experiments/other")
    plain = ("--profile", "none", "--workflow-profile", "none", "--cores", "6")
    config = [f"fidelity={fidelity}", *([f"experiment={experiment}"] if experiment else [])]
    done = run(copy, "-m", "snakemake", "-n", "-p", *plain, "--config", *config)
    for step in ("predict", "simulate"):
        assert f"SIMS_HOST_DEVICES={cores} sims {step} angles" in done.stdout + done.stderr


def test_a_run_ends_with_what_it_found(copy):
    """Verdicts and paths of all that it was asked for; nothing after a single file."""
    run_of = ("-m", "snakemake", "--cores", "2", "--config", "fidelity=smoke", "experiment=angles")
    one = run(copy, *run_of[:4], "results/smoke/angles/verdicts.json", *run_of[4:])
    assert one.returncode == 0, one.stderr
    assert "supported" not in one.stderr
    whole = run(copy, *run_of)
    assert whole.returncode == 0, whole.stderr
    assert "angles  1 supported; results/smoke/angles/figure.png" in whole.stderr
    assert "report  results/smoke/report.html" in whole.stderr


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("fidelity=fine", "fidelity: got 'fine'; allowed: smoke, standard, paper"),
        ("experiment=none", "experiment: got 'none'; allowed: angles"),
        ("fidelty=smoke", "--config: got 'fidelty'"),
        ("shards=many", "shards: got 'many'; allowed: a whole number, 0 to 10000"),
    ],
)
def test_bad_configuration_is_one_line(copy, config, words):
    done = run(copy, "-m", "snakemake", "-n", "--quiet", "all", "--config", config)
    lines = [x for x in done.stderr.splitlines() if not x.startswith("Using ")]
    assert done.returncode == 2
    assert len(lines) == 1
    assert words in lines[0]


def test_a_folder_name_cannot_reach_a_shell(copy):
    shutil.copytree(copy / "experiments/angles", copy / "experiments/a;touch PWNED")
    done = run(copy, "-m", "snakemake", "-n", "--quiet", "all", "--config", "fidelity=smoke")
    assert done.returncode == 2
    assert "folder of an experiment: got 'a;touch PWNED'; allowed: letters" in done.stderr


def test_a_controller_that_does_not_answer_remembers_what_it_did(monkeypatch):
    """Snakemake's Slurm plugin would turn to sacct, which without accounts never answers."""
    answers = [None, 300, None, 60]
    plugin = SimpleNamespace(get_min_job_age=lambda: answers.pop(0))
    monkeypatch.setitem(sys.modules, "snakemake_executor_plugin_slurm", plugin)
    remember_job_age()
    assert [plugin.get_min_job_age() for _ in range(4)] == [None, 300, 300, 60]


def test_snakemakes_slurm_plugin_still_asks_for_that_age_by_this_name():
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
    assert "get_min_job_age" in plugin.Executor.check_active_jobs.__code__.co_names
