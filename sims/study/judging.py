"""From an experiment's effects to verdicts, by the tests that its file names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sims.effects import Effect, Families
from sims.errors import InputError
from sims.judgement import Verdict
from sims.judgement.tests import Rule, decide
from sims.study.contract import contract
from sims.study.experiment import Experiment
from sims.study.results import Results
from sims.study.schema import ClaimSpec, Range


def effects_of(experiment: Experiment, results: Results) -> Families:
    """The families of effects of the experiment's ``effects.py``.

    Raises:
        InputError: the folder has no such module, or an effect rests on a point that is not there.
    """
    module = experiment.module("effects")
    if module is None or not hasattr(module, "effects"):
        path = experiment.folder / "effects.py"
        raise InputError(str(path), "nothing", "a module with effects(results)")
    families: Families = module.effects(results)
    known = set(results.points)
    for name, family in families.items():
        strangers = {point for effect in family for point in effect.points} - known
        if strangers:
            where = f"{experiment.folder.name}/effects.py: points of {name}"
            raise InputError(where, sorted(strangers), "names of grid points")
    return families


def judge(experiment: Experiment, results: Results, families: Families) -> list[Verdict]:
    """One verdict for every claim of the file, in its order.

    What was edited after the simulation began (claims, settings, grid, effects.py) marks its rows.

    Raises:
        InputError: a claim names a family of effects that ``effects.py`` does not return, or a
            margin that its test, which has one of its own, does not use.
    """
    fewest, now = results.replicates, contract(experiment)
    begun = results.provenance.get("simulation", {}).get("contract")
    verdicts = []
    for claim in experiment.claims:
        if claim.effects not in families:
            where = f"{experiment.folder.name}: claims, {claim.id} ({claim.regime}), effects"
            raise InputError(where, claim.effects, ", ".join(families))
        rule = Rule(
            claim.test, claim.margin, claim.level, sequential=claim.sequential, replicates=fewest,
            expected=claim.expected, law=claim.law, scatter=claim.scatter,
        )  # fmt: skip
        finding = decide(chosen(families[claim.effects], claim), rule)
        if finding.margin != claim.margin:  # a margin that is not the file's would be no test
            where = f"{experiment.folder.name}: claims, {claim.id} ({claim.regime}), margin"
            raise InputError(where, claim.margin, f"{finding.margin:g}, that of test {claim.test}")
        verdict = Verdict.of(claim, experiment.name, finding)
        verdicts.append(replace(verdict, contract=now, edited=begun != now))
    return verdicts


def chosen(family: Sequence[Effect], claim: ClaimSpec) -> list[Effect]:
    """The effects that a claim is about: those with the facts that its ``where`` asks for.

    Raises:
        InputError: an effect does not know such a fact.
    """
    return [e for e in family if all(_holds(e, claim, f) for f in claim.where)]


def _holds(effect: Effect, claim: ClaimSpec, fact: str) -> bool:
    if fact not in effect.at:
        where = f"claims, {claim.id} ({claim.regime}), where"
        raise InputError(where, fact, ", ".join(effect.at) or "nothing: its effects have no facts")
    value, condition = effect.at[fact], claim.where[fact]
    if not isinstance(condition, Range):
        return bool(value == condition)
    low = -np.inf if condition.at_least is None else condition.at_least
    high = np.inf if condition.at_most is None else condition.at_most
    return bool(low <= float(value) <= high)
