"""Fingerprints, the Snakefile, result files and checkpoints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sims import checkpoints, results
from sims.errors import InputError
from sims.fingerprint import STEPS

ROOT = Path(__file__).parents[1]
STUB = """#!/bin/sh
for last; do :; done
touch "$last"
case $1 in plot) touch "${last%.pdf}.png" "$(dirname "$last")/caption.md" ;; esac
"""
PRINT = """
from sims.fingerprint import STEPS, fingerprint
import sys
for step in STEPS: print(step, fingerprint(step, "angles", "smoke"))
heavy = {"jax", "xarray", "numpy"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.fixture
def copy(tmp_path):
    """The code in a folder of its own, to be edited."""
    for name in ("sims", "profiles", "experiments/angles"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    lines = ['shell.prefix("PATH=./bin:$PATH; ")' if x.startswith("shell.prefix") else x
             for x in text.splitlines()]  # fmt: skip
    (tmp_path / "Snakefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sims").write_text(STUB)
    (tmp_path / "bin" / "sims").chmod(0o755)
    return tmp_path


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )


def _fingerprints(folder: Path) -> dict[str, str]:
    done = _run(folder, "-c", PRINT)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


def _edit(path: Path, old: str = "", new: str = "# edited\n") -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")


YAML, ANALYSIS = "experiments/angles/experiment.yaml", "experiments/angles/analysis.py"


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("sims/figures/plots.py", "", "# edited\n", {"plot"}),
        ("sims/simulation/engine.py", "", "# edited\n", {"simulate", "audit"}),
        ("sims/simulation/native/sums.cc", "", "// edited\n", {"simulate", "audit"}),
        ("sims/theory/laws.py", "", "# edited\n", {"predict", "audit"}),
        ("sims/problem/kernels.py", "", "# edited\n", {"simulate", "predict", "audit"}),
        ("sims/judgement/decide.py", "", "# edited\n", {"judge", "audit", "ledger", "report"}),
        ("sims/report.html.j2", "", " ", {"report"}),
        ("sims/errors.py", "", "# edited\n", set()),
        ("sims/cli/decompose.py", "", "# edited\n", set()),
        (ANALYSIS, "", "# edited\n", {"judge", "plot"}),
        ("experiments/angles/caption.md", "", "x", {"plot"}),
        (YAML, "title: ", "title: New ", {"plot", "report"}),
        (YAML, "margin: 0.05", "margin: 0.04", {"judge", "report"}),
        (YAML, "seed: 7", "seed: 8", {"simulate", "report"}),
        (YAML, "order: first", "order: exact", {"predict", "report"}),
        (YAML, "noise_sd: 1", "noise_sd: 2", {"simulate", "predict", "report"}),
        (YAML, "replicates_per_batch: 4", "replicates_per_batch: 6", {"simulate", "report"}),
        (YAML, "problem: {n: 4096", "problem: {n: 8192", {"report"}),  # of another fidelity
    ],
)
def test_fingerprints_follow_what_a_step_depends_on(copy, path, old, new, changed):
    before = _fingerprints(copy)
    assert set(before) == set(STEPS)
    _edit(copy / path, old, new)
    after = _fingerprints(copy)
    assert {step for step in before if before[step] != after[step]} == changed


def _rules(folder: Path) -> set[str]:
    done = _run(folder, "-m", "snakemake", "-n", "--config", "fidelity=smoke")
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return {name for x in lines for name in STEPS if x.split()[:1] == [name]}


