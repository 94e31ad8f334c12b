"""Step ``simulate``: estimates of an experiment's units, here and in processes beside.

Finished units are kept in ``.points`` next to the results, so that an interrupted run resumes.
Numbers do not depend on the process that computed them.
"""

import os
import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import xarray as xr

from sims.steps.predict import predict
from sims.study.code import record_imports
from sims.study.running import Run
from sims.study.stored import write_method
from sims.study.units import DRAWN, Simulation, experiment_simulation, units_of

ONE_CORE = {"NPROC": "1", "SIMS_HOST_DEVICES": "1"}
"""Environment of a process that keeps one core busy: threads and devices that JAX starts there."""


def simulate(
    run: Run,
    output: Path,
    progress: bool = False,
    processes: int = 1,
    part: tuple[int, int] = (1, 1),
    predicting: bool = False,
) -> None:
    """Estimate every unit of an experiment, and write them into one file.

    Args:
        run: the run.
        output: the file; finished units, and batches of unfinished ones, are kept in ``.points``
            next to it.
        progress: show progress on stderr.
        processes: number of processes for units of plain Python.
        part: (i, N): the i-th of N parts of the units; they are kept, and the file is written by
            a call for all, (1, 1).
        predicting: whether another process also computes theory.

    Raises:
        InputError: a problem cannot be built or simulated; the line names the unit.
    """
    if run.fidelity != "smoke":
        _compile_sums()
    before = {*sys.modules}
    study = run.study
    study.keep_draws(output.parent)
    units = units_of(run)
    simulation = experiment_simulation(run, units, output, progress)
    names = simulation.part(*part)
    kept = {name for name in names if simulation.path(name).exists()}
    on_one_core = {name for name in names if units[name].on_one_core}
    plan = schedule(names, kept, on_one_core, processes, predicting)
    computed, has_predicted = _compute(run, simulation, plan, output.absolute())
    # Units whose process failed are computed here, so that their error is raised here.
    estimates = {name: computed.get(name) or simulation.batches_of(name) for name in names}
    print(f"{run.name}: simulation {len(names)}/{len(units)}", file=sys.stderr)
    if predicting and not has_predicted:
        predict(run, output.with_name("theory.nc"))
    if part != (1, 1):
        return
    coordinates = {name: unit.coordinates for name, unit in units.items()}
    # Of those that their processes drew; the others are drawn here.
    digests = {name: str(data.attrs.get(DRAWN, "")) for name, data in estimates.items()}
    if not all(digests.values()):
        digests = study.problem_digests()
    write_method(run, "simulation", estimates, coordinates, digests, output)
    record_imports("simulate", study.declared, output.parent, before)


def _compile_sums() -> None:
    """Compile the native sums of the engine, which is worth it in a long run only."""
    import jax

    from sims.problem.kernels import GAUSSIAN
    from sims.simulation.native import LEAST_WORK, usable

    usable(GAUSSIAN, jax.default_backend(), LEAST_WORK)


def _compute(
    run: Run, simulation: Simulation, plan: "Schedule", output: Path
) -> tuple[dict[str, xr.Dataset], bool]:
    """Compute and keep units, here and in separate processes.

    A process that fails leaves its unit to the next request.

    Returns:
        The batches of units that were computed here, and whether a process has predicted.
    """
    from joblib import Parallel, delayed

    calls = []
    environment = ONE_CORE if plan.apart else {}
    for name in [None] * plan.predicts_apart + plan.apart:
        calls.append(delayed(_worker)(environment, run, output, name))
    finished = set[str | None]()
    run_apart = Parallel(plan.processes, batch_size=1, return_as="generator_unordered")
    with closing(run_apart(calls)) as work:
        estimates = {name: simulation.batches_of(name) for name in plan.here}
        with suppress(Exception):
            finished.update(work)
    return estimates, None in finished


class Schedule(NamedTuple):
    """Assignment of the units of a simulation to processes.

    Attributes:
        here: names of units that this process computes or finds finished, in order.
        apart: names of units that processes with one core each compute.
        predicts_apart: whether another process computes theory meanwhile.
        processes: number of other processes at a time.
    """

    here: list[str]
    apart: list[str]
    predicts_apart: bool
    processes: int


def schedule(
    names: Sequence[str],
    kept: Set[str],
    on_one_core: Set[str],
    processes: int,
    predicting: bool,
) -> Schedule:
    """Schedule of the requested units.

    Args:
        names: names of the units, in order.
        kept: names of units that an earlier run finished.
        on_one_core: names of units of plain Python, which gain from separate processes.
        processes: maximum number at a time; with one, this process computes everything.
        predicting: whether theory is requested, too.
    """
    unfinished = [name for name in names if name not in kept]
    apart = []
    if processes > 1:
        apart = [name for name in unfinished if name in on_one_core]
    here = [name for name in names if name not in apart]
    busy_here = len(unfinished) > len(apart)
    count = processes - busy_here if apart else 1
    return Schedule(here, apart, predicting and processes > 1 and bool(unfinished), count)


def _worker(environment: Mapping[str, str], run: Run, output: Path, name: str | None) -> str | None:
    """Compute and save a unit of an experiment, or theory, in a separate process."""
    from threadpoolctl import threadpool_limits

    os.environ.update(environment)  # before anything sets up JAX
    with threadpool_limits(1):
        if name is None:
            predict(run, output.with_name("theory.nc"))
        else:
            run.study.keep_draws(output.parent)
            unit = run.study.unit(name)
            experiment_simulation(run, {name: unit}, output).batches_of(name)
    return name
