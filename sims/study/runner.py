"""The runner: every step of an experiment as a plain call, from a notebook, a test or the CLI."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from sims import files
from sims.errors import InputError
from sims.judgement import Verdict, read_ledger, write_verdicts
from sims.study.experiment import Experiment, load_experiment
from sims.study.judging import effects_of
from sims.study.judging import judge as verdicts_of
from sims.study.ledger import claims_by_paper
from sims.study.predicting import predict, say_done, write_road
from sims.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.study.shards import Shard
    from sims.study.workers import Crew


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
    decide: str | None = None,
    folder: str | Path | None = None,
    figure: bool = True,
    progress: bool = False,
    processes: int = 1,
) -> Outcome:
    """Run one experiment: both roads, effects, verdicts and figure. Finished points are kept.

    Args:
        name: of the experiment, or its folder.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0, added to the seeds: the same experiment with other draws.
        decide: another rule of allocation than the file's (no, adaptive, equal).
        folder: where results go; None is results/FIDELITY/NAME.
        figure: whether to draw it.
        progress: show progress on stderr.
        processes: to spread points of plain Python over; see :mod:`sims.study.workers`.

    Raises:
        InputError: the experiment, its file or its modules cannot be used.
    """
    from sims.study.planning import costs
    from sims.study.units import units_of
    from sims.study.workers import Crew

    experiment = load_experiment(name, fidelity, seed_offset, decide)
    home = Path(folder) if folder is not None else Path("results", fidelity, experiment.name)
    costs(experiment)
    units_of(experiment)
    theory, simulation = home / "theory.nc", home / "simulation.nc"
    with Crew(experiment, simulation, processes, predicting=True) as crew:

        def predicted(wait: bool) -> None:
            crew.predicted(lambda: predict(experiment, theory), wait)

        simulate(experiment, simulation, theory, progress, crew=crew, predicted=predicted)
    results = _results(experiment, home)
    verdicts = _judged(experiment, results, home / "verdicts.json")
    if figure:
        _plot(experiment, results, home, home / "figure.pdf")
    return Outcome(experiment, results, verdicts, home)


def simulate(
    experiment: Experiment,
    output: Path,
    theory: Path | None = None,
    progress: bool = False,
    closed: bool = False,
    crew: "Crew | None" = None,
    predicted: Callable[[bool], None] = lambda wait: None,
) -> None:
    """Estimate every unit of an experiment, and write them into one file.

    Args:
        experiment: which one.
        output: the file; finished units are kept in ``.points`` beside it, each with
            the contract under which it was begun, and so are the batches of unfinished ones,
            those of shards among them.
        theory: the predictions' file, needed where sampling goes on until claims are decided.
        progress: show progress on stderr.
        closed: compute nothing: what is there already has to do.
        crew: processes that compute points of plain Python beside this one, see
            :mod:`sims.study.workers`; None is none.
        predicted: called before every unit, and with True when the predictions have to be there: it
            sees to that, and raises what is wrong with them. By default they are there.

    Raises:
        InputError: a problem cannot be built or simulated, or batches are missing that are not to
            be computed; the line names the grid point.
    """
    from sims.study.adaptive import sample_until_decided
    from sims.study.planning import costs
    from sims.study.simulating import Simulation

    costs(experiment, ["simulation"])  # an impossible point is reported before hours are spent
    run = Simulation(experiment, output, progress, closed)
    finished: set[str] = set() if crew is None else crew.done

    def told() -> None:
        count = len(finished & run.units.keys())
        if count < len(run.units):
            say_done(experiment, "simulation", count, len(run.units))

    def begun(name: str) -> xr.Dataset:
        predicted(False)
        data = run.begun(name)
        finished.add(name)
        told()
        return data

    if crew is not None:
        crew.join(begun, told)
    estimates = {name: begun(name) for name in run.units}
    say_done(experiment, "simulation", len(estimates), len(run.units))
    predicted(True)
    if experiment.simulation.decide != "no":
        start = run.results(estimates, theory)
        held = {name: run.longest(name, data) for name, data in estimates.items()}
        estimates = sample_until_decided(experiment, start, held, claims_by_paper(), run.longer)
    # The contract under which the simulation began, where that was another one.
    now = run.shelf.contract
    began = next((c for d in estimates.values() if (c := d.attrs["contract"]) != now), now)
    write_road(experiment, "simulation", estimates, run.coordinates, output, began)
    run.shelf.tidy(run.units.values())


def simulate_shard(
    experiment: Experiment,
    output: Path,
    shard: "Shard",
    progress: bool = False,
    turn: int = 1,
) -> None:
    """Compute one shard's batches, and keep them for :func:`simulate` to find.

    Args:
        experiment: which one.
        output: the file that the whole simulation is written to; batches are kept beside it, and
            ``shards/2-of-7.json`` there says of shard 2/7 that it is finished, and what it had.
        shard: which one.
        progress: show progress on stderr.
        turn: 1 for the batches that every point gets; of a later one those that its plan
            (:mod:`sims.study.turns`) asks for, and the file is ``shards/turn-2/2-of-7.json``.

    Raises:
        InputError: a problem cannot be built or simulated, or there is no plan; the line names the
            grid point.
    """
    from sims.study.shards import assigned, loads
    from sims.study.simulating import Simulation
    from sims.study.turns import folder_of_turn, planned

    run = Simulation(experiment, output, progress)
    every = loads(experiment, run.units)
    if turn > 1:
        every = planned(every, experiment, output, turn)
    parts = assigned(every, shard)
    for done, (name, part) in enumerate(parts.items(), 1):
        run.part(name, part)
        say_done(experiment, f"shard {shard}", done, len(parts))
    mark = folder_of_turn(output, turn) / f"{shard.index}-of-{shard.count}.json"
    content = {"shard": str(shard), "batches": {n: [p.start, p.stop] for n, p in parts.items()}}
    files.write_json(content, mark, f"shard {shard} of {experiment.identity}")


def judge(experiment: Experiment, simulation: Path, theory: Path, output: Path) -> list[Verdict]:
    """Verdicts on all claims of an experiment, also written as JSON."""
    results = Results.load(simulation, theory, experiment.settings, experiment.identity)
    return _judged(experiment, results, output)


def _judged(experiment: Experiment, results: Results, output: Path) -> list[Verdict]:
    verdicts = verdicts_of(experiment, results, effects_of(experiment, results))
    write_verdicts(verdicts, output, f"verdicts.json of {experiment.identity}")
    return verdicts


def plot(experiment: Experiment, folder: Path, output: Path | None = None) -> None:
    """Draw the experiment's figure and fill in its caption.

    Args:
        experiment: which one; its figure.py has ``figure(results, verdicts)`` and, for the caption,
            ``numbers(results)``.
        folder: with simulation.nc, theory.nc and verdicts.json.
        output: the figure; None is figure.pdf in the folder. PNG, SVG and caption.md lie beside it.

    Raises:
        InputError: there is no figure.py, or a file cannot be read.
    """
    _plot(experiment, _results(experiment, folder), folder, output or folder / "figure.pdf")


def _plot(experiment: Experiment, results: Results, folder: Path, output: Path) -> None:
    from sims.figures import save
    from sims.report.captions import render_caption

    figure, verdicts, numbers = _drawn(experiment, results, folder)
    caption = render_caption(experiment.folder / "caption.md", results, verdicts, numbers)
    save(figure, output, experiment.identity)
    files.write(caption, output.parent / "caption.md", f"caption.md of {experiment.identity}")


def _results(experiment: Experiment, folder: Path) -> Results:
    """Both roads, of the files in the experiment's folder of results."""
    roads = (folder / "simulation.nc", folder / "theory.nc")
    return Results.load(*roads, experiment.settings, experiment.identity)


