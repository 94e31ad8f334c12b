"""The steps of the pipeline, as the Snakefile calls them. Each writes its output atomically."""

import importlib.util
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import signature
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from sims.errors import InputError
from sims.fingerprint import code, experiments, fingerprint, folder_of


def simulate(options: Namespace) -> None:
    """``sims simulate``: estimate every point of an experiment."""
    from sims.experiment import Point, load_experiment

    folder = folder_of(options.experiment)
    experiment = _changed(load_experiment(folder), options)
    settings = experiment.simulation_at(options.fidelity)

    def estimate(point: Point, resume: Any = None, batches: int | None = None) -> Any:
        from sims.cli.roads import estimate_terms

        wanted = settings if batches is None else settings.model_copy(update={"batches": batches})
        return estimate_terms(point.spec.build(), wanted, resume, sys.stderr.isatty())

    def decide(data: dict[str, Any], points: dict[str, Point], store: Path, suffix: str) -> Any:
        from sims.cli.adaptive import sample_until_decided
        from sims.montecarlo import store as checkpoints

        paths = {name: store / f"{p.digest}-more-{suffix}.npz" for name, p in points.items()}
        held = {name: checkpoints.load(path) for name, path in paths.items()}

        def extend(name: str, data: Any, batches: int) -> Any:
            longer = estimate(points[name], data, batches)
            checkpoints.save(longer, paths[name])
            return longer

        return sample_until_decided(
            experiment,
            options.fidelity,
            all_claims(),
            data,
            {name: data[name] if longer is None else longer for name, longer in held.items()},
            _output(options, "simulation.nc").with_name("theory.nc"),
            analysis(folder).judge,
            extend,
        )

    # How far sampling may go on is no part of a point's identity: its first batches are the same.
    open_ended = settings.decide != "no"
    identity = settings.model_dump(exclude={"decide", "max_batches"} if open_ended else None)
    more = decide if open_ended else None
    _run_road("simulate", "simulation", experiment, folder, options, estimate, identity, more)


def predict(options: Namespace) -> None:
    """``sims predict``: predict every point of an experiment."""
    from sims.experiment import Point, load_experiment

    folder = folder_of(options.experiment)
    experiment = _changed(load_experiment(folder), options)
    settings = experiment.theory

    def prediction(point: Point) -> Any:
        from sims.cli.roads import predict_terms

        return predict_terms(point.spec.build(), settings)

    _run_road("predict", "theory", experiment, folder, options, prediction, settings.model_dump())


def _run_road(
    step: str,
    road: str,
    experiment: Any,
    folder: Path,
    options: Namespace,
    compute: Callable[[Any], Any],
    settings: dict[str, Any],
    more: Callable[..., Any] | None = None,
) -> None:
    """Compute the points that have no checkpoint yet, then write them all into one file.

    ``more(data, points, store, suffix)``, if given, has the last word on the points' data.
    """
    from sims import provenance, results
    from sims.montecarlo import store as checkpoints
    from sims.runtime import in_threads

    experiment.at(options.fidelity)
    output = _output(options, f"{road}.nc")
    own = folder / f"{step}.py"
    points = experiment.points(options.fidelity)
    coordinates = {point.name: point.coordinates for point in points}
    if own.is_file():
        data = getattr(_module(own), step)(experiment, options.fidelity)
    elif not points:
        raise InputError("problem", None, f"a base problem, or a {step}.py beside experiment.yaml")
    else:
        for point in points:  # an impossible one is reported before hours are spent on others
            with _named(point):
                point.spec.build()
        store = output.parent / ".points"
        suffix = f"{road}-{_settings_digest(step, folder, settings)}"
        done = count(1)

        def finish(point: Any) -> Any:
            path = store / f"{point.digest}-{suffix}.npz"
            found = checkpoints.load(path)
            if found is None:
                with _named(point):
                    found = compute(point)
                checkpoints.save(found, path)
            index = next(done)
            if sys.stderr.isatty() or index == len(points):
                print(f"{options.experiment}: {road} {index}/{len(points)}", file=sys.stderr)
            return found

        # A simulation takes all cores by itself.
        every = in_threads(finish, points) if road == "theory" else [finish(p) for p in points]
        data = {point.name: found for point, found in zip(points, every, strict=True)}
        checkpoints.prune(store, road, suffix)
        if more is not None:
            data = more(data, {point.name: point for point in points}, store, suffix)
    origin = provenance.collect(
        road=road,
        experiment=folder.name,
        fidelity=options.fidelity,
        specification=experiment.model_dump(mode="json"),
        fingerprint=fingerprint(step, folder, options.fidelity),
    )
    origin |= provenance.replicates(data)
    results.write(data, {name: coordinates.get(name, {}) for name in data}, origin, output)


@contextmanager
def _named(point: Any) -> Iterator[None]:
    """Errors say at which point of the grid they happened."""
    try:
        yield
    except InputError as error:
        where = ", ".join(f"{path}: {value}" for path, value in point.coordinates.items())
        where = where if len(where) <= 120 else where[:117] + "..."
        field = f"grid point {point.name} ({where or 'the base problem'}): {error.field}"
        raise InputError(field, error.value, error.allowed) from error


