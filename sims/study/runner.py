"""Runs: every step of an experiment as a plain call, from Python or the command line.

Finished units are kept in ``.points`` next to the results, so that an interrupted run resumes.
Numbers do not depend on the process that computed them.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from sims.base import files
from sims.base.errors import InputError
from sims.base.identity import digest
from sims.judgement.answers import Answer, by_id, read_answers, write_answers
from sims.study import code, drawn, provenance
from sims.study.describing import read_variables
from sims.study.experiment import Experiment, load_experiment
from sims.study.judge import answer_questions
from sims.study.ledger import read_run
from sims.study.loading import load_study
from sims.study.panels import plot_claims
from sims.study.referenced_files import resolve_files
from sims.study.rehearsal import rehearse, units_of
from sims.study.results import Coordinates, Results, assembled, write
from sims.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.study.units import Simulation


ONE_CORE = {"NPROC": "1", "SIMS_HOST_DEVICES": "1"}
"""Environment of a process that keeps one core busy: threads and devices that JAX starts there."""


@dataclass(frozen=True)
class Outcome:
    """Results and answers of one experiment's run.

    Attributes:
        experiment: the experiment at its fidelity.
        results: theory and simulation.
        answers: one per question, without Holm's adjustment, which the ledger adds.
        folder: folder of simulation.nc, theory.nc, answers.json, figures and caption.md.
    """

    experiment: Experiment
    results: Results
    answers: list[Answer]
    folder: Path

    def __repr__(self) -> str:
        return f"Outcome({self.results!r}, {len(self.answers)} answers, {str(self.folder)!r})"


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
    """Outcome of one experiment: theory, simulation, answers and figure. Finished units are kept.

    Args:
        name: name of the experiment, or its folder.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0, added to the seeds: the same experiment with other draws.
        folder: folder of the results; None is results/FIDELITY/NAME.
        figure: whether to draw it.
        progress: show progress on stderr.
        processes: number of processes for units of plain Python; one more computes theory.
        allow_code: consent to run the code of a folder outside ``experiments``.

    Raises:
        InputError: the experiment, its file or its modules cannot be used.
    """
    experiment = load_experiment(name, fidelity, seed_offset, allow_code)
    home = Path(folder) if folder is not None else Path("results", fidelity, experiment.name)
    simulate(experiment, home / "simulation.nc", progress, processes, predicting=True)
    answers = judge(experiment, home / "answers.json")
    if figure:
        plot(experiment, home / "figure.png")
    return Outcome(experiment, results_of(experiment, home), answers, home)


def predict(experiment: Experiment, output: Path) -> None:
    """Predict the problems of an experiment, and write theory's terms into one file."""
    study = load_study(experiment)
    with experiment.code_errors():
        predictions = study.predictions()
        digests = study.problem_digests()
    coordinates = study.predicted_coordinates()
    _write_method(experiment, "theory", predictions, coordinates, digests, output)


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
        experiment: the experiment.
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
    from sims.study.units import experiment_simulation

    if experiment.fidelity != "smoke":
        _compile_sums()
    study = load_study(experiment)
    units = units_of(study)
    simulation = experiment_simulation(experiment, units, output, progress)
    names = simulation.part(*part)
    kept = {name for name in names if simulation.path(name).exists()}
    if not kept and (experiment.fidelity != "smoke" or isinstance(study, drawn.DrawnStudy)):
        rehearse(experiment)
    on_one_core = {name for name in names if units[name].on_one_core}
    plan = schedule(names, kept, on_one_core, processes, predicting)
    computed, has_predicted = _compute(experiment, simulation, plan, output)
    # Units whose process failed are computed here, so that their error is raised here.
    estimates = {name: computed.get(name) or simulation.batches_of(name) for name in names}
    print(f"{experiment.name}: simulation {len(names)}/{len(units)}", file=sys.stderr)
    if predicting and not has_predicted:
        predict(experiment, output.with_name("theory.nc"))
    if part != (1, 1):
        return
    coordinates = {name: unit.coordinates for name, unit in units.items()}
    digests = _collect_digests(study, estimates)
    _write_method(experiment, "simulation", estimates, coordinates, digests, output)


def _collect_digests(study: Study[Any], estimates: Mapping[str, xr.Dataset]) -> dict[str, str]:
    """Digests of simulated problems, from their processes or drawn here."""
    from sims.study.units import DRAWN

    digests = {name: str(data.attrs.get(DRAWN, "")) for name, data in estimates.items()}
    return digests if all(digests.values()) else study.problem_digests()


def _compile_sums() -> None:
    """Compile the native sums of the engine, which is worth it in a long run only."""
    import jax

    from sims.problem.kernels import GAUSSIAN
    from sims.simulation.native import LEAST_WORK, usable

    usable(GAUSSIAN, jax.default_backend(), LEAST_WORK)


def _compute(
    experiment: Experiment, simulation: "Simulation", plan: "Schedule", output: Path
) -> tuple[dict[str, xr.Dataset], bool]:
    """Compute and keep units, here and in separate processes.

    A process that fails leaves its unit to the next request.

    Returns:
        The batches of units that were computed here, and whether a process has predicted.
    """
    from joblib import Parallel, delayed

    experiment = replace(experiment)  # without its cached properties
    calls = []
    for name in [None] * plan.predicts_apart + plan.apart:
        calls.append(delayed(_worker)(plan.environment, experiment, output, name))
    finished = set[str | None]()
    run_apart = Parallel(plan.processes, batch_size=1, return_as="generator_unordered")
    with closing(run_apart(calls)) as work:
        estimates = {name: simulation.batches_of(name) for name in plan.here}
        with suppress(Exception):
            finished.update(work)
    return estimates, None in finished


