"""Shards of experiments: whatever their number, order and accidents, the numbers are the same."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
import yaml

from sims.errors import InputError
from sims.montecarlo import supply
from sims.study import predicting, runner, turns
from sims.study.contract import contract
from sims.study.experiment import load_experiment
from sims.study.shards import Load, Shard, assigned
from tests.cli.small import EXPERIMENT

SIMULATE = """
import jax

from sims.montecarlo import HostBatches, HostReplicates, Replicates
from sims.study.units import SampledUnit


def pilot(draw):
    return draw.rng().normal(size=2)


def one(draw, shared, batch):
    return {"x": draw.rng().normal(size=2) * shared}


def all_of_them(draw, replicates, shared):
    return {"x": draw.rng().normal(size=(replicates, 2)).mean(0) * shared}


def traced_pilot(key):
    return jax.random.normal(key, (2,))


def traced(key, shared, batch):
    return {"x": jax.random.normal(key, (2,)) * shared}


def units(experiment):
    shape = {"dims": {"x": "side"}}
    samplers = {
        "replicates": HostReplicates(one, prepare=pilot, **shape),
        "batches": HostBatches(all_of_them, prepare=pilot, **shape),
        "jax": Replicates(traced, prepare=traced_pilot, **shape),
    }
    return {name: SampledUnit(sampler, stream=(k,)) for k, (name, sampler) in
            enumerate(samplers.items())}
"""
SIMULATION = {"replicates_per_batch": 4, "batches": 6, "precision": "float64"}


class Killed(BaseException):
    pass


@pytest.fixture(params=["grid", "samplers"])
def experiment(request, tmp_path):
    """Point samplers with a pilot, or the driver's three samplers with theirs."""
    folder = tmp_path / request.param
    folder.mkdir()
    spec = EXPERIMENT | {"simulation": SIMULATION | {"control_variate": True}}
    spec["grid"] = [{"heads.bandwidth": [0.7, 0.9]}, {"n": [32]}]
    if request.param == "samplers":
        spec = {k: v for k, v in spec.items() if k != "grid"}
        spec |= {"problem": None, "simulation": SIMULATION}
        (folder / "simulate.py").write_text(SIMULATE)
    (folder / "experiment.yaml").write_text(yaml.safe_dump(spec))
    return load_experiment(folder, "smoke")


@pytest.fixture
def sabotage(monkeypatch):
    """``sabotage(k)``: the k-th round of batches from now on is not survived; None is none."""
    real, left = supply.Supply._compute, [None]

    def compute(self, number):
        if left[0] is not None:
            if left[0] == 0:
                left[0] = None
                raise Killed
            left[0] -= 1
        real(self, number)

    def arm(rounds):
        left[0] = rounds

    monkeypatch.setattr(supply.Supply, "_compute", compute)
    monkeypatch.setenv("SIMS_CHECKPOINT_SECONDS", "0")
    return arm


def _values(path):
    with xr.open_dataset(path, engine="h5netcdf") as data:
        return data.load()


def test_shards_killed_and_gathered_in_random_order_are_the_whole(experiment, tmp_path, sabotage):
    runner.simulate(experiment, tmp_path / "whole" / "simulation.nc")
    quiet = _values(tmp_path / "whole" / "simulation.nc")
    rng = np.random.default_rng(7)
    for count in (1, 3, 7):
        output = tmp_path / str(count) / "simulation.nc"
        order = rng.permutation(count) + 1
        for index in order[:-1]:
            with pytest.raises(InputError, match="got 'nothing from batch"):
                runner.simulate(experiment, output, closed=True)
            _survived(experiment, output, Shard(int(index), count), sabotage, rng)
        _survived(experiment, output, Shard(int(order[-1]), count), sabotage, rng)
        runner.simulate(experiment, output, closed=True)
        gathered = _values(output)
        for name, values in quiet.data_vars.items():
            np.testing.assert_allclose(gathered[name], values, rtol=1e-12, atol=0, err_msg=name)
        assert not [p for p in (output.parent / ".points").iterdir() if p.is_dir()]


def _survived(experiment, output, shard, sabotage, rng):
    """Killed once on its way, and started again."""
    sabotage(int(rng.integers(3)))
    try:
        runner.simulate_shard(experiment, output, shard)
    except Killed:
        runner.simulate_shard(experiment, output, shard)
    finally:
        sabotage(None)
    assert (output.parent / "shards" / f"{shard.index}-of-{shard.count}.json").is_file()


def test_a_killed_run_begins_where_it_was(experiment, tmp_path, sabotage, monkeypatch):
    """Not one batch that was saved is computed again, and the file is the same to the bit."""
    runner.simulate(experiment, tmp_path / "whole" / "simulation.nc")
    computed, compute = [], supply.Supply._compute

    def noted(self, number):
        compute(self, number)
        computed.append((self.problem, number))

    monkeypatch.setattr(supply.Supply, "_compute", noted)
    output = tmp_path / "killed" / "simulation.nc"
    for rounds in (1, 2, 0, 4):
        sabotage(rounds)
        with pytest.raises(Killed):
            runner.simulate(experiment, output)
    runner.simulate(experiment, output)
    assert len(computed) == len(set(computed))
    xr.testing.assert_identical(_values(output), _values(tmp_path / "whole" / "simulation.nc"))


