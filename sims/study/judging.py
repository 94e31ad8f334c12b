"""From an experiment's effects to verdicts, by the tests that its file names, or to answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sims.effects import Effect, Families
from sims.errors import InputError, one_of
from sims.judgement import Finding, Rule, Verdict, decide
from sims.judgement.answers import Answer, answer
from sims.study.code import salt
from sims.study.experiment import Experiment
from sims.study.results import Results
from sims.study.schema import ClaimSpec, Range


def effects_of(experiment: Experiment, results: Results) -> Families:
    """The families of effects of the experiment's ``effects.py``.

    Raises:
        InputError: the folder has no such module, or an effect rests on a point that is not there.
    """
    module, path = experiment.module("effects"), experiment.folder / "effects.py"
    if module is None or not hasattr(module, "effects"):
        raise InputError(str(path), "nothing", "a module with effects(results)")
    with experiment.own_code():
        families: Families = module.effects(results)
    for name, family in families.items():
        points = {point for effect in family for point in effect.points}
        if strangers := points.difference(results.points):
            raise InputError(f"{path}: points of {name}", sorted(strangers), "names of grid points")
    return families


def answered(experiment: Experiment, results: Results) -> list[Answer]:
    """One answer for every question of the file, in its order.

    Raises:
        InputError: there is no ``statistic.py`` with ``effects(results)`` and
            ``parameters(results)``, or a question names an effect that it does not return.
    """
    module, path = experiment.module("statistic"), experiment.folder / "statistic.py"
    if module is None or not (hasattr(module, "effects") and hasattr(module, "parameters")):
        raise InputError(str(path), "nothing", "effects(results) and parameters(results)")
    with experiment.own_code():
        families, parameters = module.effects(results), module.parameters(results)
    law, answers = experiment.spec.law or {}, []
    for question in experiment.spec.questions:
        if question.effect not in families:
            where = f"{experiment.name}: questions, {question.id}, effect"
            raise InputError(where, question.effect, one_of(families, question.effect))
        made = answer(
            question,
            families[question.effect],
            parameters,
            experiment=experiment.name,
            law=str(law.get("text", "")),
            smoke=experiment.fidelity == "smoke",
            results=results.digest,
            seed=experiment.simulation.seed,
            salt=salt(),
            versions=results.provenance["simulation"]["versions"],
        )
        drawing = experiment.module("problems")
        if made.counterexample is not None and drawing and hasattr(drawing, "problem"):
            with experiment.own_code():
                problem = drawing.problem(experiment, made.counterexample)
            made = replace(made, problem=problem)
        answers.append(made)
    return answers


def judge(experiment: Experiment, results: Results, families: Families) -> list[Verdict]:
    """One verdict for every claim of the file, in its order.

    What was edited after the simulation began (claims, settings, grid, code of effects) marks its
    rows.

    Raises:
        InputError: a claim names a family of effects that ``effects.py`` does not return.
    """
    fewest, now = results.replicates, experiment.contract
    edited = results.provenance.get("simulation", {}).get("contract") != now
    verdicts = []
    for claim in experiment.claims:
        if claim.effects not in families:
            where = f"{experiment.name}: claims, {claim.id} ({claim.regime}), effects"
            raise InputError(where, claim.effects, one_of(families, claim.effects))
        effects = chosen(families[claim.effects], claim)
        finding = examined(decide(effects, Rule.of(claim, fewest)), effects, results)
        verdict = Verdict.of(claim, experiment.name, finding)
        verdicts.append(replace(verdict, contract=now, edited=edited, results=results.digest))
    return verdicts


def examined(finding: Finding, effects: Sequence[Effect], results: Results) -> Finding:
    """The finding, in the light of what the results that it rests on say of themselves.

    Over a fault (values that are not finite, nothing seen, rounding beside the MCSE, coarser
    arithmetic than asked for; empty neighbourhoods that the prediction at hand does not count) it
    is inconclusive, and the reason names the fault. A caution is added to the reason, no more.
    An effect that is sampled and names no points rests on all of them.
    """
    named = {name for effect in effects for name in effect.points}
    if any(np.isfinite(effect.batches) and not effect.points for effect in effects):
        named |= set(results.points)
    found: dict[str, dict[str, list[str]]] = {"faults": {}, "cautions": {}}
    for name in sorted(named):
        simulated, theory = results.estimates[name], results.predictions.get(name)
        for own in (simulated,) if theory is None else (simulated, theory):
            for kind, phrases in found.items():
                for phrase in np.ravel(own.attrs.get(kind, [])):
                    phrases.setdefault(str(phrase), []).append(name)
        counted = theory is None or "empty_probability" in theory
        if simulated.attrs.get("empty_rate", 0) and not counted:
            phrase = "its theory does not count empty neighbourhoods"
            found["faults"].setdefault(phrase, []).append(name)
    if found["faults"]:
        reason = f"no evidence: {_listed(found['faults'])}; the numbers alone: {finding.reason}"
        return replace(finding, verdict="inconclusive", p_value=1.0, needs={}, reason=reason)
    if found["cautions"]:
        return replace(finding, reason=f"{finding.reason}; note: {_listed(found['cautions'])}")
    return finding


def _listed(found: Mapping[str, Sequence[str]]) -> str:
    """The first phrase, at how many points it holds, and how many others there are."""
    phrase, names = next(iter(found.items()))
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{phrase} (point {names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}){more}"


def chosen(family: Sequence[Effect], claim: ClaimSpec) -> list[Effect]:
    """The effects that a claim is about: those with the facts that its ``where`` asks for.

    Raises:
        InputError: an effect does not know such a fact.
    """
    return [e for e in family if all(_holds(e, claim, fact) for fact in claim.where)]


def _holds(effect: Effect, claim: ClaimSpec, fact: str) -> bool:
    if fact not in effect.at:
        allowed = one_of(effect.at, fact) or "nothing: its effects have no facts"
        raise InputError(f"claims, {claim.id} ({claim.regime}), where", fact, allowed)
    value, wanted = effect.at[fact], claim.where[fact]
    return bool(wanted.holds(float(value)) if isinstance(wanted, Range) else value == wanted)
