"""From an experiment's effects to verdicts, by the tests that its file names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sims.effects import Effect, Families
from sims.errors import InputError, one_of
from sims.judgement import Finding, Rule, Verdict, decide
from sims.study.checking import own_code
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
    with own_code(experiment.folder):
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

    What was edited after the simulation began (claims, settings, grid, code of effects) marks its
    rows.

    Raises:
        InputError: a claim names a family of effects that ``effects.py`` does not return.
    """
    fewest, now = results.replicates, contract(experiment)
    begun = results.provenance.get("simulation", {}).get("contract")
    verdicts = []
    for claim in experiment.claims:
        if claim.effects not in families:
            where = f"{experiment.folder.name}: claims, {claim.id} ({claim.regime}), effects"
            raise InputError(where, claim.effects, one_of(families, claim.effects))
        effects = chosen(families[claim.effects], claim)
        finding = examined(decide(effects, Rule.of(claim, fewest)), effects, results)
        verdict = Verdict.of(claim, experiment.name, finding)
        verdicts.append(replace(verdict, contract=now, edited=begun != now))
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
    faults: dict[str, list[str]] = {}
    cautions: dict[str, list[str]] = {}
    for name in sorted(named):
        simulated, theory = results.estimates[name], results.predictions.get(name)
        for own in (simulated,) if theory is None else (simulated, theory):
            for found, kind in ((faults, "faults"), (cautions, "cautions")):
                for phrase in np.ravel(own.attrs.get(kind, [])):
                    found.setdefault(str(phrase), []).append(name)
        counted = theory is None or "empty_probability" in theory
        if simulated.attrs.get("empty_rate", 0) and not counted:
            phrase = "its theory does not count empty neighbourhoods"
            faults.setdefault(phrase, []).append(name)
    if faults:
        reason = f"no evidence: {_listed(faults)}; the numbers alone: {finding.reason}"
        return replace(finding, verdict="inconclusive", p_value=1.0, needs={}, reason=reason)
    if cautions:
        return replace(finding, reason=f"{finding.reason}; note: {_listed(cautions)}")
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
    return [e for e in family if all(_holds(e, claim, f) for f in claim.where)]


def _holds(effect: Effect, claim: ClaimSpec, fact: str) -> bool:
    if fact not in effect.at:
        where = f"claims, {claim.id} ({claim.regime}), where"
        raise InputError(
            where, fact, one_of(effect.at, fact) or "nothing: its effects have no facts"
        )
    value, condition = effect.at[fact], claim.where[fact]
    if not isinstance(condition, Range):
        return bool(value == condition)
    low = -np.inf if condition.at_least is None else condition.at_least
    high = np.inf if condition.at_most is None else condition.at_most
    return bool(low <= float(value) <= high)
