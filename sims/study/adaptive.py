"""Sampling until every claim of an experiment is decided: more batches where verdicts are open."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from sims import terms
from sims.judgement import Verdict
from sims.study.experiment import Experiment
from sims.study.judging import effects_of, judge
from sims.study.results import Results

MOST_GROWTH = 1.5
"""Of a point's batches in one round: estimates of what is needed are rough while few are there."""
SPARE = 1.1
"""More than what would just decide, since effects move."""
SURPRISE = 2.0
"""Errors by which an effect may be off, before a claim is let be as out of reach."""
HALF_WIDTH = 6.0
"""Of an interval at the level of a ledger, in errors."""
MULTIPLE = 8
"""Batches come in multiples of this, so that no device idles."""


def sample_until_decided(
    experiment: Experiment,
    start: Results,
    held: Mapping[str, xr.Dataset],
    claims: Mapping[str, int],
    extend: Callable[[str, xr.Dataset, int], xr.Dataset],
) -> dict[str, xr.Dataset]:
    """Give more batches to the points that open claims need, until none is open.

    Verdicts rest on confidence sequences, which hold however this stops. Draws are named by their
    batch, so a point's first batches are the same numbers whatever the others need; and what an
    earlier run drew beyond what this one asks for is left out, so that it changes nothing.

    The ledger's Holm adjustment comes later, over all claims of a paper. A claim that is decided at
    a share ``1/k`` of its ``1 − level``, with k claims of its paper, survives it whatever the
    others do, so that is when it counts as decided here.

    Args:
        experiment: whose claims are to be decided.
        start: estimates of every point to begin with, and the predictions; theory's numbers decide
            how much is drawn, never what is drawn.
        held: the longest estimates there are, each with those of ``start`` first.
        claims: a paper's arXiv id to how many of its claims all experiments make together.
        extend: ``(point, data, batches)``: the same data with that many batches in all.

    Returns:
        Every point's estimates. They stop at ``max_batches`` of the simulation's settings, decided
        or not.
    """
    levels = [1 - (1 - claim.level) / claims.get(claim.paper, 1) for claim in experiment.claims]
    own = [
        c.model_copy(update={"level": x}) for c, x in zip(experiment.claims, levels, strict=True)
    ]
    strict = replace(experiment, spec=experiment.spec.model_copy(update={"claims": own}))
    current, longest = dict(start.estimates), dict(held)
    while growing := _look(strict, replace(start, estimates=current)):
        for name, target in growing.items():
            if longest[name].sizes[terms.BATCH] < target:
                longest[name] = extend(name, longest[name], target)
            current[name] = terms.cut(longest[name], target)
    return current


def _look(strict: Experiment, results: Results) -> dict[str, int]:
    """The points that go on after a look at all claims, and to how many batches."""
    limit = strict.simulation.max_batches or strict.simulation.batches
    verdicts = judge(strict, results, effects_of(strict, results))
    batches = {name: results.batches(name) for name in results.points}
    # A population has the problems that it has: none is drawn for what the others said.
    drawn = {point.name for point in strict.points if point.population is not None}
    growing = {}
    for name, needed in _needs(verdicts, batches, limit).items():
        growth = float(np.clip(SPARE * needed / batches[name], 1.0, MOST_GROWTH))
        target = min(limit, MULTIPLE * int(np.ceil(batches[name] * growth / MULTIPLE)))
        if target > batches[name] and name not in drawn:
            growing[name] = target
    undecided = sum(v.verdict == "inconclusive" for v in verdicts)
    print(
        f"{strict.name}: {sum(batches.values())} batches at {len(batches)} points, "
        f"{undecided} of {len(verdicts)} verdicts open, {len(growing)} points go on",
        file=sys.stderr,
    )
    return growing


def _needs(verdicts: list[Verdict], batches: dict[str, int], limit: int) -> dict[str, float]:
    """Batches that each point needs for all open claims; those out of reach ask for nothing.

    A need follows from a room of r errors as ``batches·(w/r)²``, with w the half width in errors.
    It is in reach if it would be met were the effect :data:`SURPRISE` errors better.
    """
    needs: dict[str, float] = {}
    for verdict in verdicts:
        rooms = {k: HALF_WIDTH * np.sqrt(batches[k] / b) for k, b in verdict.needs.items()}
        least = {k: batches[k] * (HALF_WIDTH / (r + SURPRISE)) ** 2 for k, r in rooms.items()}
        # Where one point cannot be settled, what the claim's others get is spent for nothing.
        if all(needed <= limit for needed in least.values()):
            for name, needed in verdict.needs.items():
                needs[name] = max(needs.get(name, 0.0), needed)
    return needs
