"""The runner: every step of an experiment as a plain call, from a notebook, a test or the CLI."""

import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from sims import files
from sims.errors import InputError
from sims.identity import digest
from sims.judgement import Verdict, read_ledger, write_verdicts
from sims.study import code
from sims.study.checking import own_code
from sims.study.contract import contract
from sims.study.experiment import Experiment, Point, load_experiment
from sims.study.judging import effects_of
from sims.study.judging import judge as verdicts_of
from sims.study.ledger import claims_by_paper
from sims.study.results import Coordinates, Results, assembled, read, write


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


def run(
    name: str | Path,
    fidelity: str = "standard",
    *,
    seed_offset: int = 0,
    decide: str | None = None,
    folder: str | Path | None = None,
    figure: bool = True,
    progress: bool = False,
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

    Raises:
        InputError: the experiment, its file or its modules cannot be used.
    """
    from sims.study.planning import costs
    from sims.study.units import units_of

    experiment = load_experiment(name, fidelity, seed_offset, decide)
    home = Path(folder) if folder is not None else Path("results", fidelity, experiment.name)
    costs(experiment)
    units_of(experiment)
    theory, simulation = home / "theory.nc", home / "simulation.nc"
    predict(experiment, theory)
    simulate(experiment, simulation, theory, progress)
    verdicts = judge(experiment, simulation, theory, home / "verdicts.json")
    if figure:
        plot(experiment, home)
    results = Results.load(simulation, theory, experiment.settings, experiment.identity)
    return Outcome(experiment, results, verdicts, home)


def simulate(
    experiment: Experiment, output: Path, theory: Path | None = None, progress: bool = False
) -> None:
    """Estimate every unit of an experiment, and write them into one file.

    Args:
        experiment: which one.
        output: the file; finished units are kept in ``.points`` beside it, each with
            the contract under which it was begun.
        theory: the predictions' file, needed where sampling goes on until claims are decided.
        progress: show progress on stderr.

    Raises:
        InputError: a problem cannot be built or simulated; the line names the grid point.
    """
    from sims.montecarlo import store
    from sims.study.planning import costs, named
    from sims.study.stacking import unstack
    from sims.study.units import units_of

    settings = experiment.simulation
    costs(experiment, ["simulation"])  # an impossible point is reported before hours are spent
    units = units_of(experiment)
    # How far sampling may go on is no part of a unit's identity: its first batches are the same.
    adaptive = settings.decide != "no"
    shared = settings.model_dump(exclude={"decide", "max_batches"} if adaptive else None)
    folder = output.parent / ".points"
    suffix = f"simulation-{digest(code.code('simulate', experiment.folder), shared)}"
    paths = {name: folder / f"{unit.identity}-{suffix}.npz" for name, unit in units.items()}

    now = contract(experiment)

    def extend(name: str, data: xr.Dataset | None, batches: int | None) -> xr.Dataset:
        changed = settings if batches is None else settings.model_copy(update={"batches": batches})
        with named(name, units[name].coordinates):
            more = units[name].estimate(changed, data, progress)
        return more.assign_attrs(contract=now if data is None else data.attrs["contract"])

    estimates: dict[str, xr.Dataset] = {}
    for name, path in paths.items():
        kept = store.load(path)
        if kept is None:
            kept = extend(name, None, None)
            store.save(kept, path)
        estimates[name] = kept
        _report(experiment, "simulation", len(estimates), len(units))
    store.prune(folder, "simulation", suffix)
    coordinates = {name: dict(unit.coordinates) for name, unit in units.items()}
    if adaptive:
        if theory is None:
            raise InputError("theory", None, "the predictions' file: sampling is adaptive")
        predictions = unstack(read(theory, f"theory.nc of {experiment.identity}"))
        start = Results(
            experiment.name,
            experiment.fidelity,
            estimates,
            predictions,
            experiment.settings,
            coordinates,
            _problems(experiment),
            {},
        )
        longer = {name: folder / f"{u.identity}-more-{suffix}.npz" for name, u in units.items()}
        estimates = _decided(experiment, start, longer, extend)
    # The contract under which the simulation began, where that was another one.
    begun = next((c for d in estimates.values() if (c := d.attrs["contract"]) != now), now)
    _write(experiment, "simulation", estimates, coordinates, output, begun)


def _decided(
    experiment: Experiment,
    start: Results,
    longer: Mapping[str, Path],
    extend: Callable[[str, xr.Dataset, int], xr.Dataset],
) -> dict[str, xr.Dataset]:
    """Estimates with as many more batches as it takes to decide the claims, kept in ``longer``."""
    from sims.montecarlo import store
    from sims.study.adaptive import sample_until_decided

    held = {name: store.load(path) or start.estimates[name] for name, path in longer.items()}

    def kept(name: str, data: xr.Dataset, batches: int) -> xr.Dataset:
        more = extend(name, data, batches)
        store.save(more, longer[name])
        return more

    return sample_until_decided(experiment, start, held, claims_by_paper(), kept)


def predict(experiment: Experiment, output: Path) -> None:
    """Predict every point of an experiment, and write them into one file.

    Args:
        experiment: which one.
        output: the file; finished points are kept in ``.points`` beside it.

    Raises:
        InputError: a problem cannot be built or has no theory; the line names the grid point.
    """
    from sims.montecarlo import store
    from sims.runtime import in_threads
    from sims.study.planning import costs, named
    from sims.study.population import predict_point

    own = experiment.module("predict")
    points = experiment.points
    coordinates: Coordinates = {point.name: point.coordinates for point in points}
    if own is not None:
        with own_code(experiment.folder):
            predictions = own.predict(experiment)
        _write(experiment, "theory", predictions, coordinates, output)
        return
    if not points:
        raise InputError("problem", None, "a base problem, or a predict.py beside experiment.yaml")
    costs(experiment, ["theory"])
    folder = output.parent / ".points"
    settings = experiment.theory
    seed = experiment.simulation.seed
    drawn = seed if experiment.redraws else None
    identity = digest(code.code("predict", experiment.folder), settings.model_dump(), drawn)
    suffix, done = f"theory-{identity}", itertools.count(1)

    def finish(point: Point) -> xr.Dataset:
        path = folder / f"{point.digest}-{suffix}.npz"
        kept = store.load(path)
        if kept is None:
            with named(point.name, point.coordinates):
                kept = predict_point(point, settings, seed)
            store.save(kept, path)
        _report(experiment, "theory", next(done), len(points))
        return kept

    predictions = dict(
        zip([point.name for point in points], in_threads(finish, points), strict=True)
    )
    store.prune(folder, "theory", suffix)
    _write(experiment, "theory", predictions, coordinates, output)


def judge(experiment: Experiment, simulation: Path, theory: Path, output: Path) -> list[Verdict]:
    """Verdicts on all claims of an experiment, also written as JSON."""
    results = Results.load(simulation, theory, experiment.settings, experiment.identity)
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
    from sims.figures import save, style
    from sims.report.captions import render_caption

    own = experiment.module("figure")
    if own is None:
        path = experiment.folder / "figure.py"
        raise InputError(str(path), "nothing", "a module with figure(results, verdicts)")
    roads = (folder / "simulation.nc", folder / "theory.nc")
    results = Results.load(*roads, experiment.settings, experiment.identity)
    verdicts = _adjusted(experiment, folder)
    numbers = own.numbers(results) if hasattr(own, "numbers") else {}
    caption = render_caption(experiment.folder / "caption.md", results, verdicts, numbers)
    with style():
        figure = own.figure(results, verdicts)
    output = output or folder / "figure.pdf"
    save(figure, output, experiment.identity)
    files.write(caption, output.parent / "caption.md", f"caption.md of {experiment.identity}")


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


def _problems(experiment: Experiment) -> dict[str, Mapping[str, object]]:
    return {point.name: point.spec.model_dump(mode="json") for point in experiment.points}


def _write(
    experiment: Experiment,
    road: str,
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    output: Path,
    start: str | None = None,
) -> None:
    """Write a road's results; ``start`` is the contract under which a simulation began."""
    from sims import provenance

    step = "simulate" if road == "simulation" else "predict"
    origin = provenance.collect(
        road=road,
        experiment=experiment.name,
        fidelity=experiment.fidelity,
        specification=experiment.spec.model_dump(mode="json"),
        fingerprint=code.digest(step, experiment.folder, experiment.fidelity),
    )
    seed = experiment.simulation.seed if experiment.redraws else None
    problem = digest(experiment.settings, experiment.problems, seed)
    origin |= {"problem": problem, "contract": start} | provenance.replicates(data)
    whole = assembled(data, coordinates, _problems(experiment), origin)
    write(whole, output, f"{road}.nc of {experiment.identity}")


def _report(experiment: Experiment, road: str, done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"{experiment.name}: {road} {done}/{total}", file=sys.stderr)
