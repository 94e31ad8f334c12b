"""Files of results, opened by plain xarray: coordinates to select by, words, units, provenance."""

import json
from pathlib import Path

import pytest
import xarray as xr
import yaml

from sims.errors import InputError
from sims.study import run as run_experiment
from sims.study.describing import Words, described, read_variables, words
from tests.cli.small import EXPERIMENT, run

FACTS = ("title", "experiment", "fidelity", "road", "fingerprint", "versions", "device",
         "precision", "seed", "replicates_asked", "replicates_done")  # fmt: skip
OWN = """
from jax import random

from sims.montecarlo import Replicates
from sims.study.units import SampledUnit


def draw(key, scale, batch):
    return {"length": scale * abs(random.normal(key)), "sizes": random.normal(key, (3,))}


def units(experiment):
    labels = {"dims": {"sizes": "size"}, "coords": {"size": [1, 2, 4]}}
    return {
        f"scale {s}": SampledUnit(Replicates(draw, constants=s, **labels), {"scale": s})
        for s in (0.5, 1.0, 2.0)
    }
"""
PREDICT = """
import xarray as xr


def predict(experiment):
    return {f"scale {s}": xr.Dataset({"length": 0.8 * s}) for s in (0.5, 1.0, 2.0)}
"""
VARIABLES = {
    "length": {"long_name": "length of a step", "units": "m"},
    "sizes": "sizes of a step",
    "size": "place of a size",
    "scale": {"long_name": "scale of a step", "units": "m"},
}


def opened(path):
    """The file as any program opens it, after a look at what every file of results says."""
    with xr.open_dataset(path) as data:
        data.load()
    for name in data.variables:
        assert {"long_name", "units"} <= data[name].attrs.keys(), (path, name)
        assert data[name].attrs["long_name"].strip(), (path, name)
    for fact in FACTS:
        assert data.attrs[fact], (path, fact)
    assert {"jax", "numpy", "sims"} <= {
        pair.split()[0] for pair in data.attrs["versions"].split(", ")
    }
    json.loads(data.attrs["provenance"])
    return data


@pytest.fixture
def angles(folder):
    """A run of the small experiment at four angles and two kernels, in memory."""
    grid = [{"heads.frames.angle": [0, 30, 60, 90], "heads.kernel": ["gaussian", "softmax"]}]
    spec = EXPERIMENT | {"grid": grid}
    (folder / "experiments/small/experiment.yaml").write_text(yaml.safe_dump(spec))
    return run_experiment("small", "smoke", figure=False)


def test_both_roads_of_an_experiment_select_by_its_coordinates(angles):
    for road in ("simulation", "theory"):
        data = opened(angles.folder / f"{road}.nc")
        chosen = data.sel(angle=60)
        assert sorted(chosen["kernel"].values) == ["gaussian", "softmax"]
        assert chosen["point"].values.tolist() == ["0004", "0005"]
        one = data.set_xindex("kernel").sel(kernel="softmax")
        assert one["angle"].values.tolist() == [0, 30, 60, 90]
        assert data["angle"].attrs["long_name"] == "principal angle of two heads"
        assert data["angle"].attrs["units"] == "degree"
        assert data["angle"].attrs["path"] == "heads.frames.angle"
        assert data["mse"].attrs["units"] == data["signal_variance"].attrs["units"]
        assert data.attrs["experiment"] == "small"
        assert data.attrs["road"] == road
        xr.testing.assert_identical(data, getattr(angles.results, road).load())
    simulated, predicted = angles.results.simulation, angles.results.theory
    gap = simulated["mse"].mean("batch") - predicted["mse"].sel(order="first")
    assert gap.dims == ("angle",)
    assert simulated.attrs["replicates_asked"] == simulated.attrs["replicates_done"] == "32"
    assert (simulated.attrs["seed"], predicted.attrs["seed"]) == ("0", "none")
    assert simulated.attrs["precision"] == "float64"
    assert simulated["mse_mcse"].attrs["long_name"].endswith("Monte Carlo standard error")
    point = angles.results.estimates["0004"]
    assert point["mse"].attrs == simulated["mse"].attrs


def test_an_experiment_off_the_standard_road_says_what_its_variables_are(folder):
    home = folder / "experiments/small"
    spec = EXPERIMENT | {"problem": None, "grid": [{}]}
    (home / "experiment.yaml").write_text(yaml.safe_dump(spec))
    (home / "simulate.py").write_text(OWN)
    (home / "predict.py").write_text(PREDICT)
    (home / "variables.yaml").write_text(yaml.safe_dump(VARIABLES))
    for step in ("simulate", "predict"):
        assert run(step, "small", "--fidelity", "smoke") == 0
    data = opened("results/smoke/small/simulation.nc")
    assert data.sel(scale=2.0)["sizes"].dims == ("batch", "size")
    for name in ("length", "scale"):
        assert data[name].attrs["long_name"] == VARIABLES[name]["long_name"]
        assert data[name].attrs["units"] == "m"
    assert data["length_mcse"].attrs["long_name"].startswith("length of a step, Monte Carlo")
    assert data["length_mcse"].attrs["units"] == "m"
    assert data["sizes"].attrs["units"] == "1"
    theory = opened("results/smoke/small/theory.nc").sel(scale=2.0)
    assert float(theory["length"]) == 1.6
    assert theory["length"].attrs["units"] == "m"


def test_sweeps_and_single_problems_select_by_their_fields(folder):
    assert run("sweep", "spec.yaml", "--set", "heads.frames.angle=30,60", "--set", "n=16,64") == 0
    data = opened("results/sweeps/spec.nc")
    assert data.sel(angle=60, n=16)["mse"].shape == ()
    assert data["mse_theory"].attrs["long_name"] == "MSE of the ensemble, theory"
    assert data["angle"].attrs["long_name"] == "principal angle of two heads"
    assert data["angle"].attrs["units"] == "degree"
    assert run("decompose", "spec.yaml", "--output", "one.nc") == 0
    alone = opened("one.nc")
    assert alone["mse_mcse"].attrs["units"] == "squared unit of Y"
    assert float(alone["mse"]) > 0
    assert alone.attrs["seed"] == "0"
    assert alone.attrs["replicates_done"] == "32"
    assert run("decompose", "spec.yaml", "--output", "one.txt") == 2


def test_words_are_put_together_of_those_of_the_parts():
    own = {"gap": Words("gap of a head", "m")}
    assert words("integrated_signal_covariance_mcse", {}) == Words(
        "signal covariance of two heads, averaged over queries, Monte Carlo standard error",
        "squared unit of Y",
    )
    assert words("each_gap_error", own) == Words(
        "gap of a head, of every problem, bound on its error", "m"
    )
    assert words("error", {}) is None
    data = described(xr.Dataset({"an_own": 1.0}))
    assert data["an_own"].attrs == {"long_name": "an own", "units": "1"}


def test_a_mistake_in_the_words_is_one_line(tmp_path):
    (tmp_path / "variables.yaml").write_text("gap: {long_nme: gap}\n")
    with pytest.raises(InputError, match="long_nme"):
        read_variables(tmp_path)


@pytest.mark.parametrize("path", sorted(Path("experiments").glob("*/variables.yaml")), ids=str)
def test_the_words_of_the_suites_own_experiments_can_be_read(path):
    own = read_variables(path.parent)
    assert own
    for name, said in own.items():
        assert name.replace("_", " ") != said.long_name, "the name itself says nothing"