@dataclass(frozen=True)
class Schedule:
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

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of the processes."""
        return ONE_CORE if self.apart else {}


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


def _worker(
    environment: Mapping[str, str], experiment: Experiment, output: Path, name: str | None
) -> str | None:
    """Compute and save a unit of an experiment, or theory, in a separate process."""
    from threadpoolctl import threadpool_limits

    os.environ.update(environment)  # before anything sets up JAX
    from sims.study.units import experiment_simulation

    with threadpool_limits(1):
        if name is None:
            predict(experiment, output.with_name("theory.nc"))
        else:
            unit = load_study(experiment).unit(name)
            experiment_simulation(experiment, {name: unit}, output).batches_of(name)
    return name


def judge(experiment: Experiment, output: Path) -> list[Answer]:
    """Answers to all questions of an experiment, also written as JSON next to its results."""
    answers = answer_questions(experiment, results_of(experiment, output.parent))
    write_answers(answers, output, f"answers.json of {experiment.identity}")
    return answers


def plot(experiment: Experiment, output: Path) -> None:
    """Draw the experiment's figure and fill in its caption.

    Args:
        experiment: the experiment.
        output: the figure, in the folder of simulation.nc, theory.nc and answers.json; its other
            formats and caption.md go there, too.

    Raises:
        InputError: a file cannot be read.
    """
    from sims.figures import letters, save, style
    from sims.report.text import render_caption

    folder = output.parent
    study = load_study(experiment)
    results = results_of(experiment, folder)
    answers = by_id(_read_final_answers(experiment, results, folder))
    template = experiment.folder / "caption.md"
    kinds = code.FORMATS[experiment.fidelity]
    caption = drawn.CAPTION
    if template.is_file():
        caption = render_caption(template, results, answers, study.numbers(results))
    with style():
        figure = study.figure(results, answers) or _default_figure(study, results)
        letters(ax for ax in figure.axes if ax.get_title())
        headline = study.headline(results)
    save(figure, output, experiment.identity, results.digest, kinds)
    if headline is not None:
        save(headline, folder / "headline.png", experiment.identity, results.digest, kinds)
    if experiment.fidelity != "smoke":
        plot_claims(experiment, study, results, folder)
    files.write(caption, folder / "caption.md", f"caption.md of {experiment.identity}")


def _default_figure(study: Study[Any], results: Results) -> "Figure":
    """Figure of the effects of the first question against up to four parameters."""
    from sims.figures import scatter

    question = study.experiment.spec.questions[0]
    columns = study.parameters(results).select_dtypes("number")
    effect = study.effects(results)[question.effect]
    return scatter(columns.iloc[:, :4], effect.value, effect.error, question.question)


def results_of(experiment: Experiment, folder: Path) -> Results:
    """Results of an experiment in a folder.

    Raises:
        InputError: a file is damaged, or was made with other settings.
    """
    results = Results.load(folder, experiment.settings, experiment.identity)
    _check_settings(experiment, results.simulation, folder / "simulation.nc")
    _check_settings(experiment, results.theory, folder / "theory.nc")
    return results


def _check_settings(experiment: Experiment, data: xr.Dataset, path: Path) -> None:
    """Refuse a file whose problems, seed or settings differ from the experiment's."""
    recorded = json.loads(data.attrs["provenance"]).get("settings", {})
    method = path.stem
    for key, value in _settings(experiment, method).items():
        if recorded.get(key, value) != value:
            allowed = f"{value}, from {experiment.folder / 'experiment.yaml'}: run {method} again"
            raise InputError(str(path), f"{key} {recorded[key]}", allowed)


def _settings(experiment: Experiment, method: str) -> dict[str, Any]:
    """Settings and problem digest that, with the code, determine the numbers of a method."""
    law = resolve_files(code.without_prose(experiment.spec.law), experiment.folder)
    problem = digest(experiment.settings, experiment.simulation.seed, law)
    settings = experiment.simulation.model_dump(mode="json") if method == "simulation" else {}
    return {"problem": problem, **settings}


def _read_final_answers(experiment: Experiment, results: Results, folder: Path) -> list[Answer]:
    """Experiment's answers, from the run's ledger if it belongs to this run.

    The ledger has the final answers, adjusted for all claims of a paper together.

    Raises:
        InputError: the answers belong to other results.
    """
    path = folder / "answers.json"
    answers = read_answers(path, f"answers.json of {experiment.identity}")
    if {answer.results for answer in answers} != {results.digest}:
        allowed = "answers computed from these results: judge again"
        raise InputError(str(path), "answers on other results", allowed)
    ledger = read_run(folder.parent, experiment.fidelity)
    adjusted = [answer for answer in ledger if answer.experiment == experiment.name]
    return adjusted if _keys(adjusted) == _keys(answers) else answers


def _keys(answers: list[Answer]) -> set[tuple[str, float | None, str]]:
    return {(answer.id, answer.p_value, answer.results) for answer in answers}


def _write_method(
    experiment: Experiment,
    method: str,
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    digests: Mapping[str, str],
    output: Path,
) -> None:
    """Write a method's results, with the digest of every problem."""
    step = "simulate" if method == "simulation" else "predict"
    settings = _settings(experiment, method)
    origin = provenance.origin(
        method=method,
        experiment=experiment.name,
        fidelity=experiment.fidelity,
        fingerprint=code.digest(step, experiment.folder, experiment.fidelity),
        specification=experiment.spec.model_dump(mode="json"),
        problem=settings["problem"],
        problems=dict(digests),
        settings=settings,
        seed=experiment.simulation.seed,
        **provenance.replicates(data.values()),
    )
    labelled = assembled(data, coordinates, origin, read_variables(experiment.folder))
    write(labelled, output, f"{method}.nc of {experiment.identity}")
