"""Answers of an experiment from its results, by its statistic."""

from dataclasses import replace

from sims.errors import InputError, one_of
from sims.judgement.answers import Answer, answer
from sims.study.code import salt
from sims.study.experiment import Experiment
from sims.study.results import Results


def answered(experiment: Experiment, results: Results) -> list[Answer]:
    """Answers to the questions of the file, in order.

    Raises:
        InputError: there is no ``statistic.py`` with ``effects(results)`` and
            ``parameters(results)``, or a question names an effect that it does not return.
    """
    module, path = experiment.module("statistic"), experiment.folder / "statistic.py"
    if module is None or not (hasattr(module, "effects") and hasattr(module, "parameters")):
        raise InputError(str(path), "nothing", "effects(results) and parameters(results)")
    with experiment.code_errors():
        families, parameters = module.effects(results), module.parameters(results)
    answers = []
    for question in experiment.spec.questions:
        if question.effect not in families:
            location = f"{experiment.name}: questions, {question.id}, effect"
            raise InputError(location, question.effect, one_of(families, question.effect))
        result = answer(
            question,
            families[question.effect],
            parameters,
            experiment=experiment.name,
            law=str(experiment.spec.law.get("text", "")),
            smoke=experiment.fidelity == "smoke",
            labels=experiment.spec.labels,
            results=results.digest,
            seed=experiment.simulation.seed,
            salt=salt(),
            versions=results.provenance["simulation"]["versions"],
        )
        drawing = experiment.module("problems")
        if result.counterexample is not None and drawing and hasattr(drawing, "problem"):
            with experiment.code_errors():
                problem = drawing.problem(experiment, result.counterexample)
            result = replace(result, problem=problem)
        answers.append(result)
    return answers
