"""A row of a ledger computed again, from what its result says of how it was made."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sims import provenance
from sims.errors import InputError, one_of
from sims.judgement import Verdict
from sims.study import predicting, results, runner
from sims.study.contract import contract
from sims.study.experiment import Experiment, load_experiment
from sims.study.schema import ExperimentSpec
from sims.validation import parse

NUMBERS = ("effect", "lower end", "upper end", "p_value", "replicates")


@dataclass(frozen=True)
class Replay:
    """A row, and what it comes to when it is computed again.

    Attributes:
        row: of the ledger.
        again: the verdict by itself; Holm's adjustment is the ledger's.
        notes: what was not as it had been: versions, the contract.
    """

    row: Verdict
    again: Verdict
    notes: list[str]

    def numbers(self) -> dict[str, tuple[float, float]]:
        """The row's numbers, and the same computed again; NaN where there is none."""
        before, after = map(_numbers, (self.row, self.again))
        return dict(zip(NUMBERS, zip(before, after, strict=True), strict=True))

    def difference(self) -> float:
        """The largest difference of effect and interval, as a share of the largest of them.

        Infinite where one has a number and the other has none.
        """
        pairs = np.array([self.numbers()[name] for name in NUMBERS[:3]])
        if (np.isnan(pairs[:, 0]) != np.isnan(pairs[:, 1])).any():
            return float(np.inf)
        known = pairs[~np.isnan(pairs[:, 0])]
        scale = np.abs(known).max(initial=0.0)
        gap = np.abs(known[:, 0] - known[:, 1]).max(initial=0.0)
        return float(gap / scale) if scale else float(gap)


def row_of(ledger: Sequence[Verdict], claim: str, regime: str | None) -> Verdict:
    """The row that a number, or a claim and its regime, name.

    Args:
        ledger: its rows; the first is number 1.
        claim: a number, or the claim's id.
        regime: of the claim; may be left out where it has but one.

    Raises:
        InputError: no row is named so, or several are.
    """
    if claim.isascii() and claim.isdecimal():
        if regime is not None or not 1 <= int(claim) <= len(ledger):
            raise InputError("row", claim, f"1 to {len(ledger)}, or a claim's id and its regime")
        return ledger[int(claim) - 1]
    rows = [v for v in ledger if v.claim == claim]
    if not rows:
        raise InputError("row", claim, one_of(dict.fromkeys(v.claim for v in ledger), claim))
    found = [v for v in rows if regime in (None, v.regime)]
    if len(found) != 1:
        allowed = one_of((v.regime for v in rows), regime or "")
        raise InputError(f"regime of {claim}", regime, allowed)
    return found[0]


def replay(row: Verdict, fidelity: str, folder: Path, progress: bool = False) -> Replay:
    """Simulate, predict and judge the row's experiment again, and pick its row.

    The experiment is the one that its result says it was, where that is at hand; else that of
    today's file. What was done is kept if it is interrupted, and removed at the end.

    Args:
        row: of the ledger.
        fidelity: of the ledger.
        folder: where the ledger lies.
        progress: show progress on stderr.

    Raises:
        InputError: the experiment cannot be run, or makes no such claim.
    """
    experiment, notes = load_experiment(row.experiment, fidelity), []
    path = folder / row.experiment / "simulation.nc"
    if path.is_file():
        origin = results.provenance(path, f"simulation.nc of {experiment.identity}")
        experiment = _as_it_was(experiment, origin)
        other = {k: v for k, v in origin["versions"].items() if provenance.versions().get(k) != v}
        notes += [f"made with {name} {version}" for name, version in other.items()]
    else:
        notes.append(f"no {path}: the experiment is that of today's file")
    if row.contract not in (None, contract(experiment)):
        notes.append("claims, settings, grid or code of effects edited since the row was judged")
    home = Path("results", "replays", fidelity, row.experiment)
    simulation, theory = home / "simulation.nc", home / "theory.nc"
    predicting.predict(experiment, theory)
    runner.simulate(experiment, simulation, theory, progress)
    verdicts = runner.judge(experiment, simulation, theory, home / "verdicts.json")
    again = [v for v in verdicts if (v.claim, v.regime) == (row.claim, row.regime)]
    if not again:
        raise InputError("row", f"{row.claim} ({row.regime})", f"a claim of {row.experiment} today")
    shutil.rmtree(home)
    return Replay(row, again[0], notes)


def _as_it_was(experiment: Experiment, origin: dict[str, Any]) -> Experiment:
    """The experiment with the file that a result says it was made with."""
    spec = parse(ExperimentSpec, origin["specification"], "provenance", of_json=True)
    return replace(experiment, spec=spec)


def _numbers(verdict: Verdict) -> list[float]:
    values = [verdict.effect, *(verdict.interval or (None, None)), verdict.p_value]
    return [*(np.nan if v is None else float(v) for v in values), float(verdict.replicates)]
