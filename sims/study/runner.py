"""The owner of a run: every step of an experiment as a plain call, from Python or the command line.

Finished points are kept in ``.points`` beside the results, so that an interrupted run goes on, and
a changed grid computes what is new. Numbers do not depend on who computed them.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from sims import files, provenance, store
from sims.errors import InputError
from sims.identity import digest
from sims.judgement import Verdict, read_ledger, write_verdicts
from sims.study import code
from sims.study.adaptive import sample_until_decided
from sims.study.describing import read_variables
from sims.study.experiment import Experiment, Point, load_experiment
from sims.study.judging import effects_of
from sims.study.judging import judge as verdicts_of
from sims.study.ledger import claims_by_paper
from sims.study.results import Coordinates, Results, assembled, read, write
from sims.study.stacking import unstack

ONE_CORE = {"NPROC": "1", "SIMS_HOST_DEVICES": "1"}
"""Environment of a process that keeps one core busy: threads and devices that JAX starts there."""


@dataclass(frozen=True)
class Outcome:
    """What a run of one experiment came to.

    Attributes:
        experiment: it, at its fidelity.
        results: both roads.
        verdicts: one a claim, by themselves: Holm's adjustment is the ledger's.
        folder: where simulation.nc, theory.nc, verdicts.json, figures and caption.md lie.
    """

    experiment: Experiment
    results: Results
    verdicts: list[Verdict]
    folder: Path

    def __repr__(self) -> str:
        counts = Counter(verdict.verdict for verdict in self.verdicts)
        found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"Outcome({self.results!r}, {found}, {str(self.folder)!r})"


def run(
    name: str | Path,
    fidelity: str = "standard",
    *,
    seed_offset: int = 0,
    folder: str | Path | None = None,
    figure: bool = True,
    progress: bool = False,
    processes: int = 1,
    allow_code: bool = False,
) -> Outcome:
    """Run one experiment: both roads, effects, verdicts and figure. Finished points are kept.

    Args:
        name: of the experiment, or its folder.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0, added to the seeds: the same experiment with other draws.
        folder: where results go; None is results/FIDELITY/NAME.
        figure: whether to draw it.
        progress: show progress on stderr.
        processes: to spread points of plain Python over, beside which one predicts.
        allow_code: consent to run the code of a folder outside ``experiments``.

    Raises:
        InputError: the experiment, its file or its modules cannot be used.
    """
    experiment = load_experiment(name, fidelity, seed_offset, allow_code)
    home = Path(folder) if folder is not None else Path("results", fidelity, experiment.name)
    simulate(experiment, home / "simulation.nc", progress, processes, predicting=True)
    verdicts = judge(experiment, home / "verdicts.json")
    if figure:
        plot(experiment, home / "figure.pdf")
    return Outcome(experiment, results_of(experiment, home), verdicts, home)


def predict(experiment: Experiment, output: Path) -> None:
    """Predict every point of an experiment, and write them into one file.

    Args:
        experiment: which one.
        output: the file; finished points are kept in ``.points`` beside it.

    Raises:
        InputError: a problem cannot be built or has no theory; the line names the grid point.
    """
    from sims.runtime import forget_compiled, in_threads
    from sims.study.planning import costs, named
    from sims.study.population import predict_point
    from sims.study.units import units_of

    own, points = experiment.module("predict"), experiment.points
    coordinates: Coordinates = {point.name: point.coordinates for point in points}
    if own is not None:
        with experiment.own_code():
            predictions = own.predict(experiment)
        if experiment.module("simulate") is not None:  # which names the points' coordinates
            units = units_of(experiment)
            coordinates = {**coordinates, **{k: unit.coordinates for k, unit in units.items()}}
        _write_road(experiment, "theory", predictions, coordinates, output)
        return
    if not points:
        raise InputError("problem", None, "a base problem, or a predict.py beside experiment.yaml")
    costs(experiment)
    settings, seed = experiment.theory, experiment.simulation.seed
    drawn = seed if experiment.redraws else None
    made = digest(code.code("predict", experiment.folder), settings.model_dump(), drawn)

    def predicted(point: Point) -> xr.Dataset:
        def compute() -> xr.Dataset:
            forget_compiled()
            with named(point.name, point.coordinates):
                return predict_point(point, settings, seed)

        return store.kept(output.parent / f".points/{point.digest}-theory-{made}.npz", compute)

    predictions = dict(zip(coordinates, in_threads(predicted, points), strict=True))
    _write_road(experiment, "theory", predictions, coordinates, output)
    _say(experiment, f"theory {len(points)}/{len(points)}")


def simulate(
    experiment: Experiment,
    output: Path,
    progress: bool = False,
    processes: int = 1,
    part: tuple[int, int] = (1, 1),
    predicting: bool = False,
) -> None:
    """Estimate every unit of an experiment, and write them into one file.

    Args:
        experiment: which one.
        output: the file; finished units, and batches of unfinished ones, are kept in ``.points``
            beside it, and where sampling goes on until claims are decided theory.nc has to lie.
        progress: show progress on stderr.
        processes: to spread points of plain Python over.
        part: (i, N): the i-th of N parts of the points, each with the batches that every point
            gets; they are kept, and the file is written by a call for all, (1, 1).
        predicting: whether to predict, too, beside the simulation where there are processes.

    Raises:
        InputError: a problem cannot be built or simulated; the line names the grid point.
    """
    from joblib import Parallel, delayed

    from sims.study.planning import costs
    from sims.study.units import Simulation

    costs(experiment)  # an impossible point is reported before hours are spent
    simulation, theory = Simulation(experiment, output, progress), output.with_name("theory.nc")
    units, done = simulation.units, set[str | None]()
    names = list(units)[part[0] - 1 :: part[1]]
    left = [name for name in names if not simulation.path(name).exists()]
    apart = [name for name in left if units[name].on_one_core] if processes > 1 else []
    tasks: list[tuple[Any, ...]] = [(replace(experiment), output, name) for name in apart]
    if predicting and processes > 1 and left:
        tasks.insert(0, (replace(experiment), theory, None))
    others = [name for name in names if name not in apart]
    count = processes - bool(set(left) - set(apart)) if apart else 1
    calls = [delayed(_worker)(ONE_CORE if apart else {}, *task) for task in tasks]
    with closing(Parallel(count, batch_size=1, return_as="generator_unordered")(calls)) as work:
        estimates = {name: simulation.begun(name) for name in others}
        # What is wrong with a point, or kills its process, is met here again.
        with suppress(Exception):
            done.update(work)
    estimates = {name: estimates.get(name) or simulation.begun(name) for name in names}
    _say(experiment, f"simulation {len(names)}/{len(units)}")
    if predicting and None not in done:
        predict(experiment, theory)
    if part != (1, 1):
        return
    coordinates = {name: dict(unit.coordinates) for name, unit in units.items()}
    if experiment.simulation.decide != "no":
        predicted = read(theory, f"theory.nc of {experiment.identity}")
        _check_settings(experiment, predicted, theory)
        start = Results(
            experiment.name,
            experiment.fidelity,
            estimates,
            unstack(predicted),
            experiment.settings,
            coordinates,
        )
        held = {name: simulation.longest(name, data) for name, data in estimates.items()}
        claims = claims_by_paper()
        estimates = sample_until_decided(experiment, start, held, claims, simulation.longer)
    # The contract under which the simulation began, where that was another one.
    now = experiment.contract
    began = next((c for data in estimates.values() if (c := data.attrs["contract"]) != now), now)
    _write_road(experiment, "simulation", estimates, coordinates, output, began)


def _worker(
    more: Mapping[str, str], experiment: Experiment, output: Path, name: str | None
) -> str | None:
    """Keep a point of an experiment where the run looks, or predict; in a process of its own."""
    from threadpoolctl import threadpool_limits

    os.environ.update(more)  # before anything sets up JAX
    from sims.study.units import Simulation

    with threadpool_limits(1):
        if name is None:
            predict(experiment, output)
        else:
            Simulation(experiment, output).begun(name)
    return name


def judge(experiment: Experiment, output: Path) -> list[Verdict]:
    """Verdicts on all claims of an experiment, also written as JSON beside its results."""
    results = results_of(experiment, output.parent)
    verdicts = verdicts_of(experiment, results, effects_of(experiment, results))
    write_verdicts(verdicts, output, f"verdicts.json of {experiment.identity}")
    return verdicts


def plot(experiment: Experiment, output: Path) -> None:
    """Draw the experiment's figure and fill in its caption.

    Args:
        experiment: which one; its figure.py has ``figure(results, verdicts)`` and, for the caption,
            ``numbers(results)``.
        output: the figure, beside simulation.nc, theory.nc and verdicts.json. PNG, SVG and
            caption.md lie there, too.

    Raises:
        InputError: there is no figure.py, or a file cannot be read.
    """
    from sims.figures import save, style
    from sims.report.captions import render_caption

    folder, own = output.parent, experiment.module("figure")
    if own is None:
        path = experiment.folder / "figure.py"
        raise InputError(str(path), "nothing", "a module with figure(results, verdicts)")
    results = results_of(experiment, folder)
    verdicts = _adjusted(experiment, results, folder)
    numbers = own.numbers(results) if hasattr(own, "numbers") else {}
    with style():
        figure = own.figure(results, verdicts)
    caption = render_caption(experiment.folder / "caption.md", results, verdicts, numbers)
    save(figure, output, experiment.identity, results.digest)
    files.write(caption, folder / "caption.md", f"caption.md of {experiment.identity}")


def results_of(experiment: Experiment, folder: Path) -> Results:
    """The results of an experiment that lie in a folder.

    Raises:
        InputError: a file cannot be believed, or was made with other settings than it has now.
    """
    results = Results.load(folder, experiment.settings, experiment.identity)
    _check_settings(experiment, results.simulation, folder / "simulation.nc")
    _check_settings(experiment, results.theory, folder / "theory.nc")
    return results


def _check_settings(experiment: Experiment, data: xr.Dataset, path: Path) -> None:
    """Refuse a road's file of another problem, seed or setting than the experiment has now."""
    before, road = json.loads(data.attrs["provenance"]).get("settings", {}), path.stem
    for key, value in _settings(experiment, road).items():
        if before.get(key, value) != value:
            allowed = f"{value}, as {experiment.folder / 'experiment.yaml'} has it: {road} again"
            raise InputError(str(path), f"{key} {before[key]}", allowed)


