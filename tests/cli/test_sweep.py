"""``sims sweep``: designs, files, shards, and what users get wrong."""

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sims.base.files import locked
from sims.base.terms import SCALARS
from sims.cli.sweep import print_sweep
from sims.study import sweeping
from sims.study.sweepfile import read_points
from tests.cli.small import SPEC, run
from tests.pipeline import ROOT

OUT = Path("results/sweeps/spec.nc")
AXES = ("--set", "heads.bandwidth=0.5:2:3:log", "--set", "n=16,32")


def opened(path=OUT):
    """As any other program opens it."""
    with xr.open_dataset(path) as data:
        return data.load()


def written(folder, **design):
    (folder / "sweep.yaml").write_text(yaml.safe_dump(SPEC | {"sweep": design}))
    return str(folder / "sweep.yaml")


def test_a_grid_is_one_labelled_file_and_a_figure(folder, capsys):
    assert run("sweep", "spec.yaml", *AXES) == 0
    data = opened()
    assert dict(data.sizes) == {"bandwidth": 3, "n": 2}
    assert data["bandwidth"].values.tolist() == [0.5, 1.0, 2.0]
    assert data["bandwidth"].attrs["path"] == "heads.bandwidth"
    for name, values in data.variables.items():
        assert values.attrs["long_name"], name
        assert values.attrs["units"], name
    assert OUT.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert json.loads(data.attrs["specification"])["problem"]["n"] == 64
    assert json.loads(data.attrs["provenance"])["replicates_total"] == 6 * 32
    capsys.readouterr()
    spec = SPEC | {"problem": SPEC["problem"] | {"n": 16}}
    spec["problem"]["heads"] = spec["problem"]["heads"] | {"bandwidth": 2.0}
    (folder / "one.yaml").write_text(yaml.safe_dump(spec))
    assert run("decompose", "one.yaml", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    terms = found["terms"]
    point = data.sel(bandwidth=2.0, n=16)
    keys = [found["n_eff"]["mean"], found["n_eff"]["least"], found["n_third"]["least"]]
    assert [float(point[k]) for k in ("n_eff", "n_eff_least", "n_third")] == pytest.approx(keys)
    for term in SCALARS:
        got = [float(point[term + end]) for end in ("", "_mcse", "_theory")]
        expected = [terms[term][k] for k in ("simulation", "mcse", "theory")]
        np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=term)
    assert run("sweep", "one.yaml") == 0  # the same file is a sweep of one point
    alone = opened("results/sweeps/one.nc")
    assert not alone.sizes
    assert float(alone["mse"]) == pytest.approx(terms["mse"]["simulation"], rel=1e-12)


