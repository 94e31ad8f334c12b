"""The ledger again with other seeds: does any verdict turn?"""

import hashlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from sims.errors import InputError, one_of
from sims.files import write_json
from sims.judgement import Verdict, adjust, read_ledger, write_verdicts
from sims.kinds import is_tested
from sims.study import code, predicting, runner
from sims.study.experiment import Experiment, experiments, load_experiment
from sims.study.ledger import claims_by_paper, judged


class Other(TypedDict):
    """What a row came to with another seed; see :class:`~sims.judgement.Verdict`."""

    verdict: str
    effect: float | None
    interval: tuple[float, float] | None


class Row(TypedDict):
    """A verdict of the ledger and how it came out with other seeds."""

    claim: str
    experiment: str
    regime: str
    first: str
    verdicts: dict[str, int]
    others: list[Other]
    turned: bool


class Comparison(TypedDict, total=False):
    """What other seeds say of a ledger, which is known by its SHA-256."""

    rows: list[Row]
    turned: int
    judged: int
    inconclusive: int
    redrawn: bool
    ledger: str


def reseed(
    folder: Path, fidelity: str, names: Sequence[str], count: int, *, redrawn: bool = True
) -> Comparison:
    """Run experiments with other seeds on both roads, judge them, and compare with the ledger.

    One process, an experiment after the other, so that all seeds of one share what was compiled.
    What is finished is kept: an interrupted command goes on, a larger count adds seeds, and
    experiments can be run one by one.

    Args:
        folder: results of a finished run, with ledger.json; seeds.json is written beside it.
        fidelity: of the run.
        names: of the experiments; none are all.
        count: how many other seeds, ≥ 1.
        redrawn: whether targets, frames, queries and rotations are drawn anew, and predicted anew.
            Otherwise only the simulation's draws are other ones, and predictions are those of the
            run (but where heads are learned, whose starts and streams are drawn anew in any case).

    Raises:
        InputError: an experiment is not in the ledger, or the count is not positive.
    """
    ledger = read_ledger(folder / "ledger.json", f"ledger.json of {fidelity}")
    for name in names:
        if name not in {v.experiment for v in ledger}:
            known = dict.fromkeys(v.experiment for v in ledger)
            raise InputError("--experiment", name, one_of(known, name))
    if count < 1:
        raise InputError("--count", count, "at least 1")
    for name in names or experiments():
        for offset in range(1, count + 1):
            _one(folder, load_experiment(name, fidelity, offset, redrawn=redrawn))
            print(f"{name}: seed {offset} of {count}", file=sys.stderr, flush=True)
    comparison = compare(ledger, _ledgers(folder, fidelity, redrawn))
    comparison["redrawn"] = redrawn
    # The report shows the outcome beside this ledger and no other.
    comparison["ledger"] = hashlib.sha256((folder / "ledger.json").read_bytes()).hexdigest()
    write_json(comparison, folder / "seeds.json", f"seeds.json of {fidelity}")
    return comparison


def compare(base: list[Verdict], others: list[list[Verdict]]) -> Comparison:
    """How verdicts differ between seeds.

    Args:
        base: the ledger.
        others: one ledger a seed, of the experiments that were run with it.

    Returns:
        ``rows`` (claim, experiment, regime, first, verdicts by kind, others: each of them with its
        effect and interval, turned: whether both supported and refuted occur) of the experiments
        that were run, those alone that a draw could have turned; ``turned`` (how many rows),
        ``judged``, ``inconclusive``.
    """
    tables = [({v.experiment for v in ledger}, {_key(v): v for v in ledger}) for ledger in others]
    rows: list[Row] = []
    for verdict in (v for v in base if is_tested(v.kind)):
        found = [table.get(_key(verdict)) for run, table in tables if verdict.experiment in run]
        if not found:
            continue
        counts = Counter("missing" if other is None else other.verdict for other in found)
        rows.append(
            {
                "claim": verdict.claim,
                "experiment": verdict.experiment,
                "regime": verdict.regime,
                "first": verdict.verdict,
                "verdicts": dict(counts),
                "others": [
                    {"verdict": v.verdict, "effect": v.effect, "interval": v.interval}
                    for v in found
                    if v is not None
                ],
                "turned": {"supported", "refuted"} <= {verdict.verdict, *counts},
            }
        )
    return {
        "rows": rows,
        "turned": sum(bool(row["turned"]) for row in rows),
        "judged": sum(sum(row["verdicts"].values()) for row in rows),
        "inconclusive": sum(row["verdicts"].get("inconclusive", 0) for row in rows),
    }


def _key(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.experiment, verdict.claim, verdict.regime


def _kept(folder: Path, redrawn: bool) -> Path:
    """Where verdicts with other seeds are kept, a folder a seed."""
    return folder / ("redrawn" if redrawn else "seeds")


def _one(folder: Path, experiment: Experiment) -> None:
    """One experiment with one other seed: its verdicts, and no data, are kept."""
    name, fidelity = experiment.name, experiment.fidelity
    home = _kept(folder, experiment.redrawn) / str(experiment.seed_offset) / name
    done, mark = home / "verdicts.json", home / "code"
    steps = ("simulate", "predict", "judge")
    now = " ".join(code.digest(step, experiment.folder, fidelity) for step in steps)
    if done.is_file() and mark.is_file() and mark.read_bytes() == now.encode():
        try:
            if judged(home.parent, name, fidelity):
                return
        except InputError as error:
            print(f"{done}: got {error.value!r}; it is judged again", file=sys.stderr)
    simulation, theory = home / "simulation.nc", home / "theory.nc"
    for path in (done, mark, theory):  # not what an interrupted run has kept of its points
        path.unlink(missing_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    if experiment.redraws or experiment.redrawn:
        predicting.predict(experiment, theory)
    else:
        os.symlink((folder / name / "theory.nc").resolve(strict=True), theory)
    runner.simulate(experiment, simulation, theory)
    runner.judge(experiment, simulation, theory, home / "judged.json")
    shutil.rmtree(home / ".points", ignore_errors=True)
    simulation.unlink()
    theory.unlink()
    mark.write_text(now)
    (home / "judged.json").replace(done)


def _ledgers(folder: Path, fidelity: str, redrawn: bool) -> list[list[Verdict]]:
    """A ledger a seed, adjusted; experiments that were not run with it are as in the run itself."""
    ledgers = []
    for home in sorted(_kept(folder, redrawn).glob("[1-9]*"), key=lambda p: int(p.name)):
        run = [name for name in experiments() if (home / name / "verdicts.json").is_file()]
        homes = {name: home if name in run else folder for name in experiments()}
        rows = [v for name, place in homes.items() for v in judged(place, name, fidelity)]
        ledger = [v for v in adjust(rows, claims_by_paper()) if v.experiment in run]
        write_verdicts(ledger, home / "ledger.json", f"ledger.json of {fidelity}")
        ledgers.append(ledger)
    return ledgers