def _settings(experiment: Experiment, road: str) -> dict[str, Any]:
    """What decides the numbers of a road, beside code: its problems, as a digest, and settings."""
    drawn = experiment.simulation.seed if experiment.redraws else None
    problem = digest(experiment.settings, experiment.problems, drawn)
    return {"problem": problem, **getattr(experiment, road).model_dump(mode="json")}


def _adjusted(experiment: Experiment, results: Results, folder: Path) -> list[Verdict]:
    """The experiment's verdicts, as the ledger beside its folder has them if it is of this run.

    The ledger has the last word: there verdicts are adjusted for all claims of a paper together.

    Raises:
        InputError: they are on other results, or were given under other claims or effects.
    """
    path = folder / "verdicts.json"
    verdicts = read_ledger(path, f"verdicts.json of {experiment.identity}")
    made = {(verdict.results, verdict.contract) for verdict in verdicts}
    if made != {(results.digest, experiment.contract)}:
        allowed = "those on the results beside it, under the experiment as it is: judge again"
        raise InputError(str(path), "verdicts on other results or claims", allowed)
    ledger = folder.parent / "ledger.json"
    if not ledger.exists():
        return verdicts
    rows = read_ledger(ledger, f"ledger.json of {experiment.fidelity}")
    adjusted = [v for v in rows if v.experiment == experiment.name]
    keys = [{(v.claim, v.regime, v.p_value) for v in found} for found in (verdicts, adjusted)]
    return adjusted if keys[0] == keys[1] else verdicts


def _write_road(
    experiment: Experiment,
    road: str,
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    output: Path,
    contract: str | None = None,
) -> None:
    """Write a road's results; the contract is that under which a simulation began."""
    step = "simulate" if road == "simulation" else "predict"
    settings, seed = _settings(experiment, road), experiment.simulation.seed
    origin = {
        "road": road,
        "experiment": experiment.name,
        "fidelity": experiment.fidelity,
        "fingerprint": code.digest(step, experiment.folder, experiment.fidelity),
        "versions": provenance.versions(),
        **provenance.machine(),
        "specification": experiment.spec.model_dump(mode="json"),
        "problem": settings["problem"],
        "settings": settings,
        "contract": contract,
        "seed": seed if road == "simulation" or experiment.redraws else None,
        **provenance.replicates(data.values()),
    }
    problems = {point.name: point.spec.model_dump(mode="json") for point in experiment.points}
    words = read_variables(experiment.folder)
    whole = assembled(data, coordinates, problems, origin, words)
    write(whole, output, f"{road}.nc of {experiment.identity}")


def _say(experiment: Experiment, line: str) -> None:
    print(f"{experiment.name}: {line}", file=sys.stderr)