def test_parts_give_the_file_of_the_whole(folder, monkeypatch, capsys):
    """In any order, going on where one was killed; what is missing or damaged is computed."""
    assert run("sweep", "spec.yaml", *AXES) == 0
    whole, part = opened(), ("sweep", "spec.yaml", *AXES, "--output", "a.nc")
    estimate, done = sweeping.estimate_many, []

    def once(*arguments, **options):
        if done:
            raise KeyboardInterrupt
        done.append(estimate(*arguments, **options))
        return done[-1]

    monkeypatch.setattr(sweeping, "LONG", 0)  # so that a point is a group
    monkeypatch.setattr(sweeping, "estimate_many", once)
    assert run(*part, "--shard", "1/3") == 130
    left = [file.name for file in Path("a.shards").iterdir()]
    assert len(left) == 1
    assert left[0].startswith("group_")
    monkeypatch.setattr(
        sweeping, "estimate_many", lambda *a, **k: done.append(a) or estimate(*a, **k)
    )
    for index in (3, 1, 2):
        assert run(*part, "--shard", f"{index}/3") == 0
    assert len(done) == 6  # each point once
    first, second, *_ = sorted(Path("a.shards").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    capsys.readouterr()
    assert run(*part) == 0
    assert f"{second}: got " in capsys.readouterr().err
    assert len(done) == 8
    assert not Path("a.shards").exists()
    xr.testing.assert_allclose(opened("a.nc"), whole, rtol=1e-12)


def test_what_other_settings_made_is_not_mixed_in(folder, monkeypatch):
    monkeypatch.setattr(sweeping, "LONG", 0)
    part = ("sweep", "spec.yaml", *AXES[2:], "--output", "a.nc")
    assert run(*part, "--shard", "1/2") == 0
    assert run(*part, "--seed", "1") == 0
    assert run(*part[:-1], "b.nc", "--seed", "1") == 0
    xr.testing.assert_equal(opened("a.nc"), opened("b.nc"))


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 4)), max_size=6),
    st.integers(1, 5),
)
def test_a_sweep_stopped_and_cut_anew_at_random_is_the_undisturbed_one(monkeypatch, stops, last):
    """Every number stands at its own point, however often the number of parts changed.

    Args:
        monkeypatch: pytest's.
        stops: of runs that were killed, the parts, which one ran, and the groups that it finished.
        last: the parts of the run that finishes.
    """
    monkeypatch.setattr(sweeping, "MAX_GROUP", 2)
    sizes = {"heads.bandwidth": [0.2, 0.6, 1.8], "n": [16, 32, 64, 128]}
    problem = SPEC | {"sweep": {"grid": sizes}}
    computed, left = [], [0]

    def estimate(group, settings, progress, checkpoint):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        points = group.points
        computed.extend(point.name for point in points)
        values = [point.spec.n * point.spec.heads.bandwidth for point in points]
        rows = {"mse": ("point", values), "replicates": ("point", [1] * len(points))}
        return xr.Dataset(rows, {"point": [int(p.name) for p in points]}, {"precision": "float32"})

    monkeypatch.setattr(sweeping.Group, "estimate", estimate)
    with TemporaryDirectory() as home:
        Path(home, "s.yaml").write_text(yaml.safe_dump(problem))
        run = sweeping.Sweep(*read_points(f"{home}/s.yaml"), Path(home, "o.nc"))
        for shards, index, left[0] in stops:
            with suppress(KeyboardInterrupt):
                run.compute(((index - 1) % shards + 1, shards))
        left[0] = 99
        for index in range(1, last):  # without the last part
            run.compute((index, last))
        data = run.finish()
        assert not Path(home, "o.shards").exists()
    np.testing.assert_array_equal(data["mse"], data["bandwidth"] * data["n"])
    assert sorted(computed) == [f"{place:05d}" for place in range(12)]  # each once


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_parts_hold_every_group_once_and_are_about_equal_in_work(folder, monkeypatch, count):
    """Were they equal in number, one of two parts would have all the long groups."""
    monkeypatch.setattr(sweeping, "MAX_GROUP", 2)
    sizes = {"noise_sd": [k / 8 for k in range(1, 9)], "n": [16, 4096]}
    run = sweeping.Sweep(*read_points(written(folder, grid=sizes)), folder / "o.nc")
    simulation = run.simulation()
    parts = [simulation.part(index, count) for index in range(1, count + 1)]
    assert [name for part in parts for name in part] == list(run.groups)
    work = [sum(run.groups[name].work for name in part) for part in parts]
    largest = max(group.work for group in run.groups.values())
    assert max(work) <= sum(work) / count + largest


def test_parts_by_snakemake_go_on_where_they_were_stopped(folder, monkeypatch, capfd):
    """Nothing in the folder stands for a module; a finished sweep is not run again."""
    whole = ["sweep", "spec.yaml", *AXES[2:]]
    assert run(*whole) == 0
    Path("sims.py").write_text("raise SystemExit\n")
    whole += ["--output", "own parts/a.nc", "--shards", "2"]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    running = subprocess.Popen([Path(sys.executable).with_name("sims"), *whole])
    deadline = time.monotonic() + 60
    while not list(Path().glob("own parts/a.shards/*.log")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 75
    for said in ("own parts/a.png", "complete"):
        assert run(*whole) == 0
        assert said in capfd.readouterr().out
    assert not Path("own parts/a.shards").exists()
    xr.testing.assert_allclose(opened("own parts/a.nc"), opened(), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "profile"),
    [
        ((), "none"),
        (("--", "--cores", "1"), "none"),
        (("--", "--cores", "1", "--workflow-profile", "cluster"), "cluster"),
    ],
)
def test_a_profile_is_read_only_if_it_is_asked_for(folder, monkeypatch, options, profile):
    """A profile is code: one in the working folder or the environment would be run."""
    from snakemake.cli import parse_args

    for name in ("default", "cluster"):
        Path("profiles", name).mkdir(parents=True)
        Path("profiles", name, "config.yaml").write_text(f"jobs: 7\ndirectory: {name}\n")
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "profiles/default")
    begun = []

    def begin(command, env, **rest):
        begun.append((command, env))
        return SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr("sims.cli.sharded.subprocess.Popen", begin)
    assert run("sweep", "spec.yaml", "--shards", "2", *options) == 0
    (command, surroundings) = begun[0]
    assert "SNAKEMAKE_PROFILE" not in surroundings
    monkeypatch.delenv("SNAKEMAKE_PROFILE")
    _, parsed = parse_args(command[command.index("snakemake") + 1 :])
    assert parsed.cores is not None
    assert str(parsed.directory) == {"none": "None"}.get(profile, profile)


def test_two_runs_do_not_write_one_file(folder, capsys):
    part = ("sweep", "spec.yaml", *AXES[2:], "--output", "a.nc")
    with locked(Path("a.shards/.lock"), "a.nc", ""):
        assert run(*part) == 2
        assert "a.nc: got 'in use by another run'; allowed: one run" in capsys.readouterr().err
        assert run(*part[:-1], "b.nc") == 0
        assert run(*part, "--shard", "1/2") == 0  # parts may run side by side
    assert run(*part) == 0
    xr.testing.assert_equal(opened("a.nc"), opened("b.nc"))


