"""Results in memory and on disk: what is written comes back, with coordinates to select by."""

import json

import numpy as np
import pytest
import xarray as xr

from sims.base.errors import InputError
from sims.base.identity import rounded_digest
from sims.study.results import Results, assembled, read, write
from sims.study.stacking import short_names, stack, unstack


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


COORDINATES = {
    f"{i:04d}": {"heads.frames.angle": 30 * i, "heads.kernel": "gaussian", "target.kind": None}
    for i in range(6)
}
POINTS = {name: _dataset(4 + 4 * (i % 2), 2 + i // 3) for i, name in enumerate(COORDINATES)}


def test_result_files_round_trip(tmp_path):
    origin = {"method": "simulation", "x": None}
    write(assembled(POINTS, COORDINATES, origin), tmp_path / "a" / "r.nc", "r")
    data = read(tmp_path / "a" / "r.nc", "r")
    assert json.loads(data.attrs["provenance"]) == origin
    for name, dataset in unstack(data).items():
        xr.testing.assert_equal(dataset, POINTS[name])
        assert dataset.attrs == POINTS[name].attrs
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["r.nc"]  # nothing temporary is left


def test_files_open_as_labelled_data(tmp_path):
    write(assembled(POINTS, COORDINATES, {}), tmp_path / "r.nc", "r")
    with xr.open_dataset(tmp_path / "r.nc") as data:
        chosen = data.sel(angle=60)
        np.testing.assert_array_equal(chosen["mse"].values[:4], POINTS["0002"]["mse"].values)
        assert np.isnan(chosen["mse"].values[4:]).all()  # padded to the longest point
        assert list(data["kernel"].values) == ["gaussian"] * 6


def test_the_points_lie_along_the_coordinate_with_the_longest_line():
    """Whatever takes more values while something else changes, too, does not count."""
    at = {
        "a": {"n": 1, "angle": 0, "label": "p"},
        "b": {"n": 1, "angle": 60, "label": "q"},
        "c": {"n": 1, "angle": 0, "label": "r"},
        "d": {"n": 2, "angle": 60, "label": "q"},
        "e": {"n": 3, "angle": 60, "label": "q"},
        "f": {"n": None, "angle": 60, "label": "s"},
    }
    points = {name: xr.Dataset({"v": float(i)}) for i, name in enumerate(at)}
    stacked = stack(points, at)
    assert stacked["v"].dims == ("n",)
    assert stacked.sel(n=1)["v"].values.tolist() == [0.0, 1.0, 2.0]
    assert stacked.set_xindex("label").sel(label="q")["v"].values.tolist() == [1.0, 3.0, 4.0]
    assert list(unstack(stacked)) == list(points)
    assert stack(points, {}).sel(point="c")["v"] == 2.0


LAYERS = xr.Dataset({"layer": ("batch", [1.0, 2.0])})
SHORT = xr.Dataset({"v": ("layer", [3.0])})


@pytest.mark.parametrize(
    ("first", "name"), [(LAYERS, "layer_value"), (xr.Dataset({"t": "x", "n": 3}), "t")]
)
def test_missing_variables_text_and_names_of_dimensions_come_back(first, name):
    points = {"a": first, "b": SHORT}
    stacked = stack(points, {})
    assert stacked[name].dims == ("point", *first[name.partition("_")[0]].dims)
    for point, dataset in unstack(stacked).items():
        xr.testing.assert_equal(dataset, points[point])


def test_padding_takes_no_room_on_the_disk(tmp_path):
    long, short = (xr.Dataset({"v": ("k", np.arange(n) / 7)}) for n in (200_000, 2))
    points = {"a": long, **dict.fromkeys("bcdefghij", short)}
    write(assembled(points, {}, {}), tmp_path / "r", "r")
    assert (tmp_path / "r").stat().st_size < 3 * long["v"].nbytes


def test_coordinates_that_are_missing():
    """A number that a point does not have is NaN, a text is empty."""
    at = {"a": {"angle": 0.5, "kernel": "softmax"}, "b": {"angle": None}, "c": {"angle": 2}}
    points = dict(zip(at, POINTS.values(), strict=False))
    stacked = stack(points, at)
    np.testing.assert_array_equal(stacked["angle"].values, [0.5, np.nan, 2.0])
    assert stacked["kernel"].values.tolist() == ["softmax", "", ""]


def test_short_names_are_unambiguous():
    paths = ["heads.frames.angle", "heads.count", "queries.count", "target.kind", "n"]
    assert short_names(paths, {"n"}) == {
        "heads.frames.angle": "angle",
        "heads.count": "heads_count",
        "queries.count": "queries_count",
        "target.kind": "target_kind",
        "n": "n_value",
    }


def test_a_variable_has_the_same_dimensions_at_all_points():
    one, other = xr.Dataset({"v": ("a", [1.0])}), xr.Dataset({"v": ("b", [1.0])})
    with pytest.raises(InputError, match="variable v"):
        stack({"one": one, "other": other}, {})
    first, second = (xr.Dataset(coords={"a": [x, 2.0]}) for x in (0.0, 1.0))
    with pytest.raises(InputError, match="coordinate a"):
        stack({"one": first, "other": second}, {})
    with pytest.raises(InputError, match=r"variable v: got .*; allowed: other names"):
        stack({"one": xr.Dataset({"v": ("point", [1.0])})}, {})


def test_both_methods_are_of_the_same_problems(tmp_path):
    """In law and settings, and in what was solved for each: a file of other problems is refused."""
    first = next(iter(POINTS))
    for method, problem, noise in (
        ("simulation", "p", 4.72),
        ("theory", "p", 4.72 * (1 + 1e-14)),
        ("theory", "q", 4.72),
        ("theory", "p", 9.44),
    ):
        origin = {"experiment": "e", "fidelity": "smoke", "problem": problem}
        origin["problems"] = {first: rounded_digest({"noise": noise, "x": np.full(3, noise)})}
        data = assembled(POINTS, COORDINATES, origin)
        write(data, tmp_path / f"{method}.nc", f"{method}.nc of e at smoke")
        if method == "theory" and problem == "p" and noise < 5:
            results = Results.load(tmp_path, "e at smoke")
            assert list(results.estimates) == list(results.predictions) == list(results.coordinates)
            assert results.coordinates == COORDINATES
        elif method == "theory":
            got = "problem q" if problem == "q" else f"problem {first}, "
            with pytest.raises(InputError, match=rf"theory\.nc: got '{got}.*the problem of"):
                Results.load(tmp_path, "e at smoke")