def judge(options: Namespace) -> None:
    """``sims judge``: the analysis' verdicts, one for every claim of the experiment file."""
    from sims.judgement import write_verdicts

    folder, experiment, results, output = _judged(options, "verdicts.json")
    verdicts = analysis(folder).judge(results, experiment)
    judged = sorted((v.claim, v.regime, v.margin) for v in verdicts)
    asked = sorted((c.id, c.regime, c.margin) for c in experiment.claims)
    if judged != asked:
        # A margin that is not the one fixed in advance would be no test.
        wrong = sorted({*judged} ^ {*asked}) or judged
        allowed = f"verdicts on exactly the {len(asked)} claims of experiment.yaml, margins and all"
        raise InputError(f"{folder.name}/analysis.py: claim, regime, margin", wrong, allowed)
    write_verdicts(verdicts, output)


def plot(options: Namespace) -> None:
    """``sims plot``: the analysis' figure, and the caption with its numbers filled in."""
    from sims.figures import save, style
    from sims.report import render_caption

    folder, experiment, results, output = _judged(options, "figure.pdf")
    from sims.judgement import read_ledger

    own = analysis(folder)
    verdicts = read_ledger(output.parent / "verdicts.json")
    # The ledger has the last word: there verdicts are adjusted for all claims together.
    whole = output.parent.parent / "ledger.json"
    adjusted = (
        [v for v in read_ledger(whole) if v.experiment == folder.name] if whole.is_file() else []
    )
    if {(v.claim, v.regime, v.p_value) for v in verdicts} == {
        (v.claim, v.regime, v.p_value) for v in adjusted
    }:
        verdicts = adjusted
    numbers = own.numbers(results) if hasattr(own, "numbers") else {}
    caption = render_caption(folder / "caption.md", experiment, results, verdicts, numbers)
    # A figure of verdicts asks for them by a second parameter.
    asked = (results, verdicts)[: len(signature(own.figure).parameters)]
    with style():
        figure = own.figure(*asked)
    save(figure, output)
    (output.parent / "caption.md").write_text(caption, encoding="utf-8")


def ledger(options: Namespace) -> None:
    """``sims ledger``: the verdicts of all experiments that have been judged, adjusted by Holm.

    Claims that have not been judged count in the adjustment.
    """
    from sims.judgement import adjust, read_ledger, write_verdicts

    output = _output(options, "ledger.json")
    files = [output.parent / name / "verdicts.json" for name in experiments()]
    found = [v for f in files if f.is_file() for v in read_ledger(f)]
    if not found:
        raise InputError(str(output.parent), "no verdicts", "a run: sims judge, or snakemake")
    write_verdicts(adjust(found, all_claims()), output)


def report(options: Namespace) -> None:
    """``sims report``: one self-contained page."""
    from sims.report import write_report

    output = _output(options, "report.html")
    write_report(output.parent, options.fidelity, output)


def all_claims() -> int:
    """How many claims the experiment files of this folder make."""
    from sims.experiment import load_experiment

    return sum(len(load_experiment(folder_of(name)).claims) for name in experiments())


def _judged(options: Namespace, name: str) -> tuple[Path, Any, Any, Path]:
    from sims.experiment import load_experiment
    from sims.results import Results

    folder = folder_of(options.experiment)
    output = _output(options, name)
    results = Results.load(output.parent / "simulation.nc", output.parent / "theory.nc")
    return folder, load_experiment(folder), results, output


def _output(options: Namespace, name: str) -> Path:
    if options.output:
        return Path(options.output)
    parts = [Path(options.experiment).name] if "experiment" in options else []
    return Path("results", options.fidelity, *parts, name)


def _settings_digest(step: str, folder: Path, settings: dict[str, Any]) -> str:
    """Of what decides a point's numbers besides its problem."""
    import hashlib

    text = code(step, folder) + json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def analysis(folder: Path) -> ModuleType:
    """The module of an experiment that judges and draws."""
    path = folder / "analysis.py"
    if not path.is_file():
        raise InputError(str(path), "nothing", "a module with judge() and figure()")
    return _module(path)


def learns(name: str, fidelity: str) -> bool:
    """Whether the experiment learns heads from seeds of its own, which both roads take."""
    from sims.experiment import load_experiment

    experiment = load_experiment(folder_of(name))
    experiment.at(fidelity)
    return "seeds" in experiment.settings


def _changed(experiment: Any, options: Namespace) -> Any:
    """The experiment with ``seed_offset`` added to its seeds and another rule of allocation."""
    offset, decide = (getattr(options, k, None) for k in ("seed_offset", "decide"))
    if decide:
        at = experiment.at(options.fidelity)
        at = at.model_copy(update={"simulation": at.simulation | {"decide": decide}})
        fidelities = experiment.fidelities | {options.fidelity: at}
        experiment = experiment.model_copy(update={"fidelities": fidelities})
    if not offset:
        return experiment

    def moved(settings: dict[str, Any]) -> dict[str, Any]:
        if "seeds" not in settings:
            return settings
        seeds = settings["seeds"]
        return settings | {"seeds": seeds | {"first": seeds["first"] + 1000 * offset}}

    settings = moved(experiment.settings)
    settings |= {k: moved(v) for k, v in settings.items() if isinstance(v, dict)}
    other = {"seed": experiment.simulation.seed + offset}
    simulation = experiment.simulation.model_copy(update=other)
    return experiment.model_copy(update={"simulation": simulation, "settings": settings})


def _module(path: Path) -> ModuleType:
    """A module of an experiment's folder, by its path (the folder is no package)."""
    return _loaded(path.resolve(), path.stat().st_mtime_ns)


@cache
def _loaded(path: Path, _: int) -> ModuleType:
    # Once a process: what a module of an experiment compiles is kept from seed to seed.
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
