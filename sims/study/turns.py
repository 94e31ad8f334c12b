"""Adaptive sampling in turns, so that shards share what claims ask for beyond the first batches.

After each turn a look at what is there says which points go on. A plan gives them more than the
look asks for, by a ladder that is at the most batches in the last turn: so there are at most
:data:`TURNS`, and what was drawn too many is left out of the result, which is that of a run
without shards. What a point gets in a turn is a range of its batches, cut into shards as the first
ones are.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

from sims import files, terms
from sims.errors import InputError
from sims.montecarlo.checkpoint import Missing
from sims.study.adaptive import MULTIPLE, look
from sims.study.experiment import Experiment, among
from sims.study.ledger import claims_by_paper
from sims.study.shards import Load
from sims.study.simulating import Simulation

TURNS = 6
"""The first batches, and five looks at them."""


def folder_of_turn(output: Path, turn: int) -> Path:
    """Where the marks of a turn's shards lie, beside the file of the whole, and its plan."""
    shards = output.parent / "shards"
    return shards if turn == 1 else shards / f"turn-{turn}"


def plan(experiment: Experiment, output: Path, theory: Path, turn: int) -> dict[str, list[int]]:
    """Look at what is there, and write down which batches each point needs in a turn.

    Args:
        experiment: which one.
        output: the file that the simulation is written to.
        theory: the predictions' file.
        turn: 2 to :data:`TURNS`; the shards of those before are finished.

    Returns:
        Point's name to the first batch and to the one after the last; nothing if all is decided.

    Raises:
        InputError: the turn is none, or there are no predictions.
    """
    if not 2 <= turn <= TURNS:
        raise InputError("turn", turn, f"2 to {TURNS}")
    run = Simulation(experiment, output, closed=True)
    wanted = _missing(run, theory)
    settings = experiment.simulation
    most = settings.max_batches or settings.batches
    share = (turn - 1) / (TURNS - 1)
    rung = settings.batches * (most / settings.batches) ** share
    step = min(most, MULTIPLE * int(np.ceil(rung / MULTIPLE)))
    parts = {name: [have, max(step, need)] for name, (have, need) in wanted.items()}
    files.write_json(
        {"turn": turn, "points": parts},
        folder_of_turn(output, turn) / "plan.json",
        f"plan of turn {turn} of {experiment.identity}",
    )
    print(f"{experiment.name}: turn {turn}: {len(parts)} points go on", file=sys.stderr)
    return parts


def planned(
    points: Mapping[str, Load], experiment: Experiment, output: Path, turn: int
) -> dict[str, Load]:
    """What every point takes in a turn, by its plan.

    Raises:
        InputError: there is no such plan.
    """
    whose = f"plan of turn {turn} of {experiment.identity}"
    parts = files.read_json(folder_of_turn(output, turn) / "plan.json", whose)["points"]
    return {k: Load(range(*part), points[k].shape, points[k].work) for k, part in parts.items()}


def _missing(run: Simulation, theory: Path) -> dict[str, tuple[int, int]]:
    """Of each point that has to go on, how many batches there are and how many it needs now."""
    wanted: dict[str, tuple[int, int]] = {}
    estimates: dict[str, xr.Dataset] = {}
    for name in run.units:
        try:
            estimates[name] = run.begun(name)
        except InputError as error:
            have = _have(error)
            wanted[name] = (have, max(have + 1, run.experiment.simulation.batches))
    if wanted or run.experiment.simulation.decide == "no":
        return wanted
    strict = among(run.experiment, claims_by_paper())
    start, current = run.results(estimates, theory), dict(estimates)
    longest = {name: run.longest(name, data) for name, data in estimates.items()}
    while not wanted and (growing := look(strict, replace(start, estimates=current))):
        for name, target in growing.items():
            try:
                if longest[name].sizes[terms.BATCH] < target:
                    longest[name] = run.longer(name, longest[name], target)
                current[name] = terms.cut(longest[name], target)
            except InputError as error:
                wanted[name] = (_have(error), target)
    return wanted


def _have(error: InputError) -> int:
    """How many batches there are, of an error that says that more are missing."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Missing):
        cause = cause.__cause__
    if cause is None:
        raise error
    return cause.number
