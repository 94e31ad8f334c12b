"""Plants every falsehood in turn and reports what the judgement says of it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from sims import terms
from sims.audit.mutations import MUTATIONS, RIGHT, ROUNDING, Mutation, right_law
from sims.audit.problems import (
    ANGLES,
    MARGIN,
    gaps,
    law_problem,
    problem,
    scalars,
    simulated,
    truth,
)
from sims.audit.runs import looks
from sims.effects import Effect, of_batches
from sims.estimates import ratio
from sims.judgement import Finding, identity
from sims.judgement.tests import Rule, decide

LEVEL = 0.95
LAW_REPLICATES, LAW_BATCHES = 8, 64
"""Of the angle law's simulations: correlations of noise are nearly free of Monte Carlo error."""


def plant(sizes: dict[str, int]) -> list[dict[str, Any]]:
    """Try every mutation, and none of them.

    Args:
        sizes: ``replicates`` of a batch, ``batches`` at most, ``costly``: whether to try those
            that need an exact solution of their own.

    Returns:
        A row a mutation: what, road, check, effect (largest, in units of the margin), verdict,
        replicates when it was reached, expected (``refuted``, ``supported`` for the right theory
        and simulation, or None where the effect is below twice the margin).
    """
    return [_row(m, sizes) for m in (*RIGHT, *MUTATIONS) if sizes["costly"] or not m.costly]


def _row(mutation: Mutation, sizes: dict[str, int]) -> dict[str, Any]:
    case = mutation.case
    if mutation.check == "weights":
        gap = np.asarray(mutation.apply())
        finding, effect = identity(gap, margin=ROUNDING), float(np.abs(gap).max()) / ROUNDING
    elif mutation.check == "law":
        finding, effect = _against_law(np.asarray(mutation.apply()), sizes)
    else:
        data, right = _batches(case, sizes["replicates"], sizes["batches"]), scalars(truth(case))
        predicted = mutation.apply() if mutation.road == "theory" else right
        data = mutation.apply(data) if mutation.road == "simulation" else data
        finding = _watch(lambda b: gaps(predicted, data.isel(batch=slice(b)), right), sizes)
        # Of a theory without Monte Carlo error; of a simulation with all its batches.
        mean = right if mutation.road == "theory" else scalars(data.mean(terms.BATCH))
        apart = gaps(predicted, xr.Dataset({k: ("batch", [v, v]) for k, v in mean.items()}), right)
        effect = max(abs(gap.value) for gap in apart) / MARGIN
    planted = mutation not in RIGHT
    expected = ("refuted" if effect >= 2 else None) if planted else "supported"
    return {
        "what": mutation.what,
        "road": mutation.road,
        "check": mutation.check,
        "effect": effect,
        "verdict": finding.verdict,
        "replicates": finding.replicates,
        "expected": expected,
    }


def _watch(effects: Callable[[int], list[Effect]], sizes: dict[str, int]) -> Finding:
    """The verdict at the first look that decides."""
    for count in looks(sizes["batches"]):
        rule = Rule("equivalence", MARGIN, LEVEL, True, count * sizes["replicates"])
        finding = decide(effects(count), rule)
        if finding.verdict != "inconclusive":
            break
    return finding


@cache
def _batches(case: str, replicates: int, batches: int) -> xr.Dataset:
    return simulated(problem(case), 11, replicates, batches)


def _against_law(predicted: np.ndarray, sizes: dict[str, int]) -> tuple[Finding, float]:
    pairs = [_pair_noise(a, sizes["batches"]) for a in ANGLES]

    def effects(count: int) -> list[Effect]:
        return [
            of_batches("law", ratio(cross[:count], own[:count]) / law - 1)
            for (cross, own), law in zip(pairs, predicted, strict=True)
        ]

    return (
        _watch(effects, {**sizes, "replicates": LAW_REPLICATES}),
        float(np.max(np.abs(predicted / right_law() - 1))) / MARGIN,
    )


@cache
def _pair_noise(angles: tuple[float, float], batches: int) -> tuple[np.ndarray, np.ndarray]:
    data = simulated(law_problem(angles), 12, LAW_REPLICATES, min(batches, 64))
    return data["cross_noise_covariance"].values, data["noise_variance"].values
