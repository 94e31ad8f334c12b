"""Two runs side by side: which verdicts turned, and how far their numbers are apart."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from sims.effects import Effect
from sims.errors import InputError
from sims.judgement import Verdict, read_ledger
from sims.study.experiment import experiments, load_experiment
from sims.study.judging import effects_of
from sims.study.results import Results, read
from sims.study.stacking import unstack

MCSE = "_mcse"
"""What the name of a term's Monte Carlo standard error ends in."""


@dataclass(frozen=True)
class Turned:
    """A row whose verdict differs between two ledgers; None where a ledger has no such row."""

    experiment: str
    claim: str
    regime: str
    verdicts: tuple[str | None, str | None]


@dataclass(frozen=True)
class Apart:
    """How far the numbers of an experiment are apart in two runs.

    Attributes:
        experiment: its name.
        what: estimates, of single points, or effects, of which claims speak.
        compared: how many numbers both runs have with a Monte Carlo standard error.
        worst: the largest difference, in joint standard errors √(mcse₁² + mcse₂²); 0 where no two
            numbers differ.
        where: point and term, or family and label, of that one.
        beyond: how many are more than two joint standard errors apart; of independent runs one in
            twenty is.
    """

    experiment: str
    what: str
    compared: int
    worst: float
    where: str
    beyond: int


def turned(one: Iterable[Verdict], other: Iterable[Verdict]) -> list[Turned]:
    """Rows that only one ledger has, or that came out otherwise in the other."""
    tables = [{(v.experiment, v.claim, v.regime): v.verdict for v in ls} for ls in (one, other)]
    pairs = {key: (tables[0].get(key), tables[1].get(key)) for key in tables[0] | tables[1]}
    return [Turned(*key, pair) for key, pair in pairs.items() if pair[0] != pair[1]]


def ledger_of(run: Path) -> list[Verdict]:
    """The ledger of a run: its folder, or the file itself.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = run / "ledger.json" if run.is_dir() else run
    if not path.is_file():
        raise InputError(str(run), "no ledger", "a folder with a ledger.json, or such a file")
    return read_ledger(path)


def apart(one: Path, other: Path) -> list[Apart]:
    """The estimates and effects of every experiment that both folders have results of.

    Effects are those of this folder's ``effects.py``; there are none of an experiment that is not
    here, or is another one than that of the runs.

    Raises:
        InputError: a file of results is damaged.
    """
    pairs = [(path, other / path.relative_to(one)) for path in sorted(one.glob("*/simulation.nc"))]
    found = []
    for first, second in pairs:
        if not second.is_file():
            continue
        name = first.parent.name
        found.append(_apart(name, unstack(read(first)), unstack(read(second))))
        if name in experiments():
            with suppress(InputError):
                found.append(_effects_apart(name, _effects(name, first), _effects(name, second)))
    return found


def _effects(name: str, simulation: Path) -> dict[str, Effect]:
    """The effects of a run, by family, label and place."""
    experiment = load_experiment(name, json.loads(read(simulation).attrs["provenance"])["fidelity"])
    theory = simulation.with_name("theory.nc")
    results = Results.load(simulation, theory, experiment.settings, experiment.identity)
    families = effects_of(experiment, results)
    return {
        f"{family}: {effect.label}, {place}": effect
        for family, effects in families.items()
        for place, effect in enumerate(effects, 1)
    }


def _effects_apart(name: str, one: dict[str, Effect], other: dict[str, Effect]) -> Apart:
    """As :class:`Apart` has it, of effects that are sampled."""
    ratios = {
        key: abs(one[key].value - other[key].value) / joint
        for key in one
        if key in other and (joint := float(np.hypot(one[key].error, other[key].error)))
    }
    known = {key: ratio for key, ratio in ratios.items() if np.isfinite(ratio)}
    where = max(known, key=lambda key: known[key], default="")
    beyond = sum(ratio > 2 for ratio in known.values())
    worst = known.get(where, 0.0)
    return Apart(name, "effects", len(known), worst, where if worst else "", beyond)


def _apart(name: str, one: dict[str, xr.Dataset], other: dict[str, xr.Dataset]) -> Apart:
    """As :class:`Apart` has it, of one experiment's points by name."""
    compared, beyond, worst, where = 0, 0, 0.0, ""
    for point in one.keys() & other.keys():
        for error in map(str, one[point].data_vars):
            term = error.removesuffix(MCSE)
            pair = (one[point], other[point])
            if term == error or not all({term, error} <= set(data.data_vars) for data in pair):
                continue
            means = [data[term].mean([d for d in data[term].dims if d not in data[error].dims])
                     for data in pair]  # fmt: skip
            if means[0].shape != means[1].shape:
                continue
            joint = np.hypot(pair[0][error].values, pair[1][error].values)
            difference = np.abs(means[0].values - means[1].values)
            known = np.isfinite(joint) & np.isfinite(difference)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(difference == 0, 0.0, difference / joint)[known]
            compared, beyond = compared + ratio.size, beyond + int((ratio > 2).sum())
            if ratio.size and ratio.max() > worst:
                worst, where = float(ratio.max()), f"{term} at point {point}"
    return Apart(name, "estimates", compared, worst, where, beyond)
