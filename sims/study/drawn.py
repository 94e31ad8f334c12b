"""An experiment that needs no code: problems of ``sims decompose`` whose fields a law draws.

In its file ``law.problem`` is a problem, and every other key of ``law`` but ``text`` a dotted path
in it with how it is drawn. The functions below stand for those of the modules that its folder
lacks: ``simulate``, ``predict``, ``problems``, ``statistic`` and ``figure``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.judgement.effects_of_problems import gap
from sims.judgement.summaries import Effects
from sims.study.grid import changed
from sims.study.referenced_files import resolve_files
from sims.study.results import Results
from sims.study.stacking import Scalar
from sims.terms import BATCH, SCALARS
from sims.validation import parse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.study.experiment import Experiment
    from sims.study.specification import Problem
    from sims.study.units import SampledUnit

CAPTION = "Points: a problem each, with bars of two Monte Carlo standard errors.\n"
"""Caption of :func:`figure`."""
PROBLEMS = 100
"""Problems where the experiment's settings have no ``problems``."""


def fields(experiment: "Experiment", index: int) -> dict[str, Any]:
    """Dotted paths of a problem of the law, to the values drawn."""
    from sims.problem.law import Law  # imported late: it loads JAX, which judging does without

    law = {k: v for k, v in experiment.spec.law.items() if k not in ("text", "problem")}
    return Law(law).draw(experiment.simulation.seed, index)


def problem(experiment: "Experiment", index: int) -> dict[str, Any]:
    """The file of a problem of the law, as ``sims decompose`` takes it here."""
    data = changed(experiment.spec.law["problem"], fields(experiment, index))
    consent = bool(experiment.allow_code)
    return {"problem": resolve_files(data, experiment.folder, anywhere=consent)}


def built(experiment: "Experiment") -> "dict[str, Problem]":
    """Problems of the fidelity by name."""
    from sims.study.specification import ProblemSpec

    problems = {}
    for index in range(experiment.settings.get("problems", PROBLEMS)):
        data = problem(experiment, index)["problem"]
        location = f"{experiment.name}: problem {index} of the law"
        context = {"allow_code": experiment.allow_code}
        problems[f"{index:04d}"] = parse(ProblemSpec, data, location, context=context).build()
    return problems


def units(experiment: "Experiment") -> "dict[str, SampledUnit]":
    """One unit per problem; the drawn fields are its coordinates."""
    from sims.simulation.engine import sampler_of
    from sims.study.units import SampledUnit

    names = ("precision", "control_variate", "raw_labels")
    options = {name: getattr(experiment.simulation, name) for name in names}
    return {
        name: SampledUnit(
            sampler_of(*problem, **options, keep_queries=False)[0],
            {k: _label(v) for k, v in fields(experiment, int(name)).items()},
            stream=(int(name),),
        )
        for name, problem in built(experiment).items()
    }


def _label(value: Any) -> Scalar:
    """The value, or what stands for one that is no scalar."""
    if isinstance(value, Mapping):
        return str(value.get("label", value.get("kind")))
    return str(value) if isinstance(value, list) else value


def predict(experiment: "Experiment") -> dict[str, xr.Dataset]:
    """Theory's terms of every problem, of the settings' ``order`` (first, exact or auto)."""
    from sims.runtime import in_threads
    from sims.theory import predict

    problems = built(experiment)
    order = experiment.settings.get("order", "first")
    terms = in_threads(lambda problem: predict(*problem, order=order), [*problems.values()])
    return dict(zip(problems, terms, strict=True))


def effects(results: Results) -> Mapping[str, Effects]:
    """Relative gap of the two roads for every scalar term, simulated / predicted − 1."""
    simulated, predicted = (
        xr.concat([terms[[*SCALARS]] for terms in road.values()], "problem", coords="minimal")
        for road in (results.estimates, results.predictions)
    )
    return {
        term: gap(simulated[term].transpose("problem", BATCH).values, predicted[term].values)
        for term in SCALARS
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn parameters, one row per problem, without seeds."""
    frame = pd.DataFrame(list(results.coordinates.values()))
    return frame[[name for name in frame if frame[name].astype(str).str.len().max() < 19]]


def figure(experiment: "Experiment", results: Results) -> "Figure":
    """The effects of the first question against the parameters, four at most."""
    from sims import figures

    statistic, question = experiment.module("statistic"), experiment.spec.questions[0]
    columns = statistic.parameters(results).select_dtypes("number")
    effect = statistic.effects(results)[question.effect]
    return figures.scatter(columns.iloc[:, :4], effect.value, effect.error, question.question)