@pytest.mark.slow
def test_snakemake_reruns_what_changed_and_nothing_else(copy):
    done = _run(copy, "-m", "snakemake", "--config", "fidelity=smoke")
    assert done.returncode == 0, done.stderr
    assert (copy / "results/smoke/report.html").is_file()
    assert _rules(copy) == set()
    _edit(copy / "sims/figures/plots.py")
    assert _rules(copy) == {"plot", "report"}
    _edit(copy / "sims/simulation/engine.py")
    assert _rules(copy) >= {"simulate", "judge", "plot", "ledger", "report"}
    assert "predict" not in _rules(copy)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("fidelity=fine", "fidelity: got 'fine'; allowed: smoke, standard, paper"),
        ("experiment=none", "experiment: got 'none'; allowed: angles"),
        ("fidelty=smoke", "--config: got 'fidelty'"),
    ],
)
def test_bad_configuration_is_one_line(copy, config, words):
    done = _run(copy, "-m", "snakemake", "-n", "--quiet", "all", "--config", config)
    lines = [x for x in done.stderr.splitlines() if not x.startswith("Using ")]
    assert done.returncode == 2
    assert len(lines) == 1
    assert words in lines[0]


def test_snakefile_is_short():
    assert len((ROOT / "Snakefile").read_text(encoding="utf-8").splitlines()) <= 60


def _dataset(batches: int, heads: int) -> xr.Dataset:
    rng = np.random.default_rng(batches)
    data = xr.Dataset(
        {
            "mse": ("batch", rng.normal(size=batches)),
            "pair": (("batch", "head", "head2"), rng.normal(size=(batches, heads, heads))),
            "n_eff": (("query", "head"), rng.normal(size=(3, heads))),
            "label": ("head", [f"h{i}" for i in range(heads)]),
        },
        coords={"head": np.arange(heads) * 2},
        attrs={"replicates": np.int64(batches * 4), "stopped": "limit", "rel": 0.5},
    )
    return data.assign(mse_mcse=data["mse"].std() / 2)


def test_result_files_round_trip(tmp_path):
    data = {f"{i:04d}": _dataset(4 + 4 * (i % 2), 2 + i // 3) for i in range(6)}
    points = {name: {"heads.bandwidth": [1.0, 2.0], "n": 3} for name in data}
    results.write(data, points, {"road": "simulation", "x": None}, tmp_path / "a" / "r.nc")
    found, coordinates, origin = results.read(tmp_path / "a" / "r.nc")
    assert list(found) == list(data)
    assert coordinates == points
    assert (
        origin == results.provenance(tmp_path / "a" / "r.nc") == {"road": "simulation", "x": None}
    )
    for name in data:
        xr.testing.assert_identical(found[name], data[name])
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["r.nc"]  # nothing temporary is left


@pytest.mark.parametrize("content", [None, b"", b"not netcdf"])
def test_unreadable_result_is_an_input_error(tmp_path, content):
    if content is not None:
        (tmp_path / "r.nc").write_bytes(content)
    with pytest.raises(InputError):
        results.read(tmp_path / "r.nc")


def test_checkpoints(tmp_path):
    data = _dataset(4, 2)
    checkpoints.save(data, tmp_path / "a-simulation-1.npz")
    xr.testing.assert_identical(checkpoints.load(tmp_path / "a-simulation-1.npz"), data)
    checkpoints.save(data, tmp_path / "a-theory-0.npz")
    checkpoints.save(data, tmp_path / "a-simulation-2.npz")
    checkpoints.prune(tmp_path, "simulation", "simulation-2")
    assert {p.name for p in tmp_path.iterdir()} == {"a-theory-0.npz", "a-simulation-2.npz"}
    whole = (tmp_path / "a-theory-0.npz").read_bytes()
    (tmp_path / "a-theory-0.npz").write_bytes(whole[:100])
    assert checkpoints.load(tmp_path / "a-theory-0.npz") is None
    assert checkpoints.load(tmp_path / "none.npz") is None


def test_pseudovalues_give_paired_contrasts():
    a, b = _dataset(16, 2), _dataset(16, 2)
    both = results.Results("e", "smoke", {}, {"a": a, "b": b}, {}, {})
    linear = both.pseudovalues("a", lambda terms: 3 * terms["mse"])
    np.testing.assert_allclose(linear, 3 * a["mse"].values)
    mean, error = results.mean_and_error(linear)
    assert mean == pytest.approx(3 * float(a["mse"].mean()))
    assert error == pytest.approx(3 * float(a["mse"].std(ddof=1)) / 4)
