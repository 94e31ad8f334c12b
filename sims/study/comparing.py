"""Two runs side by side: which verdicts turned, and how far their numbers are apart."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from sims.errors import InputError
from sims.judgement import Verdict, read_ledger
from sims.study.results import read
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
    """How far the estimates of an experiment are apart in two runs.

    Attributes:
        experiment: its name.
        compared: how many numbers both runs have with a Monte Carlo standard error.
        worst: the largest difference, in joint standard errors √(mcse₁² + mcse₂²); 0 where no two
            numbers differ.
        where: point and term of that one.
        beyond: how many are more than two joint standard errors apart; of independent runs one in
            twenty is.
    """

    experiment: str
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
    """The estimates of every experiment that both folders have results of.

    Raises:
        InputError: a file of results is damaged.
    """
    pairs = [(path, other / path.relative_to(one)) for path in sorted(one.glob("*/simulation.nc"))]
    return [
        _apart(first.parent.name, unstack(read(first)), unstack(read(second)))
        for first, second in pairs
        if second.is_file()
    ]


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
    return Apart(name, compared, worst, where, beyond)
