"""Worker processes: they share the points, change no number, and nothing depends on them."""

import os
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

import pytest
import xarray as xr
import yaml

from sims.errors import InputError
from sims.montecarlo import HostReplicates
from sims.study import runner
from sims.study.experiment import load_experiment
from sims.study.simulating import Simulation
from sims.study.units import GridUnit, SampledUnit
from sims.study.workers import Crew, Worker
from tests.cli.small import EFFECTS, EXPERIMENT

SIMULATE = """
import os
import time
from collections import deque
from pathlib import Path
from functools import partial
from pathlib import Path

import jax

from sims.errors import InputError
from sims.montecarlo import HostBatches, HostReplicates, Replicates
from sims.study.units import SampledUnit

WHO = str(Path(__file__).parent / "who")


def one(place, draw, shared, batch):
    with open(WHO, "a") as file:
        file.write(f"{place} {os.getpid()}\\n")
    act(place)
    return {"x": draw.rng().normal(size=2)}


def all_of_them(place, draw, replicates, shared):
    first = one(place, draw, shared, None)["x"]
    return {"x": first + draw.rng().normal(size=(replicates, 2)).mean(0)}


def traced(key, shared, batch):
    return {"x": jax.random.normal(key, (2,))}


def others():
    return {line.split()[1] for line in open(WHO).read().splitlines()} - {str(os.getpid())}


def act(place):
    ACT


def units(experiment):
    found = {"jax": Replicates(traced, dims={"x": "side"})}
    for k in range(4):
        sampler = HostReplicates(partial(one, k), dims={"x": "side"})
        if k % 2:
            sampler = HostBatches(partial(all_of_them, k), dims={"x": "side"})
        found[f"host {k}"] = sampler
    return {name: SampledUnit(s, stream=(k,)) for k, (name, s) in enumerate(found.items())}
"""
MEET = """
    until = time.monotonic() + 20
    while not others() and time.monotonic() < until:
        time.sleep(0.01)
    assert others(), "nobody else came"
    time.sleep(0.05)
"""
"""Each process waits until another has begun a point: only two can get on."""
PREDICT = """
import os
from pathlib import Path

from sims.errors import InputError
from sims.study.roads import predict_terms


def predict(experiment):
    with Path(__file__).with_name("who").open("a") as file:
        file.write(f"theory {os.getpid()}\\n")
    ACT
    return {point.name: predict_terms(point.spec.build(), experiment.theory)
            for point in experiment.points}
"""


@pytest.fixture
def make(tmp_path):
    """``make(act)``: an experiment whose points on one core do that at every replicate."""

    def made(act):
        folder = tmp_path / "own"
        folder.mkdir(exist_ok=True)
        size = {"batches": 4, "replicates_per_batch": 4}
        spec = EXPERIMENT | {"problem": None, "simulation": size}
        del spec["grid"]
        (folder / "simulate.py").write_text(SIMULATE.replace("ACT", act.strip()))
        (folder / "experiment.yaml").write_text(yaml.safe_dump(spec))
        return load_experiment(folder, "smoke")

    return made


