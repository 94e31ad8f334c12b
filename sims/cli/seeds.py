"""``sims seeds``: the ledger again with other seeds; does any verdict turn?"""

import hashlib
import json
import os
import shutil
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

from sims.cli.steps import all_claims, judge, learns, predict, simulate
from sims.errors import InputError
from sims.fingerprint import experiments, fingerprint
from sims.judgement import Verdict, adjust, read_ledger, write_verdicts


def seeds(options: Namespace) -> None:
    """Simulate and judge experiments with other seeds, and compare with the ledger.

    One process, an experiment after the other, so that all seeds of one share what was compiled.
    Predictions are those of the run (but where heads are learned, whose seeds are other ones), and
    laws fitted to them are fitted once. What is finished is kept: an interrupted command goes on,
    a larger count adds seeds, and experiments can be run one by one.
    """
    folder = Path("results", options.fidelity)
    base = read_ledger(folder / "ledger.json")
    names = options.experiment or experiments()
    for name in names:
        if name not in {v.experiment for v in base}:
            raise InputError("--experiment", name, "an experiment of the ledger")
    if options.count < 1:
        raise InputError("--count", options.count, "at least 1")
    for name in names:
        for offset in range(1, options.count + 1):
            _one(folder, name, offset, options.fidelity)
            print(f"{name}: seed {offset} of {options.count}", file=sys.stderr, flush=True)
    found = compare(base, _ledgers(folder))
    # The report shows the outcome beside this ledger and no other.
    found["ledger"] = hashlib.sha256((folder / "ledger.json").read_bytes()).hexdigest()
    (folder / "seeds.json").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    for row in found["rows"]:
        if row["turned"] or set(row["verdicts"]) != {row["first"]}:
            counts = ", ".join(f"{n} {kind}" for kind, n in row["verdicts"].items())
            said = (
                f"{row['claim']} ({row['experiment']}, {row['regime']}): {row['first']}; {counts}"
            )
            print(("TURNED  " if row["turned"] else "        ") + said)
    print(
        f"{len(found['rows'])} of {len(base)} verdicts, {found['judged']} times with other seeds: "
        f"{found['turned']} turned between supported and refuted; "
        f"{found['inconclusive']} of {found['judged']} inconclusive"
    )


def compare(base: list[Verdict], others: list[list[Verdict]]) -> dict[str, Any]:
    """How verdicts differ between seeds.

    Args:
        base: the ledger.
        others: one ledger a seed, of the experiments that were run with it.

    Returns:
        ``rows`` (claim, experiment, regime, first, verdicts by kind, turned: whether both
        supported and refuted occur) of the experiments that were run, ``turned`` (how many rows),
        ``judged``, ``inconclusive``.
    """
    tables = [
        ({v.experiment for v in ledger}, {_key(v): v.verdict for v in ledger}) for ledger in others
    ]
    rows: list[dict[str, Any]] = []
    for verdict in base:
        counts = Counter(
            table.get(_key(verdict), "missing")
            for run, table in tables
            if verdict.experiment in run
        )
        if not counts:
            continue
        rows.append(
            {
                "claim": verdict.claim,
                "experiment": verdict.experiment,
                "regime": verdict.regime,
                "first": verdict.verdict,
                "verdicts": dict(counts),
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


def _one(folder: Path, name: str, offset: int, fidelity: str) -> None:
    """One experiment with one other seed: its verdicts, and no data, are kept."""
    home = folder / "seeds" / str(offset) / name
    done, code = home / "verdicts.json", home / "code"
    now = " ".join(fingerprint(step, name, fidelity) for step in ("simulate", "predict", "judge"))
    if done.is_file() and code.is_file() and code.read_text() == now:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    asked = {"experiment": name, "fidelity": fidelity, "seed_offset": offset}
    if learns(name, fidelity):
        predict(Namespace(**asked, output=str(home / "theory.nc")))
    else:
        os.symlink((folder / name / "theory.nc").resolve(strict=True), home / "theory.nc")
    simulate(Namespace(**asked, output=str(home / "simulation.nc")))
    judge(Namespace(**asked, output=str(home / "judged.json")))
    shutil.rmtree(home / ".points", ignore_errors=True)
    for road in ("simulation", "theory"):
        (home / f"{road}.nc").unlink()
    code.write_text(now)
    (home / "judged.json").replace(done)


def _ledgers(folder: Path) -> list[list[Verdict]]:
    """A ledger a seed, adjusted; experiments that were not run with it are as in the run itself."""
    found = []
    for home in sorted((folder / "seeds").glob("*"), key=lambda p: int(p.name)):
        run = [name for name in experiments() if (home / name / "verdicts.json").is_file()]
        files = [(home if n in run else folder) / n / "verdicts.json" for n in experiments()]
        rows = [v for file in files if file.is_file() for v in read_ledger(file)]
        ledger = [v for v in adjust(rows, all_claims()) if v.experiment in run]
        write_verdicts(ledger, home / "ledger.json")
        found.append(ledger)
    return found