def test_runs_that_share_a_folder_leave_one_another_alone(experiment, tmp_path, sabotage):
    """Other seeds and other fidelities; what is stale of one's own is removed."""
    output, others = tmp_path / "out" / "simulation.nc", []
    folder = experiment.folder
    for offset, fidelity in ((1, "smoke"), (0, "standard")):
        sabotage(2)
        with pytest.raises(Killed):
            runner.simulate(load_experiment(folder, fidelity, offset), output)
        others = _files(output)
    stale = output.parent / ".points" / others[0].name
    stale = stale.with_name(f"0-simulation-{_owner(experiment, output)}-0123456789abcdef.npz")
    stale.write_bytes(b"")
    runner.simulate(experiment, output)
    assert set(others) <= set(_files(output))
    assert not stale.exists()


def _files(output):
    return [p for p in (output.parent / ".points").rglob("*.npz") if p.is_file()]


def _owner(experiment, output):
    from sims.study.shelf import Shelf

    return Shelf.of(experiment, output).owner


def test_a_result_has_the_contract_under_which_its_batches_began(experiment, tmp_path, sabotage):
    """Margins edited between a kill and what goes on after it show."""
    output = tmp_path / "out" / "simulation.nc"
    began = contract(experiment)
    sabotage(2)
    with pytest.raises(Killed):
        runner.simulate(experiment, output)
    file = experiment.folder / "experiment.yaml"
    file.write_text(file.read_text().replace("margin: 0.5", "margin: 0.6"))
    edited = load_experiment(experiment.folder, "smoke")
    assert contract(edited) != began
    runner.simulate(edited, output)
    assert json.loads(_values(output).attrs["provenance"])["contract"] == began


EFFECTS = """
from sims.effects import of_batches

def effects(results):
    values = {p: results.estimates[p]["mse"].values for p in results.points}
    return {"gaps": [of_batches(p, 40 * (v - v.mean()) + (p == "0000"), p)
                     for p, v in values.items()]}
"""
GROWS = {"decide": "adaptive", "batches": 64, "max_batches": 512, "replicates_per_batch": 2}


def test_turns_of_shards_are_adaptive_sampling(tmp_path, monkeypatch):
    """In at most six turns, and what a turn draws too many changes nothing."""
    folder = tmp_path / "grows"
    folder.mkdir()
    claim = EXPERIMENT["claims"][0] | {"margin": 1.3, "sequential": True, "kind": "simulation"}
    spec = EXPERIMENT | {"simulation": SIMULATION | GROWS, "claims": [claim]}
    (folder / "experiment.yaml").write_text(yaml.safe_dump(spec))
    (folder / "effects.py").write_text(EFFECTS)
    experiment = load_experiment(folder, "smoke")
    whole, output = tmp_path / "whole/simulation.nc", tmp_path / "shards/simulation.nc"
    for path in (whole, output):
        predicting.predict(experiment, path.with_name("theory.nc"))
    runner.simulate(experiment, whole, whole.with_name("theory.nc"))
    quiet = _values(whole)
    assert set(quiet["mse"].notnull().sum("batch").values.tolist()) - {64}  # some went on
    taken = 1
    for turn in range(1, turns.TURNS + 1):
        if turn > 1 and not turns.plan(experiment, output, output.with_name("theory.nc"), turn):
            break
        taken = turn
        for index in (2, 3, 1):
            runner.simulate_shard(experiment, output, Shard(index, 3), turn=turn)
    assert taken > 1
    runner.simulate(experiment, output, output.with_name("theory.nc"), closed=True)
    xr.testing.assert_identical(_values(output).drop_attrs(), quiet.drop_attrs())


def test_the_parts_of_shards_are_a_partition_of_equal_work():
    rng = np.random.default_rng(3)
    for _ in range(50):
        points = {
            str(k): Load(range(int(b), int(b + rng.integers(1, 40))), int(rng.integers(4)), w)
            for k, (b, w) in enumerate(
                zip(rng.integers(0, 9, 6), rng.uniform(0.1, 5, 6), strict=True)
            )
        }
        count = int(rng.integers(1, 12))
        parts = [assigned(points, Shard(i, count)) for i in range(1, count + 1)]
        for name, load in points.items():
            have = [n for part in parts for n in part.get(name, ())]
            assert sorted(have) == list(load.batches)
        work = [sum(points[n].work * len(r) for n, r in part.items()) for part in parts]
        heaviest = max(load.work for load in points.values())
        assert max(work) <= sum(work) / count + 2 * heaviest
        for part in parts:  # the points of a shape are one stretch of the line
            shapes = [points[name].shape for name in part]
            assert len(list(dict.fromkeys(shapes))) == 1 + sum(
                a != b for a, b in itertools.pairwise(shapes)
            )


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/99999", "1/3/5"])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="allowed: i/N"):
        Shard.parse(text)


def test_turns_climb_to_the_most_batches_by_equal_factors(monkeypatch, tmp_path):
    """From 64 to 2048 in five steps, each twice the one before; what needs more has it at once."""
    settings = SimpleNamespace(batches=64, max_batches=2048)
    experiment = SimpleNamespace(simulation=settings, name="e", identity="e")
    monkeypatch.setattr(turns, "Simulation", lambda *_, **__: None)
    monkeypatch.setattr(turns, "_missing", lambda *_: {"few": (64, 72), "many": (64, 1000)})
    for turn in range(2, turns.TURNS + 1):
        parts = turns.plan(experiment, tmp_path / "simulation.nc", tmp_path / "theory.nc", turn)
        rung = 64 * 2 ** (turn - 1)
        assert [first for first, _ in parts.values()] == [64, 64]
        few, many = (last for _, last in parts.values())
        assert rung <= few <= rung + 8  # a multiple of 8
        assert many == max(few, 1000)