def wait_for(condition):
    """Until it holds: twenty seconds are more than it takes beside other work."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.02)


def processes(experiment):
    """By the place of a point, the processes that worked at it."""
    found = {}
    for line in (experiment.folder / "who").read_text().splitlines():
        place, number = line.split()
        found.setdefault(place, set()).add(int(number))
    return found


def simulated(experiment, output, count, predicting=False):
    with Crew(experiment, output, count, predicting) as crew:
        runner.simulate(
            experiment, output, crew=crew,
            predicted=lambda wait: crew.predicted(lambda: 1 / 0, wait) if predicting else None,
        )  # fmt: skip
    with xr.open_dataset(output, engine="h5netcdf") as data:
        return data.load()


def test_two_processes_share_the_points_and_change_no_number(make, tmp_path):
    alone = simulated(make("pass"), tmp_path / "alone" / "simulation.nc", 1)
    assert set.union(*processes(make("pass")).values()) == {os.getpid()}
    (tmp_path / "own" / "who").unlink()
    meeting = make(MEET)
    shared = simulated(meeting, tmp_path / "shared" / "simulation.nc", 2)
    found = processes(meeting)
    assert len(found) == 4
    assert all(len(who) == 1 for who in found.values())
    assert len(set.union(*found.values())) == 2
    assert list(shared.data_vars) == list(alone.data_vars)
    for name, values in alone.data_vars.items():
        xr.testing.assert_equal(shared[name], values)


def test_what_a_worker_fails_at_the_run_computes(make, tmp_path, capfd):
    """A worker that dies, and one that meets an exception, in the middle of a point."""
    home = f"if os.getpid() == {os.getpid()}: {{}}\n    else: {{}}"
    wait = "[time.sleep(0.01) for _ in range(6000) if not others()]"
    for trouble in ("os._exit(3)", "raise InputError('x', 'y', 'z')"):
        experiment = make(home.format(wait, trouble))
        simulated(experiment, tmp_path / trouble[:5] / "simulation.nc", 2)
        found = processes(experiment)
        assert all(os.getpid() in who for who in found.values())
        assert len(set.union(*found.values())) == 3
        (tmp_path / "own" / "who").unlink()
    assert "rror" not in capfd.readouterr().err  # what is wrong with a point, the run says


@pytest.fixture
def both_roads(tmp_path, monkeypatch):
    """``both_roads(act, count)``: a run of points that JAX traces, in which theory does that.

    The run's own process simulates nothing before somebody has begun to predict.
    """
    begun = Simulation.begun

    def late(run, name):
        wait_for((tmp_path / "own" / "who").exists)
        return begun(run, name)

    def ran(act, count):
        folder = tmp_path / "own"
        folder.mkdir()
        (folder / "effects.py").write_text(EFFECTS)
        (folder / "predict.py").write_text(PREDICT.replace("ACT", act))
        (folder / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
        if count > 1:
            monkeypatch.setattr(Simulation, "begun", late)
        out = runner.run(folder, "smoke", folder=tmp_path / "out", figure=False, processes=count)
        return out.results.predictions, processes(out.experiment)["theory"]

    return ran


def test_theory_and_simulation_run_side_by_side_and_change_no_number(both_roads, tmp_path):
    alone, by = both_roads("pass", 1)
    assert by == {os.getpid()}
    (tmp_path / "own").rename(tmp_path / "before")
    (tmp_path / "out").rename(tmp_path / "out before")
    beside, by = both_roads("pass", 2)
    assert len(by) == 1
    assert os.getpid() not in by
    for name, values in alone.items():
        xr.testing.assert_identical(values, beside[name])


def test_what_a_worker_fails_to_predict_the_run_predicts(both_roads):
    _, by = both_roads(f"if os.getpid() != {os.getpid()}: os._exit(3)", 2)
    assert os.getpid() in by
    assert len(by) == 2


def test_an_error_of_theory_is_the_runs_own(both_roads):
    with pytest.raises(InputError, match="x: got 'y'"):
        both_roads("raise InputError('x', 'y', 'z')", 2)


def test_an_error_is_the_runs_own(make, tmp_path):
    experiment = make("raise InputError('x', 'y', 'z')")
    with pytest.raises(InputError, match=r"host 0.*x: got 'y'"):
        simulated(experiment, tmp_path / "simulation.nc", 2)


def test_a_worker_that_is_closed_keeps_its_batches(make, tmp_path):
    """As when the run is interrupted; the point goes on at the batch where it was."""
    experiment = make("time.sleep(0.05)")
    output = tmp_path / "simulation.nc"
    worker, left = Worker(experiment, output), deque(["host 0"])
    thread = threading.Thread(target=worker.serve, args=(left, set()))
    thread.start()
    who = experiment.folder / "who"
    wait_for(lambda: who.exists() and len(who.read_text().splitlines()) > 4)
    worker.close()
    thread.join(60)
    assert worker.process.poll() == 0
    run = Simulation(experiment, output)
    groups = list((run.shelf.batches(run.units["host 0"]).folder).glob("*.npz"))
    assert groups
    run.begun("host 0")
    assert len(who.read_text().splitlines()) < 16 + 5  # a batch of four was begun twice


def test_no_worker_outlives_its_run(make, tmp_path):
    """A run that is killed, without a word to anybody, while its worker computes."""
    if not Path("/proc/self").exists():
        pytest.skip("processes are looked up in /proc")
    experiment = make("time.sleep(0.2)")
    code = (
        "from collections import deque\n"
        "from pathlib import Path\n"
        "from sims.study.experiment import load_experiment\n"
        "from sims.study.workers import Worker\n"
        f"experiment = load_experiment({str(experiment.folder)!r}, 'smoke')\n"
        "worker = Worker(experiment, Path('simulation.nc'))\n"
        "print(worker.process.pid, flush=True); worker.serve(deque(['host 0', 'host 2']), set())"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE,
                          env=os.environ | {"PYTHONPATH": os.getcwd()}) as process:  # fmt: skip
        number = int(process.stdout.readline())
        who = experiment.folder / "who"
        wait_for(who.exists)
        process.kill()
    wait_for(lambda: not Path(f"/proc/{number}/cmdline").exists())


def test_what_runs_on_one_core(make):
    units = Simulation(make("pass"), make("pass").folder / "simulation.nc").units
    assert [unit.on_one_core for unit in units.values()] == [False, True, True, True, True]
    grid = load_experiment("head_count", "smoke")
    found = {GridUnit(p).on_one_core: p.population is not None for p in grid.points}
    assert found == {True: True, False: False}
    spread = HostReplicates(lambda draw, shared, batch: {"x": 1.0}, n_jobs=2)
    assert not SampledUnit(spread).on_one_core


def test_a_run_has_no_more_processes_than_it_was_given(make, tmp_path):
    """Of two, one is a helper while the run computes what takes all devices, and two are then."""
    with Crew(make("pass"), tmp_path / "simulation.nc", 2, predicting=True) as crew:
        assert len(crew._helpers) == 1
        assert crew._predictor is None
        seen = []
        crew.join(seen.append, lambda: seen.append(len(crew._helpers)))
        assert (seen[0], set(seen[1:])) == ("jax", {2})


def test_a_helper_has_one_device_and_one_thread(make, tmp_path):
    """And predicts first, once; the run waits for that where it has to."""
    act = "assert (os.environ['NPROC'], os.environ['SIMS_HOST_DEVICES']) == ('1', '1')"
    experiment = make(f"if os.getpid() != {os.getpid()}: {act}")
    (experiment.folder / "predict.py").write_text(PREDICT.replace("ACT", act))
    simulated(experiment, tmp_path / "simulation.nc", 2, predicting=True)
    found = processes(experiment)
    assert not any(os.getpid() in who for who in found.values())
    assert len(found["theory"]) == 1
    first = (experiment.folder / "who").read_text().splitlines()[0]
    assert first.startswith("theory")