def test_without_a_terminal_a_line_a_minute(folder, capsys, monkeypatch):
    monkeypatch.setattr("sims.cli.MINUTE", 0.01)
    monkeypatch.setattr(sweeping, "LONG", 0)
    assert run("sweep", "spec.yaml", *AXES[2:], "--shard", "2/2") == 0
    assert re.search(r"sims sweep: 0 min, unit 2 of 2\b", capsys.readouterr().err)
    assert run("decompose", "spec.yaml", "--rel-mcse", "0.05") == 0  # long enough for a line
    assert re.search(r"sims decompose: 0 min, batches \d+ of 4096\n", capsys.readouterr().err)


def test_a_list_of_points_and_what_theory_does_not_cover(folder, capsys):
    kernels = ["gaussian", "epanechnikov", "epanechnikov", "gaussian", "gaussian", "gaussian"]
    sizes = [16, 60, 21, 33, 48, 64]
    points = [{"n": n, "heads.kernel": kernel} for n, kernel in zip(sizes, kernels, strict=True)]
    file = written(folder, list=points)
    assert run("sweep", file, "--dry") == 0
    assert not Path("results").exists()
    said = capsys.readouterr().out
    assert [point.coordinates for point in read_points(file)[1]] == points
    missing = 2
    assert f"not at {missing}: heads.kernel epanechnikov; covered: gaussian, softmax" in said
    rough = int(re.search(r"not at (\d): first order is rough", said)[1])
    assert f"theory       first: {6 - missing - rough} of 6 points" in said
    assert run("sweep", file) == 0
    assert capsys.readouterr().out.count("–") == 2 * missing  # neither theory nor gap
    data = opened("results/sweeps/sweep.nc")
    assert data["kernel"].values.tolist() == kernels
    uncovered = np.isnan(data["mse_theory"].values)
    np.testing.assert_array_equal(uncovered, data["kernel"].values == "epanechnikov")
    assert np.isfinite(data["mse"].values).all()


def test_the_least_value_and_where_it_is(folder, capsys):
    """In a plan, points where theory is rough count as not covered; so after the run.

    A gap is that of simulation from theory.
    """
    axes = ("--set", "heads.bandwidth=0.02,0.3,9", "--set", "n=256,4096")
    assert run("sweep", "spec.yaml", *axes, "--dry") == 0
    plan = capsys.readouterr().out
    assert re.search(r"first: 5 of 6 points\n +not at 1: first order is rough", plan)
    assert run("sweep", "spec.yaml", *axes) == 0
    said = capsys.readouterr().out
    assert "theory is rough at 1 of 6 points" in said
    assert re.search(r"Least MSE: .* n 4096.*; on the border of the grid in bandwidth, n: ", said)
    data = opened().isel(n=[1])
    point = data.sel(bandwidth=0.3, n=4096)
    assert f"{float(point['mse'] / point['mse_theory'] - 1):+.1%}" in said
    data["mse"][:] = [[0.5], [0.3], [0.1]]
    data["faults"][2] = "lost"  # where numbers are unusable
    print_sweep(data)
    assert "at bandwidth 0.3, n 4096; inside the grid." in capsys.readouterr().out


def test_a_list_has_points_and_labels(folder):
    sets = [{"n": 16}, {"n": 32, "heads.bandwidth": {"label": "two", "value": [0.5, 0.9]}}]
    _, points = read_points(written(folder, list=sets))
    assert [p.coordinates for p in points] == [
        {"n": 16, "heads.bandwidth": 0.7},
        {"n": 32, "heads.bandwidth": "two"},
    ]
    assert points[1].spec.heads.bandwidth == [0.5, 0.9]
    assert run("sweep", "sweep.yaml") == 0
    assert opened("results/sweeps/sweep.nc")["bandwidth"].values.tolist() == ["0.7", "two"]


def test_an_edited_file_of_the_problem_is_another_problem(folder, monkeypatch):
    """Three times the target has nine times the variance; what theory does not cover is missing."""
    target = {"kind": "python", "file": "my.py", "name": "m", "slope": 2.0}
    problem = SPEC["problem"] | {"target": target}
    Path("spec.yaml").write_text(yaml.safe_dump(SPEC | {"problem": problem}))
    variances = []
    monkeypatch.setenv("SIMS_ALLOW_CODE", "1")
    for factor in ("1", "3"):
        text = f"def m(x, slope=1.0):\n    return {factor} * slope * x[..., 0]\n"
        Path("my.py").write_text(text)
        assert run("sweep", "spec.yaml", "--set", "target.slope=1.0,2.0") == 0
        variances.append(opened()["signal_variance"].values)
    assert np.isnan(opened()["mse_theory"]).all()
    np.testing.assert_allclose(variances[0][1], 4 * variances[0][0], rtol=1e-9)
    np.testing.assert_allclose(variances[1], 9 * variances[0], rtol=1e-9)
