"""``sims sweep``: designs, files, shards, and what users get wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml

from sims.errors import InputError
from sims.montecarlo import supply
from sims.study import sweeping
from sims.study.sweepfile import read_sweep
from sims.terms import SCALARS
from tests.cli.small import SPEC, run

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
    assert json.loads(data.attrs["provenance"])["replicates_done"] == "32"
    capsys.readouterr()
    spec = SPEC | {"problem": SPEC["problem"] | {"n": 16}}
    spec["problem"]["heads"] = spec["problem"]["heads"] | {"bandwidth": 2.0}
    (folder / "one.yaml").write_text(yaml.safe_dump(spec))
    assert run("decompose", "one.yaml", "--json") == 0
    terms = json.loads(capsys.readouterr().out)["terms"]
    point = data.sel(bandwidth=2.0, n=16)
    for term in SCALARS:
        got = [float(point[term + end]) for end in ("", "_mcse", "_theory")]
        expected = [terms[term][k] for k in ("simulation", "mcse", "theory")]
        np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=term)
    assert run("sweep", "one.yaml") == 0  # the same file is a sweep of one point
    alone = opened("results/sweeps/one.nc")
    assert not alone.sizes
    assert float(alone["mse"]) == pytest.approx(terms["mse"]["simulation"], rel=1e-12)


def test_shards_and_what_was_done_before_give_the_same_file(folder, monkeypatch):
    assert run("sweep", "spec.yaml", *AXES) == 0
    whole = opened()
    for index in (3, 1, 2):
        assert run("sweep", "spec.yaml", *AXES, "--output", "a.nc", "--shard", f"{index}/3") == 0
    assert not Path("a.nc").exists()
    computed = []
    monkeypatch.setattr(supply.Supply, "_compute", lambda self, number: computed.append(number))
    assert run("sweep", "spec.yaml", *AXES, "--output", "a.nc") == 0
    assert computed == []
    shards = opened("a.nc")
    for name in whole.data_vars:
        if whole[name].dtype.kind == "f":
            np.testing.assert_allclose(shards[name], whole[name], rtol=1e-12, err_msg=name)
    assert run("sweep", "spec.yaml", *AXES[:2], "--set", "n=16", "--output", "a.nc") == 0
    xr.testing.assert_identical(opened("a.nc")["mse"], shards["mse"].sel(n=[16]))
    assert computed == []


def test_random_points_and_what_theory_does_not_cover(folder, capsys):
    fields = {
        "n": {"low": 16, "high": 64, "scale": "log"},
        "heads.kernel": ["gaussian", "epanechnikov"],
        "noise_sd": {"low": 0.1, "high": 1},
    }
    file = written(folder, random={"points": 6, "fields": fields})
    assert run("sweep", file, "--dry") == 0
    assert not Path("results").exists()
    said = capsys.readouterr().out
    data_of = read_sweep(file)
    kernels = [p.coordinates["heads.kernel"] for p in data_of.points]
    missing = kernels.count("epanechnikov")
    assert 0 < missing < 6
    assert f"theory       first: {6 - missing} of 6 points" in said
    assert f"not at {missing}: heads.kernel: epanechnikov; covered: gaussian, softmax" in said
    assert run("sweep", file) == 0
    data = opened("results/sweeps/sweep.nc")
    assert data["kernel"].values.tolist() == kernels
    uncovered = np.isnan(data["mse_theory"].values)
    np.testing.assert_array_equal(uncovered, data["kernel"].values == "epanechnikov")
    assert np.isfinite(data["mse"].values).all()
    longer = read_sweep(written(folder, random={"points": 9, "fields": fields}))
    assert longer.points[:6] == data_of.points
    assert all(16 <= p.coordinates["n"] <= 64 for p in longer.points)


def test_a_list_has_points_and_labels(folder):
    sets = [{"n": 16}, {"n": 32, "heads.bandwidth": {"label": "two", "value": [0.5, 0.9]}}]
    sweep = read_sweep(written(folder, list=sets))
    assert [p.coordinates for p in sweep.points] == [
        {"n": 16, "heads.bandwidth": 0.7},
        {"n": 32, "heads.bandwidth": "two"},
    ]
    assert sweep.points[1].spec.heads.bandwidth == [0.5, 0.9]
    assert run("sweep", "sweep.yaml") == 0
    assert opened("results/sweeps/sweep.nc")["bandwidth"].values.tolist() == ["0.7", "two"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "heads.bandwith=1,2"), "heads.bandwith: got 'bandwith'; allowed: bandwidth"),
        (("--set", "head.bandwidth=1,2"), "head.bandwidth: got 'head'; allowed: design, dimension"),
        (("--set", "n=1.5"), "point 0 (n: 1.5): n: got 1.5; allowed: a valid integer"),
        (("--set", "n=0,8"), "point 0 (n: 0): n: got 0; allowed: greater than or equal to 1"),
        (("--set", "n=9:2:3"), "sweep.grid.n: low and high: got [9.0, 2.0]; allowed: low < high"),
        (("--set", "n=0:2:3:log"), "got 0.0; allowed: > 0 on a logarithmic scale"),
        (("--set", "n=1:2:3:loud"), "sweep.grid.n: scale: got 'loud'; allowed: linear, log"),
        (("--set", "n=5,5"), "sweep.grid: got 'a value twice'"),
        (("--set", "n"), "--set: got 'n'; allowed: PATH=LOW:HIGH:POINTS"),
        (("--set", "n=[8"), '--set n: got "a mistake at line'),
        (("--set", "n=2:9:3", "--shard", "4/3"), "shard: got '4/3'; allowed: i/N"),
        (("--shards", "0"), "argument --shards: got '0'; allowed: a whole number"),
        (("--set", "n=1:99999:99999", "--set", "noise_sd=0,1"), "got '199,998 points'"),
        (("--output", "spec.txt"), "--output: got 'spec.txt'; allowed: a file whose name ends"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line(folder, capsys, arguments, words):
    assert run("sweep", "spec.yaml", *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ({"grid": {}, "list": [{}]}, "sweep: got ['grid', 'list']; allowed: exactly one of grid"),
        ({"gird": {}}, "allowed: grid, list, random (did you mean grid?)"),
        ({"grid": {"n": [[1]]}}, "grid: n: got [[1]]; allowed: scalars or mappings"),
        ({"random": {"points": 3, "fields": {}}}, "sweep.random.fields"),
        ({"random": {"points": 3, "fields": {"n": {"low": 1, "high": 2, "points": 3}}}},
         "fields.n.points: got 3; allowed: nothing: points are drawn"),
    ],
)  # fmt: skip
def test_designs_are_checked(folder, design, words):
    with pytest.raises(InputError) as error:
        read_sweep(written(folder, **design))
    assert words in str(error.value)


@pytest.mark.parametrize(("terminal", "lines"), [(True, ["a: 1/2", "a: 2/2"]), (False, ["a: 2/2"])])
def test_points_are_counted_on_a_terminal_and_their_end_is_told_anywhere(
    monkeypatch, capsys, terminal, lines
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    for done in (1, 2):
        sweeping._report("a", done, 2)
    assert capsys.readouterr().err.splitlines() == lines