def _drawn(
    experiment: Experiment, results: Results, folder: Path
) -> tuple["Figure", list[Verdict], dict[str, Any]]:
    """The figure, and what it and its caption were made of beside the results."""
    from sims.figures import style

    own = experiment.module("figure")
    if own is None:
        path = experiment.folder / "figure.py"
        raise InputError(str(path), "nothing", "a module with figure(results, verdicts)")
    verdicts = _adjusted(experiment, folder)
    numbers = own.numbers(results) if hasattr(own, "numbers") else {}
    with style():
        return own.figure(results, verdicts), verdicts, numbers


def _adjusted(experiment: Experiment, folder: Path) -> list[Verdict]:
    """The experiment's verdicts, as the ledger beside its folder has them if it is of this run.

    The ledger has the last word: there verdicts are adjusted for all claims of a paper together.
    """
    of = f"verdicts.json of {experiment.identity}"
    verdicts = read_ledger(folder / "verdicts.json", of)
    whole = folder.parent / "ledger.json"
    rows = read_ledger(whole, f"ledger.json of {experiment.fidelity}") if whole.exists() else []
    adjusted = [v for v in rows if v.experiment == experiment.name]
    same = {(v.claim, v.regime, v.p_value) for v in verdicts} == {
        (v.claim, v.regime, v.p_value) for v in adjusted
    }
    return adjusted if same else verdicts
